"""``assets``: lists, shows, pauses and materializes assets, and reports writes.

Each verb imports the modules that carry out the verb: a list does not wait for the import of ticks,
syncs and queues.
"""

from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandParser

from accounts_app.management.command import (
    Failed,
    SlicewiseCommand,
    at_least_zero,
    error_lines,
    failed_count_text,
    json_object,
)
from assets_app.management.graphs import print_graph
from assets_app.management.request_progress import request_progress, run_errors, run_states
from assets_app.models import Asset, RunGroup
from assets_app.queries.clock import database_now
from assets_app.queries.counts import StateCounts
from assets_app.queries.lookups import asset_named, no_asset_sentence
from assets_app.queries.overdue import late_counts
from slicewise.texts import counted
from slicewise_server.web.commands.work_progress import WorkProgress
from slicewise_server.web.request_errors import InvalidRequest


class Command(SlicewiseCommand):
    help = "List, show, materialize, pause and unpause assets, show schedules and the graph,"
    help += " report writes, add and remove partitions."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.add_verbs(parser)
        self.add_verb(verbs, "list", self.list, "List declared assets, with counts by state.")
        show = self.add_verb(verbs, "show", self.show, "Show one asset.")
        schedule = self.add_verb(
            verbs, "schedule", self.schedule, "Show the schedule and the last ticks of an asset."
        )
        schedule.add_argument(
            "--limit",
            type=at_least_zero,
            default=20,
            metavar="N",
            help="number of ticks at most; 0 means all",
        )
        graph = self.add_verb(verbs, "graph", self.graph, "Show the edges between assets.")
        graph.add_argument(
            "asset", nargs="?", metavar="ASSET", help="only this asset, and assets near ASSET"
        )
        graph.add_argument(
            "--depth",
            type=int,
            default=1,
            metavar="N",
            help="number of edges from ASSET; 1 by default",
        )
        make = self.add_verb(verbs, "materialize", self.materialize, "Materialize partitions now.")
        pause = self.add_verb(
            verbs, "pause", self.pause, "Pause an asset, and all assets of the same function."
        )
        unpause = self.add_verb(
            verbs, "unpause", self.unpause, "Unpause an asset, and all assets of the same function."
        )
        report = self.add_verb(
            verbs, "report-write", self.report_write, "Report a write by another program."
        )
        add = self.add_verb(
            verbs,
            "add-partitions",
            self.add_partitions,
            "Add runtime partitions by key, for all assets that share the partitions. The partition"
            " of a restored key may be materialized already.",
        )
        remove = self.add_verb(
            verbs,
            "remove-partitions",
            self.remove_partitions,
            "Remove runtime partitions by key, for all assets that share the partitions. A run that"
            " finds a removed key adds the key again.",
        )
        for verb_parser in (show, schedule, make, pause, unpause, report, add, remove):
            verb_parser.add_argument("asset", metavar="ASSET")
        for verb_parser in (add, remove):
            verb_parser.add_argument("keys", nargs="+", metavar="KEY")
        for verb_parser, discovery in ((make, ", or to discover runtime partitions"), (report, "")):
            verb_parser.add_argument(
                "--partition",
                dest="selection",
                metavar="SELECTION",
                default="",
                help="partitions: 2013-01-01, 2013-01..2013-03, 'date=2013 airport=JFK,L*'; omit"
                f" --partition for an asset that is not partitioned{discovery}",
            )
        for name, quantity in (("rows", "number of rows"), ("bytes", "size in bytes")):
            report.add_argument(
                f"--{name}",
                type=at_least_zero,
                metavar="N",
                help=f"{quantity} of a single partition",
            )
        report.add_argument(
            "--partitions",
            metavar="FILE",
            help="in place of --partition, --rows and --bytes: a file with a JSON list of"
            " objects with key, rows and bytes; - reads standard input",
        )
        report.add_argument(
            "--metadata",
            type=json_object,
            default={},
            metavar="JSON",
            help="a JSON object, stored with the report",
        )
        make.add_argument("--params", type=json_object, default={}, metavar="JSON")
        make.add_argument(
            "--strategy", help="partition, range, or the number of partitions per run at most"
        )
        make.add_argument(
            "--wait",
            action="store_true",
            help="wait for the end; exit with 1 unless all runs succeed",
        )

    def list(self) -> None:
        assets = list(Asset.objects.declared().select_related("bundle"))
        counts = StateCounts(assets)
        if self.json:
            from assets_app.serializers import AssetSerializer

            context = {"counts": counts, "late": late_counts(database_now(), assets)}
            self.print_json(AssetSerializer(assets, many=True, context=context).data)
            return
        self.print_table(
            ("asset", "partitions", "group", "paused", "in flight", "materialized", "failed"),
            (
                (
                    asset.name,
                    asset.partition_definition.kind if asset.partition_definition else "-",
                    asset.group,
                    "paused" if asset.paused else "",
                    counts.held(asset),
                    counts.settled(asset).get("materialized", 0),
                    counts.settled(asset).get("failed", 0),
                )
                for asset in assets
            ),
        )

    def show(self, asset: str) -> None:
        from assets_app.api.assets import asset_detail

        detail = asset_detail(asset_named(asset))
        if self.json:
            self.print_json(detail)
        else:
            self.print_facts(detail)

    def schedule(self, asset: str, limit: int) -> None:
        from assets_app.management.schedules import print_schedule

        print_schedule(self, asset_named(asset), limit)

    def graph(self, asset: str | None, depth: int) -> None:
        print_graph(self, asset, depth)

    def pause(self, asset: str) -> None:
        self._set_paused(asset, True)

    def unpause(self, asset: str) -> None:
        self._set_paused(asset, False)

    def materialize(
        self,
        asset: str,
        selection: str,
        params: dict[str, Any],
        strategy: str | None,
        wait: bool,
    ) -> None:
        from assets_app.api.assets import request_detail
        from assets_app.execution.request.requests import MaterializeRequest, materialize
        from slicewise_server.web.commands.progress import wait_until_ended

        request = MaterializeRequest(
            asset=_asset(asset), selection=selection, params=params, strategy=strategy
        )
        group = materialize(request, user=self.actor)
        detail = request_detail(group)
        partitions = detail["partition_count"]
        if not self.json:
            runs = counted(detail["run_count"], "run")
            purpose = (
                f"for {counted(partitions, 'partition')}"
                if partitions
                else "to discover partitions"
            )
            self.note(f"{runs} {purpose}.")
            if detail["in_flight"]:
                self.note(
                    "Left out, because another run holds the partitions:"
                    f" {', '.join(detail['in_flight'])}"
                )
            if detail["earlier_missing"]:
                self.note(f"Missing earlier partitions: {', '.join(detail['earlier_missing'])}")
        progress = wait_until_ended(asset, lambda: request_progress(group)) if wait else None
        if self.json:
            after = request_detail(group) | {"states": run_states(group)} if wait else {}
            self.print_json(detail | after)
        if progress:
            self._print_end(group, progress, is_search=not partitions)

    def _print_end(self, group: RunGroup, progress: WorkProgress, *, is_search: bool) -> None:
        errors = run_errors(group)
        for line in error_lines(errors):
            self.note(line)
        if errors and is_search:
            raise Failed("The run that discovers partitions has not succeeded.")
        if errors:
            raise Failed(f"{failed_count_text(progress.failed, progress.total)}.")
        self.note(
            f"{counted(progress.done, 'partition')}"
            f" {'discovered and ' if is_search else ''}materialized."
        )

    def report_write(
        self,
        asset: str,
        selection: str,
        rows: int | None,
        bytes: int | None,
        partitions: str | None,
        metadata: dict[str, Any],
    ) -> None:
        from assets_app.execution.request import reporting
        from assets_app.management.partition_file import read_partition_file

        listed = read_partition_file(partitions) if partitions else ()
        write = reporting.ReportedWrite(
            asset=_asset(asset),
            selection=selection,
            rows=rows,
            bytes=bytes,
            partitions=listed,
            metadata=metadata,
        )
        report = reporting.report_write(write, user=self.actor)
        if self.json:
            from assets_app.api.events import report_detail

            self.print_json(report_detail(report))
        else:
            self.say(f"Recorded as written: {asset} {report.selection}".rstrip() + ".")

    def add_partitions(self, asset: str, keys: Sequence[str]) -> None:
        from assets_app.execution.request.runtime_partitions import add_partitions

        self._print_keys("Added", add_partitions(_asset(asset), keys, user=self.actor))

    def remove_partitions(self, asset: str, keys: Sequence[str]) -> None:
        from assets_app.execution.request.runtime_partitions import remove_partitions

        self._print_keys("Removed", remove_partitions(_asset(asset), keys, user=self.actor))

    def _print_keys(self, participle: str, keys: Sequence[str]) -> None:
        if self.json:
            self.print_json({"keys": list(keys)})
        else:
            self.say(f"{participle}: {', '.join(keys) or 'nothing'}.")

    def _set_paused(self, name: str, paused: bool) -> None:
        from assets_app.catalogue.pausing import set_paused

        names = set_paused(_asset(name), paused, user=self.actor) or [name]
        if self.json:
            from assets_app.api.assets import asset_detail

            self.print_json(asset_detail(asset_named(name)))
        else:
            self.say(f"{'Paused' if paused else 'Unpaused'}: {', '.join(names)}.")


def _asset(name: str) -> Asset:
    asset = Asset.objects.declared().filter(name=name).first()
    if asset is None:
        raise InvalidRequest({"asset": no_asset_sentence(name)})
    return asset
