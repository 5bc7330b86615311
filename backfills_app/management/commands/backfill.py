"""``backfill``: requests to materialize partitions of the past."""

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from django.core.management.base import CommandParser

from accounts_app.management.command import (
    Failed,
    Refused,
    SlicewiseCommand,
    at_least_zero,
    error_lines,
    failed_count_text,
    json_object,
)
from assets_app.execution.request.retrying import Code
from assets_app.models import SKIPS_WITHOUT_FAILURE, Asset, SkipReason
from assets_app.queries.code_choices import code_choice
from assets_app.queries.lookups import LARGEST_ID, asset_named
from backfills_app.models import Backfill, BackfillOrder, BackfillState, ExistingPolicy
from backfills_app.queries.counts import counts_of
from backfills_app.queries.failures import failures_of
from backfills_app.queries.lookups import backfill_numbered
from backfills_app.queries.skips import skipped_by_reason
from backfills_app.services import (
    BulkResult,
    cancel_backfill,
    change_backfill,
    check_backfill,
    clone_backfill,
    delete_backfill,
    in_bulk,
    pause_backfill,
    request_backfill,
    request_from_text,
    resume_backfill,
    retry_failed,
)
from slicewise.texts import counted
from slicewise_server.web.commands.work_progress import WorkProgress

_PLANNED = (
    "layer", "asset", "role", "total", "not_ended", "existing", "in_flight", "upstream_missing",
    "to_materialize", "runs",
)  # fmt: skip
# Counts whose name in JSON says less than people want to know.
_COLUMN_HEADS = {"active": "queued or running"}
# Options in place of the name of one asset.
_ASSET_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--assets",
        {
            "action": "append",
            "metavar": "NAMES",
            "help": "names of assets with commas between; repeatable",
        },
    ),
    ("--group", {"dest": "asset_group", "metavar": "GROUP", "help": "all assets of a group"}),
    ("--tag", {"dest": "asset_tag", "metavar": "TAG", "help": "all assets with a tag"}),
)
_WAIT = (
    "wait for the end; exit with 1 unless the backfill succeeds, for which existing partitions,"
    " partitions in other runs and, with --existing missing, partitions that failed before count as"
    " done"
)
# The service fills in options that are left out.
_REQUEST_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--selection", {"help": "text of the selection grammar, in place of START and END"}),
    ("--description", {}),
    ("--max-active-runs", {"metavar": "N", "help": "number of runs at the same time"}),
    ("--order", {"choices": BackfillOrder.values, "help": "order of the partitions"}),
    ("--strategy", {"help": "partition, range, or the number of partitions per run at most"}),
    (
        "--existing",
        {"choices": ExistingPolicy.values, "help": "the partitions to materialize, by status"},
    ),
    ("--upstream", {"action": "store_true", "help": "materialize all upstream assets as well"}),
    (
        "--downstream",
        {
            "metavar": "NAMES",
            "help": "downstream assets to materialize as well: none, all, or names with commas"
            " between",
        },
    ),
    ("--code-version", {"metavar": "V", "help": "number or digest of a bundle version"}),
    (
        "--start-at",
        {"metavar": "TIME", "help": "earliest start of a run, in the asset's time zone"},
    ),
    ("--params", {"type": json_object, "metavar": "JSON"}),
)


class Command(SlicewiseCommand):
    help = "Create, preview, list, show, change and control backfills."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.add_verbs(parser)
        create = self.add_verb(verbs, "create", self.create, "Create a backfill.")
        preview = self.add_verb(
            verbs, "preview", self.preview, "Preview a backfill, and create none."
        )
        for subparser in (create, preview):
            subparser.add_argument(
                "asset", metavar="ASSET", nargs="?", default="", help="the name of one asset"
            )
            for option, settings in _ASSET_OPTIONS:
                subparser.add_argument(option, default=argparse.SUPPRESS, **settings)
            _add_request_options(subparser)
        list_parser = self.add_verb(verbs, "list", self.list, "List backfills, newest first.")
        list_parser.add_argument("--asset", metavar="ASSET")
        list_parser.add_argument("--state", choices=BackfillState.values)
        list_parser.add_argument("--deleted", action="store_true", help="list deleted backfills")
        list_parser.add_argument(
            "--limit",
            type=at_least_zero,
            default=50,
            help="number of backfills at most; 0 means all",
        )
        show = self.add_verb(verbs, "show", self.show, "Show one backfill.")
        _add_number(show)
        control_verbs: tuple[tuple[str, Callable[..., None], str], ...] = (
            ("pause", self.pause, "Pause backfills: start no more runs."),
            ("resume", self.resume, "Resume paused backfills."),
            ("cancel", self.cancel, "Cancel backfills."),
            ("delete", self.delete, "Delete ended backfills from the lists."),
        )
        for name, act, help_text in control_verbs:
            subparser = self.add_verb(verbs, name, act, help_text)
            subparser.add_argument("backfills", type=int, nargs="+", metavar="BACKFILL")
        retry = self.add_verb(
            verbs,
            "retry",
            self.retry,
            "Retry the failed partitions of a backfill, and partitions skipped for missing upstream"
            " data or a wait timeout.",
        )
        _add_number(retry)
        retry.add_argument(
            "--code",
            choices=[code.value for code in Code],
            default=Code.SAME.value,
            help="code version: the version of the backfill (same, the default), or the newest"
            " version",
        )
        retry.add_argument(
            "--canceled", action="store_true", help="retry canceled partitions as well"
        )
        change = self.add_verb(
            verbs, "change", self.change, "Change a backfill; of an ended one, the description."
        )
        _add_number(change)
        change.add_argument("--max-active-runs", type=int, metavar="N")
        change.add_argument(
            "--priority",
            type=int,
            metavar="N",
            help="priority: a backfill with a higher number goes first",
        )
        change.add_argument("--order", choices=BackfillOrder.values)
        change.add_argument("--description")
        clone = self.add_verb(
            verbs,
            "clone",
            self.clone,
            "Create a backfill with the same request again, with the newest code and at once unless"
            " options say otherwise. A group or a tag means the present assets.",
        )
        _add_number(clone)
        _add_request_options(clone)
        for subparser in (create, clone, retry):
            subparser.add_argument("--wait", action="store_true", help=_WAIT)

    def create(self, wait: bool, **fields: Any) -> None:
        backfill = request_backfill(request_from_text(**_request_fields(fields)), user=self.actor)
        self._tell_created(backfill, wait)

    def clone(self, backfill: int, wait: bool, **fields: Any) -> None:
        self._tell_created(
            clone_backfill(_require_backfill(backfill), fields, user=self.actor), wait
        )

    def preview(self, **fields: Any) -> None:
        plan = check_backfill(request_from_text(**_request_fields(fields)), user=self.actor)
        from backfills_app.serializers import BackfillPlanSerializer

        data = BackfillPlanSerializer(plan).data
        if self.json:
            self.print_json(data)
            return
        assets, refused = data.pop("assets"), data.pop("refused")
        self.print_facts(data)
        self.say()
        self.print_table(
            _PLANNED, ([asset_plan[name] for name in _PLANNED] for asset_plan in assets)
        )
        for planned in plan.assets:
            for missing in planned.missing_by_asset:
                self.say(f"{planned.asset.name} needs {missing.text}")
            for upstream_gap in planned.upstream_gaps:
                if upstream_gap.reason:
                    self.say(f"{planned.asset.name} needs {upstream_gap.reason}")
                if upstream_gap.excluded:
                    self.say(f"{planned.asset.name} does without {upstream_gap.excluded_text}")
        for sentence in refused:
            self.note(sentence)

    def list(self, asset: str | None, state: str | None, deleted: bool, limit: int) -> None:
        backfills = Backfill.objects.with_code_versions().filter(deleted=deleted).order_by("-id")
        if asset:
            backfills = backfills.choosing(asset_named(asset).name)
        if state:
            backfills = backfills.filter(state=state)
        from backfills_app.serializers import BackfillSerializer

        rows = BackfillSerializer(backfills[:limit] if limit else backfills, many=True).data
        if self.json:
            self.print_json(rows)
            return
        self.print_table(
            ("backfill", "of", "partitions", "state", "progress", "by"),
            (
                (
                    row["id"],
                    row["title"],
                    row["logical_dates"],
                    row["state"],
                    row["progress"]["summary"],
                    row["submitted_by"],
                )
                for row in rows
            ),
        )

    def show(self, backfill: int) -> None:
        from backfills_app.serializers import COUNTS, outcome_of

        backfill_row = _require_backfill(backfill)
        detail, outcome = _detail(backfill_row), outcome_of(backfill_row)
        if self.json:
            self.print_json(detail | outcome)
            return
        code, assets = detail.pop("origin_code"), detail.pop("assets")
        if len(assets) > 1:  # the title names them, and the table below has them all
            del detail["asset"], detail["relative_fileloc"]
        self.print_facts(detail | {"code": f"{len(code.splitlines())} lines (see --json)"})
        self.say()
        names = ("asset", "role", *COUNTS)
        heads = [_COLUMN_HEADS.get(name, name) for name in names]
        self.print_table(heads, ([counts[name] for name in names] for counts in assets))
        self._print_outcome(outcome)

    def pause(self, backfills: Sequence[int]) -> None:
        self._do("pause", pause_backfill, backfills)

    def resume(self, backfills: Sequence[int]) -> None:
        self._do("resume", resume_backfill, backfills)

    def cancel(self, backfills: Sequence[int]) -> None:
        self._do("cancel", cancel_backfill, backfills)

    def delete(self, backfills: Sequence[int]) -> None:
        self._do("delete", delete_backfill, backfills)

    def retry(self, backfill: int, code: str, canceled: bool, wait: bool) -> None:
        retried = retry_failed(
            _require_backfill(backfill), code=code, canceled=canceled, user=self.actor
        )
        versions = retried.assets.order_by().values_list(
            "producer_version", "asset__producer__current_version"
        )
        if code == Code.SAME and (text := code_choice(versions).note_on_original):
            self.note(text)
        if wait:
            self._follow(retried)
        else:
            self._tell(retried)

    def change(self, backfill: int, **changes: Any) -> None:
        self._tell(change_backfill(_require_backfill(backfill), user=self.actor, **changes))

    def _do(self, verb: str, act: Callable[..., Backfill], numbers: Sequence[int]) -> None:
        """Apply an action to one backfill, where a refusal is an error; or to several, where the
        exit status is 1 if some backfills refuse.
        """
        if len(numbers) == 1:
            self._tell(act(_require_backfill(numbers[0]), user=self.actor))
            return
        for number in numbers:
            _require_backfill(number)
        result = in_bulk(verb, numbers, user=self.actor)
        self._tell_result(result)
        if result.refused:
            raise Failed(f"{len(result.refused)} of {len(numbers)} were refused.")

    def _tell_result(self, result: BulkResult) -> None:
        if self.json:
            from backfills_app.api.control import bulk_detail

            self.print_json(bulk_detail(result))
            return
        states = Backfill.objects.filter(pk__in=result.done).values_list("pk", "state")
        for pk, state in states.order_by("pk"):
            self.say(f"Backfill {pk} is {state}.")
        for pk, reason in result.refused.items():
            self.note(f"{pk}: {reason}")

    def _tell(self, backfill: Backfill) -> None:
        if self.json:
            self.print_json(_detail(backfill))
        else:
            state = "deleted" if backfill.deleted else backfill.state
            self.say(f"Backfill {backfill.pk} is {state}.")

    def _tell_created(self, backfill: Backfill, wait: bool) -> None:
        if not self.json:
            other_count = backfill.assets.count() - 1
            others_text = f", and {counted(other_count, 'more asset')}" if other_count else ""
            self.say(
                f"Backfill {backfill.pk} {backfill.name} of {backfill.logical_dates}{others_text}"
            )
        if wait:
            self._follow(backfill)
        elif self.json:
            self.print_json(_detail(backfill))

    def _follow(self, backfill: Backfill) -> None:
        from slicewise_server.web.commands.progress import wait_until_ended

        end = wait_until_ended(backfill.name, lambda: backfill_progress(backfill.pk))
        if self.json:
            self.print_json(_detail(backfill))
        assets = list(backfill_numbered(backfill.pk).assets.all())
        skipped = Counter[str]()
        for group in skipped_by_reason(assets):
            skipped[group.reason] += group.number
        existing_count, elsewhere_count = skipped[SkipReason.EXISTS], skipped[SkipReason.IN_FLIGHT]
        missing_count = skipped.total() - sum(skipped[reason] for reason in SKIPS_WITHOUT_FAILURE)
        if end.state != BackfillState.SUCCEEDED:
            failures = failures_of(backfill)
            for line in error_lines((group.examples[0][0], group.error) for group in failures):
                self.note(line)
            raise Failed(
                f"Backfill {backfill.pk} has ended, {end.state}:"
                f" {failed_count_text(end.failed + missing_count, end.total)}."
            )
        succeeded = counts_of(assets).succeeded
        existing = f", {existing_count:,} skipped as existing" if existing_count else ""
        elsewhere = f", {elsewhere_count:,} left to other runs" if elsewhere_count else ""
        self.note(
            f"Backfill {backfill.pk} has ended, {end.state}:"
            f" {succeeded:,} materialized{existing}{elsewhere}."
        )

    def _print_outcome(self, outcome: dict[str, Any]) -> None:
        if outcome["failures"]:
            self.say()
            rows = ((group["runs"], group["error"]) for group in outcome["failures"])
            self.print_table(("runs", "failed with"), rows)
        if outcome["skipped"]:
            self.say()
            self.print_table(
                ("skipped", "asset", "reason", "had by", "needs", "does without"),
                (
                    (
                        group["partitions"],
                        group["asset"],
                        group["reason"],
                        ", ".join(other_backfill["name"] for other_backfill in group["others"]),
                        "; ".join(
                            upstream_gap["reason"] for upstream_gap in group["upstream_gaps"]
                        ),
                        "; ".join(
                            filter(None, (g["excluded_text"] for g in group["upstream_gaps"]))
                        ),
                    )
                    for group in outcome["skipped"]
                ),
            )
            for hint in filter(None, (group["hint"] for group in outcome["skipped"])):
                self.say(hint)


def _detail(backfill: Backfill) -> Any:
    """Return the present state of the backfill as JSON."""
    from backfills_app.serializers import BackfillDetailSerializer

    return BackfillDetailSerializer(backfill_numbered(backfill.pk)).data


def backfill_progress(pk: int) -> WorkProgress:
    """Return the progress of a backfill."""
    backfill = backfill_numbered(pk)
    counts = counts_of(backfill.assets.all())
    return WorkProgress(
        total=counts.total,
        done=counts.ended,
        # Skipped partitions existed, or another run materialized them; the page of the backfill has
        # the reasons.
        failed=counts.failed + counts.canceled,
        state=backfill.state,
        ended=backfill.ended,
    )


def _add_number(parser: CommandParser) -> None:
    parser.add_argument("backfill", type=int, metavar="BACKFILL")


def _add_request_options(parser: CommandParser) -> None:
    first, last = "key of the first partition: 2013-01-01", "key of the last partition, included"
    for name, help_text in (("start", first), ("end", last)):
        parser.add_argument(
            name, metavar=name.upper(), nargs="?", default=argparse.SUPPRESS, help=help_text
        )
    for name, settings in _REQUEST_OPTIONS:
        parser.add_argument(name, default=argparse.SUPPRESS, **settings)
    parser.add_argument(
        "--allow-holes",
        action="store_true",
        default=argparse.SUPPRESS,
        help="a run may span partitions that the run does not materialize",
    )


def _request_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the request: where assets are named by an option, the words before are
    the first and the last partition.
    """
    asset_options = {name for name in ("assets", "asset_group", "asset_tag") if name in fields}
    words = [fields.pop(name) for name in ("asset", "start", "end") if fields.get(name)]
    names = ("start", "end") if asset_options else ("asset", "start", "end")
    if len(words) > len(names):
        raise Refused(f"Name assets before the dates, or by an option, not both: {words[0]}.")
    if not asset_options and len(words) > 1:
        _refuse_several_names(words)
    if "assets" in fields:
        fields["assets"] = ",".join(fields["assets"])
    return fields | dict(zip(names, words, strict=False))


def _refuse_several_names(words: Sequence[str]) -> None:
    """Refuse a second asset where the first partition is expected: both are words."""
    asset_names = Asset.objects.declared().filter(name__in=words).values_list("name", flat=True)
    declared_names = set(asset_names)
    if {words[0], words[1]} <= declared_names:
        names = ",".join(word for word in words if word in declared_names)
        raise Refused(f"{words[1]} is an asset: name several by --assets {names}.")


def _require_backfill(pk: int) -> Backfill:
    if not 0 < pk <= LARGEST_ID:
        raise Refused(f"There is no backfill {pk}.")
    return backfill_numbered(pk)
