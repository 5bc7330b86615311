"""Impact: the partitions downstream of some partitions, which a change of these makes stale, or
which wait for these.

Only assets that read an upstream asset become stale. A direct reader is stale at once, and a reader
of a reader after the direct reader has been materialized again. Partitions are sets throughout,
however many there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import slicewise
from assets_app.models import Asset, AssetDependency, AssetPartition
from assets_app.queries.asset_graph import by_end, edge_ids
from assets_app.queries.asset_walk import (
    ReachedAsset,
    edges_by_downstream,
    mapping_of_edge,
    sides_of,
    walk_from,
)
from assets_app.queries.edges import (
    TimeOnRecord,
    edge_without_bounds,
    times_on_record,
    with_time_since,
)
from assets_app.queries.impact_waiting import WaitingPartitions, waiting_by_asset
from assets_app.queries.keys import known_partitions

# So many keys are compared with sets one by one, for all assets together.
_MOST_KEYS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactedAsset(ReachedAsset):
    """A downstream asset with its partitions that become stale, its partitions that wait, and the
    upstream assets that it reads on the way, each with the mapping in words.
    """

    reads: list[tuple[str, str]]
    # Whether all of the partitions are materialized. Otherwise there were too many to compare, and
    # some of these may be missing.
    is_exact: bool
    # The partitions that wait for selected ones; None if only the assets were asked for.
    waiting: WaitingPartitions | None

    @property
    def bound(self) -> str:
        """The word before the number of partitions; empty for an exact number."""
        return self._bound(is_exact=self.is_exact)

    @property
    def waiting_bound(self) -> str:
        """The word before the number of waiting partitions; empty for an exact number."""
        return self._bound(is_exact=self.waiting is not None and self.waiting.is_exact)

    def _bound(self, *, is_exact: bool) -> str:
        if is_exact:
            return "at least" if self.is_partial else ""
        return "about" if self.is_partial else "up to"


@dataclass(frozen=True, slots=True)
class Impact:
    """The impacted assets, upstream before downstream, and the number of further assets."""

    assets: list[ImpactedAsset]
    further: int

    @property
    def any_waiting(self) -> bool:
        """Whether any partition waits for selected ones."""
        return any(line.waiting is not None and line.waiting.partitions for line in self.assets)


def impact_of(asset: Asset, chosen: slicewise.PartitionSet | None, now: datetime) -> Impact:
    """Return the impact of a change of the chosen partitions; None stands for the assets alone."""
    _, downstream_ids = by_end(edge_ids(only_inlets=True))
    walk = walk_from(asset.pk, downstream_ids)
    rows = walk.rows
    edges = edges_by_downstream([asset.pk, *rows], rows)
    sets, waiting = {}, {}
    if chosen is not None:
        times = times_on_record([asset, *rows.values()])
        sets = _partitions_by_asset(asset, chosen, edges, rows, times, now)
        waiting = waiting_by_asset(asset, chosen, edges, rows, times, now)
    # A sync may have changed a definition after the rows of the assets were read.
    upstream_assets = [edge.upstream for of_asset in edges.values() for edge in of_asset]
    sides = sides_of([*upstream_assets, *rows.values()])
    return Impact(
        [
            ImpactedAsset(
                asset=rows[pk],
                distance=walk.distances[pk],
                hidden_neighbours=walk.hidden_neighbours.get(pk, 0),
                is_partial=pk in walk.partial,
                reads=[(edge.upstream.name, mapping_of_edge(edge, sides)) for edge in edges[pk]],
                waiting=waiting.get(pk),
                **sets.get(pk, _NOT_ASKED)._asdict(),
            )
            for pk in rows
        ],
        walk.further,
    )


def _partitions_by_asset(
    asset: Asset,
    chosen: slicewise.PartitionSet,
    edges: Mapping[int, list[AssetDependency]],
    rows: Mapping[int, Asset],
    times: Mapping[int, TimeOnRecord],
    now: datetime,
) -> dict[int, "_StalePartitions"]:
    """Return the materialized partitions that follow from the chosen ones, by asset id.

    A partition that was never materialized does not become stale, and passes nothing on.
    """
    sets = {asset.pk: _StalePartitions(chosen, is_exact=True)}
    room = _MOST_KEYS
    for pk, downstream in rows.items():
        following = slicewise.PartitionSet(downstream.definition, ())
        for dependency in edges[pk]:
            upstream = sets.get(dependency.upstream_id)
            if upstream and upstream.partitions and dependency.upstream_id != pk:
                following |= _following(dependency, upstream.partitions, times, now)
        keys = _materialized_keys(downstream, following, room)
        room -= len(keys)
        if room < 0:
            sets[pk] = _StalePartitions(following, is_exact=False)
            room = 0
        else:
            sets[pk] = _StalePartitions(
                following & known_partitions(following.definition, keys), is_exact=True
            )
    del sets[asset.pk]
    return sets


class _StalePartitions(NamedTuple):
    """Partitions that become stale, and whether all of these are known to be materialized."""

    partitions: slicewise.PartitionSet | None
    is_exact: bool


_NOT_ASKED = _StalePartitions(None, is_exact=False)


def _materialized_keys(asset: Asset, within: slicewise.PartitionSet, most: int) -> list[str]:
    """Return the keys of the materialized partitions in the time of a set, one more than ``most``
    if there are more.
    """
    if not within:
        return []
    rows = AssetPartition.objects.materialized_of(asset)
    if hull := within.hull:
        rows = rows.filter(window_start__gte=hull.start, window_start__lt=hull.end)
    return list(rows.values_list("key", flat=True)[: most + 1])


def _following(
    dependency: AssetDependency,
    upstream: slicewise.PartitionSet,
    times: Mapping[int, TimeOnRecord],
    now: datetime,
) -> slicewise.PartitionSet:
    since, until = times[dependency.downstream_id]
    definition = dependency.downstream.definition
    if definition is not None and definition.time_dimension is not None and since is None:
        return slicewise.PartitionSet(definition, ())
    edge = edge_without_bounds(dependency)
    bounded = with_time_since(edge, times[dependency.upstream_id].since, now)
    return bounded.following(upstream, since, until)
