"""``partitions``: which partitions an asset has, and how they stand."""

from collections.abc import Iterator

from django.core.management.base import CommandParser
from django.utils import timezone

from accounts_app.management.command import SlicewiseCommand, at_least_zero
from assets_app.api.assets import asset_named
from assets_app.api.partition_pages import STATES, PartitionLine, PartitionQuery, partition_page
from assets_app.models import Asset
from assets_app.serializers import PartitionSerializer

PAGE = 1000


class Command(SlicewiseCommand):
    help = "List partitions of an asset in window order, also those never made."

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_common(parser, self.partitions)
        parser.add_argument("asset", metavar="ASSET")
        parser.add_argument(
            "selection",
            metavar="SELECTION",
            nargs="?",
            default="",
            help="2013-01, 2013-01-01..2013-03-31, 'date=2013 airport=JFK,L*';"
            " without it, all whose window is over",
        )
        parser.add_argument("--state", choices=STATES, default="")
        parser.add_argument(
            "--limit", type=at_least_zero, default=100, help="at most so many; 0 for all"
        )

    def partitions(self, asset: str, selection: str, state: str, limit: int) -> None:
        found = lines(asset_named(asset), selection, state)
        shown = (
            [line for line, _ in zip(found, range(limit), strict=False)] if limit else list(found)
        )
        if self.json:
            self.print_json(PartitionSerializer(shown, many=True).data)
        else:
            self.print_table(
                ("partition", "state", "version", "run", "rows", "bytes", "materialized at (UTC)"),
                (
                    (
                        line.key,
                        line.state,
                        line.version or None,
                        line.run,
                        line.rows,
                        line.bytes,
                        line.materialized_at and f"{line.materialized_at:%Y-%m-%d %H:%M:%S}",
                    )
                    for line in shown
                ),
            )
        if limit and next(found, None) is not None:
            self.note(f"There are more: --limit 0 shows all, --limit {10 * limit} the next ones.")


def lines(asset: Asset, selection: str, state: str) -> Iterator[PartitionLine]:
    """All lines, a page at a time."""
    now, position = timezone.now(), None
    while True:
        query = PartitionQuery(
            asset=asset, now=now, selection=selection, state=state, position=position, size=PAGE
        )
        page, position = partition_page(query)
        yield from page
        if position is None:
            return
