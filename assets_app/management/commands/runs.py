"""``runs``: lists and shows runs, prints logs, cancels, retries and re-runs."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import CommandParser

from accounts_app.management.command import (
    Failed,
    Refused,
    SlicewiseCommand,
    at_least_zero,
    partition_text,
)
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.request.retrying import Code, rerun, retry_group, retry_runs
from assets_app.models import Run, RunState
from assets_app.queries.code_choices import code_choice_of_runs
from assets_app.queries.log_attempts import AttemptLines
from assets_app.queries.lookups import LARGEST_ID, asset_named, run_numbered
from slicewise.texts import masked_text

FOLLOW_SECONDS = 1.0


class Command(SlicewiseCommand):
    help = "List, show, cancel and retry runs, and read logs of runs."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.add_verbs(parser)
        list_parser = self.add_verb(verbs, "list", self.list, "List runs, newest first.")
        list_parser.add_argument("--asset", metavar="ASSET")
        list_parser.add_argument("--state", choices=RunState.values)
        list_parser.add_argument(
            "--limit", type=at_least_zero, default=50, help="number of runs at most; 0 means all"
        )
        show = self.add_verb(verbs, "show", self.show, "Show one run, with all attempts.")
        logs = self.add_verb(verbs, "logs", self.logs, "Print the output of a run.")
        logs.add_argument(
            "-f", "--follow", action="store_true", help="follow the output until the run ends"
        )
        cancel = self.add_verb(verbs, "cancel", self.cancel, "Cancel a run.")
        retry = self.add_verb(
            verbs, "retry", self.retry, "Queue failed, canceled or skipped runs again."
        )
        retry.add_argument("runs", type=int, nargs="*", metavar="RUN")
        retry.add_argument(
            "--group", type=int, help="number of a run group: retry all failed runs of the group"
        )
        rerun_parser = self.add_verb(
            verbs, "rerun", self.rerun, "Materialize the partitions of an ended run again."
        )
        for verb_parser in (show, logs, cancel, rerun_parser):
            verb_parser.add_argument("run", type=int, metavar="RUN")
        for verb_parser in (retry, rerun_parser):
            verb_parser.add_argument(
                "--code",
                choices=[code.value for code in Code],
                default=Code.SAME.value,
                help="code version: the version of the run, or the newest version",
            )

    def list(self, asset: str | None, state: str | None, limit: int) -> None:
        runs = Run.objects.listed().order_by("-id")
        if asset:
            runs = runs.filter(asset=asset_named(asset))
        if state:
            runs = runs.filter(state=state)
        rows = list(runs[:limit] if limit else runs)
        if self.json:
            from assets_app.serializers import RunSerializer

            self.print_json(RunSerializer(rows, many=True).data)
            return
        self.print_table(
            ("run", "asset", "selection", "partitions", "state", "trigger", "attempts", "error"),
            (
                (
                    run.pk,
                    run.asset.name,
                    run.selection,
                    run.partition_count,
                    run.state,
                    run.trigger,
                    run.attempt_count,
                    masked_text(run.error).partition("\n")[0],
                )
                for run in rows
            ),
        )

    def show(self, run: int) -> None:
        from assets_app.serializers import RunDetailSerializer

        row = _run(run)
        detail = RunDetailSerializer(row).data
        if self.json:
            self.print_json(detail)
            return
        attempts, validations = detail.pop("attempts"), detail.pop("validations")
        lines = [_line(partition) for partition in detail.pop("partition_list")]
        more = detail.pop("partition_list_next")
        self.print_facts(detail | _origin(row) | {"partition_list": lines})
        for result in validations:
            outcome = "passed" if result["passed"] else "failed"
            self.say(f"{outcome}  {result['asset']}: {result['name']} {result['message']}")
        for attempt in attempts:
            self.say()
            steps = [_step_line(step) for step in attempt.pop("steps")]
            self.print_facts({"attempt": attempt.pop("number")} | attempt | {"steps": steps})
        if more:
            self.note(f"These are the first {len(lines):,} partitions; the others: GET {more}")

    def logs(self, run: int, follow: bool) -> None:
        from assets_app.api.runs import log_page
        from slicewise_server.web.api.pages import decode_cursor

        position, entries, has_printed = None, [], False
        headings = AttemptLines(_run(run))
        while True:
            page = log_page(_run(run), position)
            has_printed = has_printed or bool(page["entries"])
            if self.json:
                entries += page["entries"]
            else:
                self._print_log("".join(map(headings.with_heading, page["entries"])))
            if page["ended"] or not (follow or page["entries"]):
                break
            if not page["entries"]:
                time.sleep(FOLLOW_SECONDS)
            elif page["cursor"]:
                position = decode_cursor(page["cursor"])
        if self.json:
            self.print_json(entries)
        elif not has_printed:
            self.note(f"Run {run} has printed nothing. See: slicewise runs show {run}")

    def cancel(self, run: int) -> None:
        canceled = cancel_run(_run(run), user=self.actor)
        if self.json:
            from assets_app.serializers import RunDetailSerializer

            self.print_json(RunDetailSerializer(_run(canceled.pk)).data)
        else:
            self.say(f"Run {canceled.pk} is {canceled.state}.")

    def retry(self, runs: Sequence[int], group: int | None, code: str) -> None:
        from assets_app.api.retrying import group_numbered, retried_detail

        if bool(runs) == (group is not None):
            raise Refused("Name the runs by number, or a group by --group.")
        if group is None:
            retried = retry_runs([_run(pk).pk for pk in runs], code=code, user=self.actor)
        elif not 0 < group <= LARGEST_ID:
            raise Refused(f"There is no group {group}.")
        else:
            retried = retry_group(group_numbered(group), code=code, user=self.actor)
        for reason in retried.refused.values():
            self.note(reason)
        self._note_code(code, retried.runs)
        if self.json:
            self.print_json(retried_detail(retried))
        else:
            for pk in retried.runs:
                self.say(f"Run {pk} is queued again.")
        if retried.refused:
            raise Failed(f"{len(retried.refused)} of the runs could not be retried.")

    def _note_code(self, code: str, run_ids: Sequence[int]) -> None:
        if code == Code.SAME and (text := code_choice_of_runs(run_ids).note_on_original):
            self.note(text)

    def rerun(self, run: int, code: str) -> None:
        group = rerun(_run(run), code=code, user=self.actor)
        self._note_code(code, [run])
        if self.json:
            from assets_app.api.assets import request_detail

            self.print_json(request_detail(group))
            return
        self.say(f"Run {group.runs.get().pk} materializes the partitions of run {run} again.")
        if group.in_flight:
            self.note(
                f"Left out, because another run holds the partitions: {', '.join(group.in_flight)}"
            )

    def _print_log(self, text: str) -> None:
        if text:
            self.print_text(text)


def _run(pk: int) -> Run:
    if not 0 < pk <= LARGEST_ID:
        raise Refused(f"There is no run {pk}.")
    return run_numbered(pk)


def _origin(run: Run) -> dict[str, object]:
    """Return the tick, if any, the group and the code's version of a run, in words for people."""
    version = run.producer_version
    tick = {"tick": f"{run.tick.at:%Y-%m-%d %H:%M:%S} UTC"} if run.tick else {}
    return {
        **tick,
        "group": f"{run.group_id} ({run.group.kind} {run.group.label})".replace(" )", ")"),
        "code": f"{version.file} of version {version.bundle_version_id}"
        f" ({version.bundle_version.digest[:12]})",
    }


def _step_line(step: Mapping[str, Any]) -> str:
    """Return a step of an attempt as people read it."""
    times = "" if step["started_at"] is None else f", {step['started_at']} to {step['ended_at']}"
    error = f" ({step['error']})" if step["error"] else ""
    return f"{step['step']} {step['name']}: {step['state']}{times}{error}"


def _line(partition: Mapping[str, Any]) -> str:
    """Return a partition of a run as people read it."""
    error = f" ({partition['error']})" if partition.get("error") else ""
    return f"{partition_text(partition['key'])} {partition['state']}{error}"
