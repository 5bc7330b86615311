"""Numbers of partitions of the assets in the graph, by state: few statements for all assets.

A state that is counted in another way is one more entry of ``_COUNTERS``, and of `URGENT_FIRST`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import Min, QuerySet
from django.db.utils import OperationalError
from psycopg.errors import QueryCanceled

from assets_app.models import Asset, AssetPartition, PartitionState
from assets_app.queries.counts import StateCounts
from assets_app.queries.grid import expected_count
from assets_app.queries.overdue import NONE_LATE, LateCounts, late_counts
from assets_app.queries.stale_counts import stale_counts
from partitions_app.state_badges import (
    CANCELED,
    FAILED,
    LATE,
    MISSING,
    OVERDUE,
    QUEUED,
    RUNNING,
    SKIPPED,
    STALE,
    URGENT_FIRST,
    StateBadge,
)
from slicewise_server.web.statement_limits import statement_limit

COMPLETE = StateBadge("complete", "Complete", "check", "good", "All expected partitions exist.")
NOTHING_DUE = StateBadge(
    "not-yet-due", "Nothing due yet", "hourglass", "neutral", "No partition is expected yet."
)
# An asset has the look of the first state that it has partitions in.
GRAPH_LOOKS = (*URGENT_FIRST, COMPLETE)

# A graph that shows no stale counts is better than one that occupies the database.
_LONGEST_MILLISECONDS = 1_500


def _stale_numbers(assets: Sequence[Asset]) -> Mapping[int, int] | None:
    """Return the numbers of stale partitions by asset id; None if the count takes too long."""
    try:
        with statement_limit(_LONGEST_MILLISECONDS):
            counts = stale_counts(assets)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            return None
        raise
    return {asset_id: count.number for asset_id, count in counts.items()}


# By name of the state: the numbers by asset id, or None where the count would take too long.
_COUNTERS: dict[str, Callable[[Sequence[Asset]], Mapping[int, int] | None]] = {
    STALE.name: _stale_numbers
}


@dataclass(frozen=True, slots=True)
class GraphStates:
    """Numbers of partitions by state and by name of the asset, without zeros, and the states that
    could not be counted.
    """

    counts: dict[str, dict[str, int]]
    not_counted: list[str]


def graph_states(assets: Sequence[Asset], now: datetime) -> GraphStates:
    """Return the numbers of partitions of the assets by state, with those expected by now."""
    counts = StateCounts(assets)
    firsts = _first_starts(assets)
    late = late_counts(now, assets)
    further = {state: counter(assets) for state, counter in _COUNTERS.items()}
    return GraphStates(
        {
            asset.name: _numbers(asset, counts, expected_count(asset, now, firsts.get(asset.pk)))
            | _late(late.get(asset.pk, NONE_LATE))
            | {
                state: numbers[asset.pk]
                for state, numbers in further.items()
                if numbers and numbers.get(asset.pk)
            }
            for asset in assets
        },
        [state for state, numbers in further.items() if numbers is None],
    )


def counted_assets() -> QuerySet[Asset]:
    """Select the declared assets with the columns that their counts need; assets with an equal
    definition share its row, whose segments may be thousands.
    """
    rows = Asset.objects.filter(active=True).prefetch_related("partition_definition")
    return rows.only("name", "active", "activated_at", "partition_definition_id").order_by("name")


class NumberedState(NamedTuple):
    """The look of a state, and the number of partitions in the state; 0 where none is counted."""

    look: StateBadge
    number: int

    @property
    def words(self) -> str:
        """The number and the state: ``3 failed``."""
        if not self.number:
            return self.look.label
        state = "materialized" if self.look is COMPLETE else self.look.label.lower()
        return f"{self.number:,} {state}"


def numbered_states(counts: Mapping[str, int]) -> list[NumberedState]:
    """Return the states of an asset with these numbers of partitions, the most urgent first."""
    states = [
        NumberedState(look, number)
        for look in GRAPH_LOOKS
        if look is not COMPLETE and (number := counts.get(look.name, 0))
    ]
    if states:
        return states
    materialized = counts.get("materialized", 0)
    return [NumberedState(COMPLETE if materialized else NOTHING_DUE, materialized)]


def _numbers(asset: Asset, counts: StateCounts, expected: int | None) -> dict[str, int]:
    settled = counts.settled(asset)
    with_result = sum(
        number for state, number in settled.items() if state != PartitionState.MISSING
    ) + counts.retried(asset)
    missing = settled.get(MISSING.name, 0) if expected is None else max(expected - with_result, 0)
    numbers = {
        FAILED.name: settled.get(PartitionState.FAILED, 0),
        RUNNING.name: counts.held(asset) - counts.queued(asset),
        QUEUED.name: counts.queued(asset),
        MISSING.name: missing,
        CANCELED.name: settled.get(PartitionState.CANCELED, 0),
        SKIPPED.name: settled.get(PartitionState.SKIPPED, 0),
        "materialized": settled.get(PartitionState.MATERIALIZED, 0),
    }
    shown = {state: number for state, number in numbers.items() if number}
    return shown if expected is None else shown | {"expected": expected}


def _late(late: LateCounts) -> dict[str, int]:
    """Return the numbers of overdue and of late partitions, which have no data: their state counts
    them too.
    """
    numbers = {OVERDUE.name: late.overdue, LATE.name: late.late}
    return {state: number for state, number in numbers.items() if number}


def _first_starts(assets: Sequence[Asset]) -> dict[int, datetime]:
    """Return the start of the earliest partition on record, for assets whose time has no start."""
    open_assets = [
        asset.pk
        for asset in assets
        if asset.definition is not None
        and (time := asset.definition.time_dimension) is not None
        and time.start is None
    ]
    if not open_assets:
        return {}
    rows = AssetPartition.objects.filter(asset__in=open_assets, window_start__isnull=False)
    return dict(
        rows.under_current_definition()
        .order_by()
        .values_list("asset")
        .annotate(first=Min("window_start"))
    )
