"""``backfill``: requests to make partitions of the past."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from django.core.management.base import CommandParser

from accounts_app.management.command import (
    Failed,
    Refused,
    SlicewiseCommand,
    at_least_zero,
    json_object,
)
from accounts_app.management.progress import Standing, wait_until_ended
from assets_app.api.assets import asset_named
from assets_app.api.runs import LARGEST_ID
from assets_app.execution.retrying import Code
from assets_app.models import NOTHING_LACKS
from backfills_app.api.backfills import backfill_numbered, detail_of
from backfills_app.api.control import bulk_detail
from backfills_app.models import Backfill, BackfillOrder, BackfillState, ExistingPolicy
from backfills_app.queries.skips import skipped_by_reason
from backfills_app.serializers import COUNTS, BackfillPlanSerializer, BackfillSerializer, outcome_of
from backfills_app.services import (
    BulkResult,
    cancel_backfill,
    change_backfill,
    check_backfill,
    clone_backfill,
    create_backfill,
    delete_backfill,
    in_bulk,
    pause_backfill,
    request_from_text,
    resume_backfill,
    retry_failed,
)

_PLANNED = ("asset", "total", "existing", "in_flight", "missing_upstream", "to_make", "runs")
_WAIT = "wait for the end; exit with 1 unless all is there"
# What is left out is for the service to fill in.
_TERMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--selection", {"help": "instead of START and END, in the selection grammar"}),
    ("--description", {}),
    ("--max-active-runs", {"metavar": "N", "help": "how many runs may run at once"}),
    ("--order", {"choices": BackfillOrder.values, "help": "which partitions come first"}),
    ("--strategy", {"help": "partition, range, or how many partitions a run makes at most"}),
    ("--existing", {"choices": ExistingPolicy.values, "help": "which of the partitions to make"}),
    ("--downstream", {"metavar": "NAMES", "help": "none, all, or assets with commas between"}),
    ("--code-version", {"metavar": "V", "help": "number or digest of a version of the bundle"}),
    ("--start-at", {"metavar": "TIME", "help": "nothing starts before; in the asset's zone"}),
    ("--params", {"type": json_object, "metavar": "JSON"}),
)


class Command(SlicewiseCommand):
    help = "Create, preview, list, show, change and control backfills."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.add_verbs(parser)
        create = self.add_verb(verbs, "create", self.create, "Make partitions of the past.")
        preview = self.add_verb(verbs, "preview", self.preview, "Say what create would do.")
        for one in (create, preview):
            one.add_argument("asset", metavar="ASSET")
            _add_terms(one)
        listed = self.add_verb(verbs, "list", self.list, "List backfills, newest first.")
        listed.add_argument("--asset", metavar="ASSET")
        listed.add_argument("--state", choices=BackfillState.values)
        listed.add_argument("--deleted", action="store_true", help="those that were deleted")
        listed.add_argument(
            "--limit", type=at_least_zero, default=50, help="at most so many; 0 for all"
        )
        show = self.add_verb(verbs, "show", self.show, "Show one backfill.")
        _add_number(show)
        several: tuple[tuple[str, Callable[..., None], str], ...] = (
            ("pause", self.pause, "Start nothing more of backfills."),
            ("resume", self.resume, "Let paused backfills go on."),
            ("cancel", self.cancel, "Stop backfills."),
            ("delete", self.delete, "Take backfills that have ended off the lists."),
        )
        for name, act, about in several:
            one = self.add_verb(verbs, name, act, about)
            one.add_argument("backfills", type=int, nargs="+", metavar="BACKFILL")
        retry = self.add_verb(verbs, "retry", self.retry, "Try once more what has failed.")
        _add_number(retry)
        retry.add_argument("--code", choices=[code.value for code in Code], default=Code.SAME.value)
        change = self.add_verb(verbs, "change", self.change, "Change one while it runs.")
        _add_number(change)
        change.add_argument("--max-active-runs", type=int, metavar="N")
        change.add_argument("--priority", type=int, metavar="N", help="higher goes first")
        change.add_argument("--order", choices=BackfillOrder.values)
        change.add_argument("--description")
        clone = self.add_verb(verbs, "clone", self.clone, "Ask for the same again.")
        _add_number(clone)
        _add_terms(clone)
        for one in (create, clone, retry):
            one.add_argument("--wait", action="store_true", help=_WAIT)

    def create(self, wait: bool, asset: str, **fields: Any) -> None:
        backfill = create_backfill(request_from_text(asset, **fields), user=self.actor)
        self._tell_created(backfill, wait)

    def clone(self, backfill: int, wait: bool, **fields: Any) -> None:
        self._tell_created(clone_backfill(_backfill(backfill), fields, user=self.actor), wait)

    def preview(self, asset: str, **fields: Any) -> None:
        plan = check_backfill(request_from_text(asset, **fields), user=self.actor)
        data = BackfillPlanSerializer(plan).data
        if self.json:
            self.print_json(data)
            return
        assets, refused = data.pop("assets"), data.pop("refused")
        self.print_facts(data)
        self.stdout.write("")
        self.print_table(_PLANNED, ([each[name] for name in _PLANNED] for each in assets))
        for sentence in refused:
            self.note(sentence)

    def list(self, asset: str | None, state: str | None, deleted: bool, limit: int) -> None:
        backfills = Backfill.objects.told().filter(deleted=deleted).order_by("-id")
        if asset:
            backfills = backfills.filter(asset=asset_named(asset))
        if state:
            backfills = backfills.filter(state=state)
        found = BackfillSerializer(backfills[:limit] if limit else backfills, many=True).data
        if self.json:
            self.print_json(found)
            return
        self.print_table(
            ("backfill", "asset", "partitions", "state", "%", "made", "failed", "total", "by"),
            (
                (
                    each["id"],
                    each["asset"],
                    each["logical_dates"],
                    each["state"],
                    each["progress"]["percent"],
                    each["counts"]["succeeded"],
                    each["counts"]["failed"],
                    each["counts"]["total"],
                    each["submitted_by"],
                )
                for each in found
            ),
        )

    def show(self, backfill: int) -> None:
        shown = _backfill(backfill)
        detail, outcome = detail_of(shown.pk), outcome_of(shown)
        if self.json:
            self.print_json(detail | outcome)
            return
        code, assets = detail.pop("origin_code"), detail.pop("assets")
        self.print_facts(detail | {"code": f"{len(code.splitlines())} lines (see --json)"})
        self.stdout.write("")
        names = ("asset", *COUNTS)
        self.print_table(names, ([each[name] for name in names] for each in assets))
        self._print_outcome(outcome)

    def pause(self, backfills: Sequence[int]) -> None:
        self._do("pause", pause_backfill, backfills)

    def resume(self, backfills: Sequence[int]) -> None:
        self._do("resume", resume_backfill, backfills)

    def cancel(self, backfills: Sequence[int]) -> None:
        self._do("cancel", cancel_backfill, backfills)

    def delete(self, backfills: Sequence[int]) -> None:
        self._do("delete", delete_backfill, backfills)

    def retry(self, backfill: int, code: str, wait: bool) -> None:
        again = retry_failed(_backfill(backfill), code=code, user=self.actor)
        if wait:
            self._follow(again)
        else:
            self._tell(again)

    def change(self, backfill: int, **changes: Any) -> None:
        self._tell(change_backfill(_backfill(backfill), user=self.actor, **changes))

    def _do(self, verb: str, act: Callable[..., Backfill], numbers: Sequence[int]) -> None:
        """To one: refused as a whole. To several: to each that takes it, 1 if some did not."""
        if len(numbers) == 1:
            self._tell(act(_backfill(numbers[0]), user=self.actor))
            return
        for number in numbers:
            _backfill(number)
        result = in_bulk(verb, numbers, user=self.actor)
        self._tell_result(result)
        if result.refused:
            raise Failed(f"{len(result.refused)} of {len(numbers)} were refused.")

    def _tell_result(self, result: BulkResult) -> None:
        if self.json:
            self.print_json(bulk_detail(result))
            return
        states = Backfill.objects.filter(pk__in=result.done).values_list("pk", "state")
        for pk, state in states.order_by("pk"):
            self.stdout.write(f"Backfill {pk} is {state}.")
        for pk, reason in result.refused.items():
            self.note(f"{pk}: {reason}")

    def _tell(self, backfill: Backfill) -> None:
        if self.json:
            self.print_json(detail_of(backfill.pk))
        else:
            state = "deleted" if backfill.deleted else backfill.state
            self.stdout.write(f"Backfill {backfill.pk} is {state}.")

    def _tell_created(self, backfill: Backfill, wait: bool) -> None:
        if not self.json:
            self.stdout.write(f"Backfill {backfill.pk} {backfill.name} of {backfill.logical_dates}")
        if wait:
            self._follow(backfill)
        elif self.json:
            self.print_json(detail_of(backfill.pk))

    def _follow(self, backfill: Backfill) -> None:
        end = wait_until_ended(backfill.name, lambda: standing_of(backfill.pk))
        if self.json:
            self.print_json(detail_of(backfill.pk))
        if end.state != BackfillState.SUCCEEDED:
            skipped = skipped_by_reason(backfill_numbered(backfill.pk).assets.all())
            lacking = sum(each.number for each in skipped if each.reason not in NOTHING_LACKS)
            raise Failed(
                f"Backfill {backfill.pk} has ended, {end.state}:"
                f" {end.failed + lacking} of {end.total} partitions were not made."
            )

    def _print_outcome(self, outcome: dict[str, Any]) -> None:
        if outcome["failures"]:
            self.stdout.write("")
            rows = ((each["runs"], each["error"]) for each in outcome["failures"])
            self.print_table(("runs", "failed with"), rows)
        if outcome["skipped"]:
            self.stdout.write("")
            self.print_table(
                ("skipped", "asset", "since", "had by"),
                (
                    (
                        each["partitions"],
                        each["asset"],
                        each["reason"],
                        ", ".join(other["name"] for other in each["others"]),
                    )
                    for each in outcome["skipped"]
                ),
            )


def standing_of(pk: int) -> Standing:
    """How far a backfill is."""
    backfill = backfill_numbered(pk)
    assets = list(backfill.assets.all())
    return Standing(
        total=sum(asset.total for asset in assets),
        done=sum(asset.done for asset in assets),
        # What was skipped was there, or another run made it; the reasons are on its page.
        failed=sum(asset.failed + asset.canceled for asset in assets),
        state=backfill.state,
        ended=backfill.ended,
    )


def _add_number(parser: CommandParser) -> None:
    parser.add_argument("backfill", type=int, metavar="BACKFILL")


def _add_terms(parser: CommandParser) -> None:
    first, last = "key of the first partition: 2013-01-01", "key of the last one, included"
    for name, about in (("start", first), ("end", last)):
        parser.add_argument(
            name, metavar=name.upper(), nargs="?", default=argparse.SUPPRESS, help=about
        )
    for name, settings in _TERMS:
        parser.add_argument(name, default=argparse.SUPPRESS, **settings)
    parser.add_argument(
        "--allow-holes",
        action="store_true",
        default=argparse.SUPPRESS,
        help="a run may reach over partitions that it does not make",
    )


def _backfill(pk: int) -> Backfill:
    if not 0 < pk <= LARGEST_ID:
        raise Refused(f"There is no backfill {pk}.")
    return backfill_numbered(pk)
