"""``partitions``: lists partitions of an asset, verifies data, and removes old data."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import CommandParser

from accounts_app.management.command import (
    Failed,
    SlicewiseCommand,
    at_least_zero,
    partition_text,
)
from assets_app.api.partition_lines import PartitionLine
from assets_app.api.partition_pages import STATES, PartitionQuery, partition_page
from assets_app.execution.request.forgetting import forget_partitions
from assets_app.execution.request.orphans import Orphan, find_orphans, remove_orphans
from assets_app.execution.request.verifying import verify_partitions
from assets_app.models import Asset
from assets_app.queries.clock import database_now
from assets_app.queries.lookups import asset_named
from slicewise.io import repair_advice
from slicewise.texts import counted

PAGE = 1000
VERBS = ("list", "verify", "forget", "orphans")


class Command(SlicewiseCommand):
    help = "List, verify and forget partitions of an asset; remove data of orphaned partitions."

    def create_parser(self, prog_name: str, subcommand: str, **settings: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **settings)
        parse = parser.parse_args

        def parse_with_verb(args: Sequence[str] | None = None, namespace: Any = None) -> Any:
            return parse(with_verb(args or []), namespace)

        parser.parse_args = parse_with_verb  # type: ignore[method-assign, assignment]
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = self.add_verbs(parser)
        list_parser = self.add_verb(
            verbs, "list", self.list, "List partitions in window order, also missing partitions."
        )
        verify = self.add_verb(
            verbs,
            "verify",
            self.verify,
            "Compare the data of partitions with the record; exit with 1 on a difference.",
        )
        forget = self.add_verb(
            verbs,
            "forget",
            self.forget,
            "Make partitions missing again; the data is not changed.",
        )
        for verb in (list_parser, verify, forget):
            verb.add_argument("asset", metavar="ASSET")
            verb.add_argument(
                "selection",
                metavar="SELECTION",
                nargs="?",
                default="",
                help="2013-01, 2013-01-01..2013-03-31, 'date=2013 airport=JFK,L*'"
                + ("; only an asset that is not partitioned has none" if verb is forget else ""),
            )
        list_parser.add_argument("--state", choices=STATES, default="")
        list_parser.add_argument(
            "--limit",
            type=at_least_zero,
            default=100,
            help="number of partitions at most; 0 means all",
        )

        orphans = self.add_verb(
            verbs,
            "orphans",
            self.orphans,
            "List orphaned partitions: on record, and no longer in the definition.",
        )
        orphans.add_argument("asset", metavar="ASSET")
        orphans.add_argument(
            "--remove", action="store_true", help="remove the data after a question"
        )
        orphans.add_argument("--yes", action="store_true", help="with --remove: ask no question")

    def list(self, asset: str, selection: str, state: str, limit: int) -> None:
        all_lines = lines(asset_named(asset), selection, state)
        shown_lines = (
            [line for line, _ in zip(all_lines, range(limit), strict=False)]
            if limit
            else [*all_lines]
        )
        if self.json:
            from assets_app.serializers import PartitionSerializer

            self.print_json(PartitionSerializer(shown_lines, many=True).data)
        else:
            self.print_table(
                (
                    "partition",
                    "state",
                    "version",
                    "run",
                    "rows",
                    "bytes",
                    "materialized at (UTC)",
                    "reason",
                ),
                (
                    (
                        partition_text(line.key),
                        ", ".join(filter(None, (line.state, line.lateness, "stale" * line.stale))),
                        line.version or None,
                        line.run,
                        line.rows,
                        line.bytes,
                        line.materialized_at and f"{line.materialized_at:%Y-%m-%d %H:%M:%S}",
                        line.reason,
                    )
                    for line in shown_lines
                ),
            )
        if limit and next(all_lines, None) is not None:
            self.note(f"There are more: --limit 0 shows all, --limit {10 * limit} more.")

    def verify(self, asset: str, selection: str) -> None:
        verification = verify_partitions(asset_named(asset), selection, user=self.actor)
        differing = verification.differing
        if self.json:
            from assets_app.api.verifying import verification_detail

            self.print_json(verification_detail(verification))
        elif differing:
            self.print_table(
                ("partition", "found", "folder"),
                ((partition_text(row.key), row.reason, row.path) for row in differing),
            )
        compared = counted(verification.compared, "partition")
        if differing:
            verb = "differs" if len(differing) == 1 else "differ"
            raise Failed(
                f"{len(differing):,} of {compared} {verb} from the record."
                f" {repair_advice(differing)}. To make partitions missing for backfills:"
                " slicewise partitions forget."
            )
        self.note(f"{compared} compared, all as recorded.")

    def forget(self, asset: str, selection: str) -> None:
        keys = forget_partitions(asset_named(asset), selection, user=self.actor)
        if self.json:
            self.print_json({"keys": keys})
        else:
            number = counted(len(keys), "partition")
            self.say(f"Made {number} of {asset} missing again. The data was not changed.")

    def orphans(self, asset: str, remove: bool, yes: bool) -> None:
        from assets_app.api.orphans import orphan_list

        asset_row = asset_named(asset)
        orphans = find_orphans(asset_row)
        removable = [orphan for orphan in orphans if not orphan.kept]
        if not self.json:
            self.print_orphans(orphans)
            self.note(f"{counted(len(orphans), 'partition')} that {asset} no longer has.")
        if not remove or not removable:
            if self.json:
                self.print_json(orphan_list(orphans))
            return
        if not yes and not self.agrees(
            f"Remove the data of {counted(len(removable), 'partition')}?"
        ):
            raise Failed("Nothing was removed.")
        removable_ids = {orphan.row.partition_id for orphan in removable}
        removal = remove_orphans(asset_row, user=self.actor, only=removable_ids)
        if self.json:
            self.print_json(
                {"removed": orphan_list(removal.removed), "kept": orphan_list(removal.kept)}
            )
        else:
            self.print_orphans(removal.kept)
            self.say(f"Removed the data of {counted(len(removal.removed), 'partition')}.")
        if removal.kept:
            raise Failed(f"The data of {counted(len(removal.kept), 'partition')} was kept.")

    def print_orphans(self, orphans: Sequence[Orphan]) -> None:
        if orphans:
            self.print_table(
                ("partition", "folder", "rows", "bytes", "materialized at (UTC)", "kept because"),
                (
                    (
                        partition_text(orphan.row.key),
                        orphan.row.path,
                        orphan.row.rows,
                        orphan.row.bytes,
                        orphan.row.materialized_at
                        and f"{orphan.row.materialized_at:%Y-%m-%d %H:%M:%S}",
                        orphan.kept,
                    )
                    for orphan in orphans
                ),
            )

    def agrees(self, question: str) -> bool:
        """Ask the person at the terminal; raise Failed without a terminal."""
        if not sys.stdin.isatty():
            raise Failed(f"{question} Standard input is no terminal: give --yes.")
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def with_verb(words: Sequence[str]) -> Sequence[str]:
    """Return the words, with the verb ``list`` in front if the verb was left out."""
    has_verb = bool(words) and (words[0] in VERBS or words[0] in {"-h", "--help"})
    return words if has_verb else ["list", *words]


def lines(asset: Asset, selection: str, state: str) -> Iterator[PartitionLine]:
    """Yield all lines, read a page at a time."""
    now, position = database_now(), None
    while True:
        query = PartitionQuery(
            asset=asset, now=now, selection=selection, state=state, position=position, size=PAGE
        )
        page, position = partition_page(query)
        yield from page
        if position is None:
            return
