"""Waiting partitions: the partitions downstream of some partitions that need data of these, as long
as these are not materialized.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import slicewise
from assets_app.models import Asset, AssetDependency
from assets_app.queries.edges import TimeOnRecord, edge_without_bounds, with_time_since
from assets_app.queries.partition_spans import most_rows, spans
from slicewise.keys import WHOLE

# So many rows are read to find the materialized partitions, for all assets together.
_MOST_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class WaitingPartitions:
    """Partitions that are not materialized and need partitions that are not materialized.

    ``is_exact`` is False where there were too many to find the materialized partitions among these.
    """

    partitions: slicewise.PartitionSet
    is_exact: bool = True


def waiting_by_asset(
    asset: Asset,
    chosen: slicewise.PartitionSet,
    edges: Mapping[int, Sequence[AssetDependency]],
    rows: Mapping[int, Asset],
    times: Mapping[int, TimeOnRecord],
    now: datetime,
) -> dict[int, WaitingPartitions]:
    """Return the partitions that wait for chosen ones, directly or over other assets, by asset id.

    ``rows`` has each asset after the assets before it on the way. A partition with data of an
    earlier run keeps no other waiting, and windows that end after ``now`` do not wait yet. One
    statement for the asset, and one more for each asset with partitions that may wait.
    """
    unmaterialized = _Unmaterialized()
    waiting = {asset.pk: unmaterialized.of(asset, chosen)}
    for pk, downstream in rows.items():
        following = slicewise.PartitionSet(downstream.definition, ())
        is_exact = True
        for dependency in edges[pk]:
            upstream = waiting.get(dependency.upstream_id)
            if upstream and upstream.partitions and dependency.upstream_id != pk:
                following |= _needing(dependency, upstream.partitions, times, now)
                is_exact = is_exact and upstream.is_exact
        own = unmaterialized.of(downstream, following)
        waiting[pk] = WaitingPartitions(own.partitions, is_exact and own.is_exact)
    del waiting[asset.pk]
    return waiting


class _Unmaterialized:
    """A reader of the partitions without data, which reads a bounded number of rows."""

    def __init__(self) -> None:
        self._room = _MOST_ROWS

    def of(self, asset: Asset, within: slicewise.PartitionSet) -> WaitingPartitions:
        """Return the partitions of a set that are not materialized."""
        row_count = most_rows(within)
        if row_count > self._room:
            return WaitingPartitions(within, is_exact=False)
        self._room -= row_count
        condition = "partition.version > 0"
        materialized = spans(within.definition, [asset], within, condition=condition)
        for partitions in materialized.values():
            within -= partitions
        return WaitingPartitions(within)


def _needing(
    dependency: AssetDependency,
    upstream: slicewise.PartitionSet,
    times: Mapping[int, TimeOnRecord],
    now: datetime,
) -> slicewise.PartitionSet:
    """Return the downstream partitions that need upstream ones and whose windows have ended."""
    definition = dependency.downstream.definition
    edge = edge_without_bounds(dependency)
    if edge.reads_whatever_exists:
        return slicewise.PartitionSet(definition, ())
    edge = with_time_since(edge, times[dependency.upstream_id].since, now)
    floors = [times[dependency.downstream_id].since, upstream.hull and upstream.hull.start]
    since = min((floor for floor in floors if floor), default=now)
    ended = _ended(definition, since, now)
    return edge.following(upstream, ended.hull.start if ended.hull else since, now) & ended


def _ended(
    definition: slicewise.PartitionDefinition | None, since: datetime, now: datetime
) -> slicewise.PartitionSet:
    """Return the partitions whose windows have ended; of a definition without a start, the ones
    after ``since``.
    """
    try:
        return slicewise.downstream_partitions(None, definition, [WHOLE], until=now)
    except slicewise.UnboundedPartitionsError:
        return slicewise.downstream_partitions(None, definition, [WHOLE], since=since, until=now)
