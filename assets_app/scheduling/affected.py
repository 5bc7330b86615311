"""Downstream partitions that a new upstream partition concerns (need rules)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import slicewise
from assets_app.models import AssetDependency, Target
from assets_app.queries.edges import edge_without_bounds
from partitions_app.edges import Edge
from partitions_app.rules import has_time
from slicewise.keys import WHOLE
from slicewise.partitions import ended_between

Write = tuple[int | None, int | None]
"""The id of a run, or the id of a write report: one of the two is None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartition:
    """A materialized partition of an upstream asset, and the time of an earlier materialization."""

    # The run or the write report of the materialization. The partitions that one write may queue
    # are limited.
    write: Write
    asset_id: int
    identity: str
    key: str
    at: datetime
    # When an earlier version that made partitions due was written, for a partition without a
    # window; None for the first version.
    before: datetime | None


def affected(
    dependency: AssetDependency,
    target: Target,
    new_partitions: Sequence[NewPartition],
    *,
    since: datetime,
    now: datetime,
) -> slicewise.PartitionSet:
    """Return the partitions of the target downstream of the new upstream partitions.

    Where only the downstream asset has time, an upstream write is a tick: the result is the windows
    that ended since the write before, but not before ``since``, when the schedule began. Where a
    mapping needs the same upstream partitions for all windows, the result is the windows that ended
    since ``since``. In the other cases the result may include windows that have not ended yet.
    """
    edge = edge_without_bounds(dependency, target)
    downstream, upstream = edge.downstream, edge.upstream
    new_partitions = [
        partition
        for partition in new_partitions
        if partition.identity == dependency.upstream.identity
    ]
    if downstream is None:
        return slicewise.PartitionSet.of(None, [WHOLE] if new_partitions else [])
    if not edge.has_common_needs:
        new_upstream = _existing(upstream, new_partitions)
        return replace(edge, until=now).following(new_upstream, until=now)
    if has_time(upstream):
        new_upstream = _existing(upstream, new_partitions)
        return _windows_needing(edge, ended_between(downstream, since, now), new_upstream, now)
    affected_partitions = slicewise.PartitionSet(downstream, ())
    for partition in new_partitions:
        ended = ended_between(downstream, max(partition.before or since, since), partition.at)
        affected_partitions |= _windows_needing(edge, ended, _existing(upstream, [partition]), now)
    return affected_partitions


def _existing(
    definition: slicewise.PartitionDefinition | None, new_partitions: Sequence[NewPartition]
) -> slicewise.PartitionSet:
    texts = [partition.key for partition in new_partitions]
    return slicewise.PartitionSet.of(definition, existing_keys(definition, texts))


def _windows_needing(
    edge: Edge, ended: slicewise.PartitionSet, upstream: slicewise.PartitionSet, now: datetime
) -> slicewise.PartitionSet:
    """Return the ended windows that need some of the upstream partitions."""
    begins = [hull.start for hull in (ended.hull, upstream.hull) if hull is not None]
    if ended.hull is None:
        return ended
    return replace(edge, since=min(begins), until=now).needing(upstream, ended)


def existing_keys(
    definition: slicewise.PartitionDefinition | None, texts: Sequence[str]
) -> list[slicewise.PartitionKey]:
    """Return the keys of these texts, without the keys that the definition no longer has."""
    if definition is None:
        return [WHOLE] if texts else []
    keys = []
    for text in texts:
        try:
            keys.append(definition.parse(text))
        except slicewise.PartitionKeyError:
            continue
    return keys
