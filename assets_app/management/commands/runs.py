"""``runs``: what runs, what it prints, and stopping it."""

import time

from django.core.management.base import CommandParser

from accounts_app.api.pages import decode_cursor
from accounts_app.management.command import Refused, SlicewiseCommand, at_least_zero
from assets_app.api.assets import asset_named
from assets_app.api.runs import LARGEST_ID, log_page, run_numbered
from assets_app.execution.control import cancel_run
from assets_app.models import Run, RunState
from assets_app.serializers import RunDetailSerializer, RunSerializer

FOLLOW_SECONDS = 1.0


class Command(SlicewiseCommand):
    help = "List, show and cancel runs, and read their logs."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.add_verbs(parser)
        listed = self.add_verb(verbs, "list", self.list, "List runs, newest first.")
        listed.add_argument("--asset", metavar="ASSET")
        listed.add_argument("--state", choices=RunState.values)
        listed.add_argument(
            "--limit", type=at_least_zero, default=50, help="at most so many; 0 for all"
        )
        show = self.add_verb(verbs, "show", self.show, "Show one run with its attempts.")
        logs = self.add_verb(verbs, "logs", self.logs, "Print what a run printed.")
        logs.add_argument("-f", "--follow", action="store_true", help="go on until the run ends")
        cancel = self.add_verb(verbs, "cancel", self.cancel, "Stop a run.")
        for one in (show, logs, cancel):
            one.add_argument("run", type=int, metavar="RUN")

    def list(self, asset: str | None, state: str | None, limit: int) -> None:
        runs = Run.objects.listed().order_by("-id")
        if asset:
            runs = runs.filter(asset=asset_named(asset))
        if state:
            runs = runs.filter(state=state)
        shown = list(runs[:limit] if limit else runs)
        if self.json:
            self.print_json(RunSerializer(shown, many=True).data)
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
                    run.error.partition("\n")[0],
                )
                for run in shown
            ),
        )

    def show(self, run: int) -> None:
        detail = RunDetailSerializer(_run(run)).data
        if self.json:
            self.print_json(detail)
            return
        attempts = detail.pop("attempts")
        self.print_facts(detail)
        for attempt in attempts:
            self.stdout.write("")
            self.print_facts({"attempt": attempt.pop("number")} | attempt)

    def logs(self, run: int, follow: bool) -> None:
        position, entries = None, []
        while True:
            page = log_page(_run(run), position)
            if self.json:
                entries += page["entries"]
            else:
                self._print_log("".join(entry["text"] for entry in page["entries"]))
            if page["ended"] or not (follow or page["entries"]):
                break
            if not page["entries"]:
                time.sleep(FOLLOW_SECONDS)
            elif page["cursor"]:
                position = decode_cursor(page["cursor"])
        if self.json:
            self.print_json(entries)

    def cancel(self, run: int) -> None:
        canceled = cancel_run(_run(run), user=self.actor)
        if self.json:
            self.print_json(RunDetailSerializer(_run(canceled.pk)).data)
        else:
            self.stdout.write(f"Run {canceled.pk} is {canceled.state}.")

    def _print_log(self, text: str) -> None:
        # As it came: a piece may end in the middle of a line.
        if text:
            self.stdout.write(text, ending="")
            self.stdout.flush()


def _run(pk: int) -> Run:
    if not 0 < pk <= LARGEST_ID:
        raise Refused(f"There is no run {pk}.")
    return run_numbered(pk)
