"""The upstream partitions that some partitions read, directly and through other assets, by state.

Partitions are sets throughout, however many there are; one statement counts the states of all
partitions of an asset.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import slicewise
from assets_app.models import Asset, AssetDependency
from assets_app.queries.asset_graph import by_end, edge_ids
from assets_app.queries.asset_walk import (
    ReachedAsset,
    edges_by_downstream,
    mapping_of_edge,
    sides_of,
    walk_from,
)
from assets_app.queries.edges import edge_without_bounds, times_on_record, with_time_since
from assets_app.queries.graph_states import COMPLETE, NumberedState
from assets_app.queries.partition_spans import most_rows, spans
from partitions_app.rules import UpstreamGap
from partitions_app.state_badges import (
    CANCELED,
    FAILED,
    MISSING,
    NOT_BEGUN_STATES,
    QUEUED,
    RUNNING,
    SKIPPED,
)

# So many rows are read to count states, for all assets together.
_MOST_COUNTED = 200_000
_LOOKS = (FAILED, RUNNING, QUEUED, MISSING, CANCELED, SKIPPED, COMPLETE)
_LABEL = f"""
CASE WHEN partition.held_by_id IS NULL THEN partition.state
     WHEN holder.state IN {NOT_BEGUN_STATES} THEN '{QUEUED.name}'
     ELSE '{RUNNING.name}' END
"""
_HOLDER = "LEFT JOIN assets_app_run AS holder ON holder.id = partition.held_by_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAsset(ReachedAsset):
    """An upstream asset with its partitions that are read, and the assets on the way that read the
    asset, each with the mapping in words.
    """

    readers: list[tuple[str, str]]
    # Empty if the partitions are too many to count their states.
    states: list[NumberedState]
    # Needed partitions that the definition does not have.
    gaps: list[UpstreamGap]


@dataclass(frozen=True, slots=True)
class UpstreamReads:
    """The upstream assets, the nearest first, and the number of further assets."""

    assets: list[ReadAsset]
    further: int


def upstream_reads(
    asset: Asset, chosen: slicewise.PartitionSet | None, now: datetime
) -> UpstreamReads:
    """Return the partitions that the chosen partitions read; None stands for the assets alone.

    Five statements for all assets, and for each asset a statement that counts.
    """
    upstream_ids, _ = by_end(edge_ids(only_inlets=True))
    walk = walk_from(asset.pk, upstream_ids)
    rows = walk.rows
    edges = _edges_by_upstream(asset, rows)
    reads = {} if chosen is None else _reads_by_asset(asset, chosen, edges, rows, now)
    states = _states_by_asset(rows, reads)
    sides = sides_of([asset, *rows.values()])
    lines = [
        ReadAsset(
            asset=row,
            distance=walk.distances[pk],
            hidden_neighbours=walk.hidden_neighbours.get(pk, 0),
            is_partial=pk in walk.partial,
            readers=[(edge.downstream.name, mapping_of_edge(edge, sides)) for edge in edges[pk]],
            partitions=reads[pk].partitions if pk in reads else None,
            states=states.get(pk, []),
            gaps=reads[pk].gaps if pk in reads else [],
        )
        for pk, row in rows.items()
    ]
    lines.sort(key=lambda line: line.distance)
    return UpstreamReads(lines, walk.further)


class _Read(NamedTuple):
    partitions: slicewise.PartitionSet
    gaps: list[UpstreamGap]


def _edges_by_upstream(asset: Asset, rows: Mapping[int, Asset]) -> dict[int, list[AssetDependency]]:
    """Return the edges between these assets. Both ends are the given rows: a sync may change a
    definition while the page is read.
    """
    edges: dict[int, list[AssetDependency]] = defaultdict(list)
    for of_downstream in edges_by_downstream(list(rows), {**rows, asset.pk: asset}).values():
        for edge in of_downstream:
            edge.upstream = rows[edge.upstream_id]
            edges[edge.upstream_id].append(edge)
    return edges


def _reads_by_asset(
    asset: Asset,
    chosen: slicewise.PartitionSet,
    edges: Mapping[int, list[AssetDependency]],
    rows: Mapping[int, Asset],
    now: datetime,
) -> dict[int, _Read]:
    """Return the partitions of each asset that the chosen partitions read, by asset id."""
    times = times_on_record(list(rows.values()))
    reads = {asset.pk: _Read(chosen, [])}
    for pk, row in rows.items():
        partitions = slicewise.PartitionSet(row.definition, ())
        gaps: list[UpstreamGap] = []
        for dependency in edges[pk]:
            reader = reads.get(dependency.downstream_id)
            if not reader or not reader.partitions or dependency.downstream_id == pk:
                continue
            edge = with_time_since(edge_without_bounds(dependency), times[pk].since, now)
            needed = edge.needed(reader.partitions)
            partitions |= needed
            if needed.blocking:
                gaps.append(UpstreamGap(row.name, needed.blocking, needed.excluded.partitions))
        reads[pk] = _Read(partitions, gaps)
    del reads[asset.pk]
    return reads


def _states_by_asset(
    rows: Mapping[int, Asset], reads: Mapping[int, _Read]
) -> dict[int, list[NumberedState]]:
    """Return the numbers of the read partitions by state, as far as few enough rows are read."""
    states: dict[int, list[NumberedState]] = {}
    room = _MOST_COUNTED
    for pk, read in reads.items():
        row_count = most_rows(read.partitions)
        if row_count <= room:
            room -= row_count
            states[pk] = _states(rows[pk], read.partitions)
    return states


def _states(asset: Asset, partitions: slicewise.PartitionSet) -> list[NumberedState]:
    by_label = spans(asset.definition, [asset], partitions, label=_LABEL, joins=_HOLDER)
    numbers = Counter({label: len(of_label) for label, of_label in by_label.items()})
    numbers[MISSING.name] += len(partitions) - numbers.total()
    numbers[COMPLETE.name] = numbers["materialized"]
    return [NumberedState(look, numbers[look.name]) for look in _LOOKS if numbers[look.name]]
