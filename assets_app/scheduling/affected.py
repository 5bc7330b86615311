"""Downstream partitions that a new upstream partition concerns (need rules)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import slicewise
from assets_app.models import AssetDependency
from partitions_app.rules import depends_on_own_window, has_time, mapping_of
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
    edge: AssetDependency, new_partitions: Sequence[NewPartition], *, since: datetime, now: datetime
) -> slicewise.PartitionSet:
    """Return the partitions downstream of the new upstream partitions.

    Where only the downstream asset has time, an upstream write is a tick: the result is the windows
    that ended since the write before, but not before ``since``, when the schedule began. Where a
    mapping needs the same upstream partitions for all windows, the result is the windows that ended
    since ``since``. In the other cases the result may include windows that have not ended yet.
    """
    downstream, upstream = edge.downstream.definition, edge.upstream.definition
    mapping = mapping_of(edge.mapping)
    new_partitions = [
        partition for partition in new_partitions if partition.identity == edge.upstream.identity
    ]
    if downstream is None:
        return slicewise.PartitionSet.of(None, [WHOLE] if new_partitions else [])
    affected_partitions = slicewise.PartitionSet(downstream, ())
    if downstream.time_dimension is None or has_time(upstream):
        keys = existing_keys(upstream, [partition.key for partition in new_partitions])
        if downstream.time_dimension is None or depends_on_own_window(mapping):
            return slicewise.downstream_partitions(upstream, downstream, keys, mapping, until=now)
        ended = ended_between(downstream, since, now)
        return _windows_needing(ended, upstream, keys, mapping, now)
    for partition in new_partitions:
        keys = existing_keys(upstream, [partition.key])
        ended = ended_between(downstream, max(partition.before or since, since), partition.at)
        affected_partitions |= _windows_needing(ended, upstream, keys, mapping, now)
    return affected_partitions


def _windows_needing(
    ended: slicewise.PartitionSet,
    upstream: slicewise.PartitionDefinition | None,
    keys: Sequence[slicewise.PartitionKey],
    mapping: slicewise.PartitionMapping | None,
    now: datetime,
) -> slicewise.PartitionSet:
    """Return the ended windows that need some of the upstream partitions."""
    hulls = (ended.hull, slicewise.PartitionSet.of(upstream, keys).hull)
    if ended.hull is None:
        return ended
    # A mapping applies the bounds to both sides: the last upstream window may well begin before the
    # first downstream window.
    since = min(hull.start for hull in hulls if hull is not None)
    return ended & slicewise.downstream_partitions(
        upstream, ended.definition, keys, mapping, since=since, until=now
    )


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
