"""The downstream partitions that writes of an upstream asset concern (docs/internals/calendar.md,
need rules).

The scheduler examines these partitions, and pages say what a write would make due.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

import slicewise
from partitions_app.edges import Definition, Edge
from partitions_app.rules import has_time
from slicewise.keys import WHOLE
from slicewise.partitions import ended_between


class UpstreamWrite(Protocol):
    """A written partition of an upstream asset, and when the write was recorded.

    ``before`` is when an earlier version that made partitions due was recorded, for a partition
    without a window; None for the first version.
    """

    @property
    def key(self) -> str:
        """The key of the partition."""

    @property
    def at(self) -> datetime:
        """When the write was recorded."""

    @property
    def before(self) -> datetime | None:
        """When the write before was recorded."""


def concerned_partitions(
    edge: Edge, writes: Sequence[UpstreamWrite], *, since: datetime, now: datetime
) -> slicewise.PartitionSet:
    """Return the partitions downstream of the written partitions; ``edge`` has no bounds of time.

    Where only the downstream asset has time, a write is a tick: the result is the windows that
    ended since the write before, but not before ``since``, when the schedule began. Where a mapping
    needs the same upstream partitions for all windows, the result is the windows that ended since
    ``since``. In the other cases the result may include windows that have not ended yet.
    """
    downstream, upstream = edge.downstream, edge.upstream
    if downstream is None:
        return slicewise.PartitionSet.of(None, [WHOLE] if writes else [])
    if not edge.has_common_needs:
        return replace(edge, until=now).following(_existing(upstream, writes), until=now)
    if has_time(upstream):
        ended = ended_between(downstream, since, now)
        return _windows_needing(edge, ended, _existing(upstream, writes), now)
    concerned = slicewise.PartitionSet(downstream, ())
    for write in writes:
        ended = ended_between(downstream, max(write.before or since, since), write.at)
        concerned |= _windows_needing(edge, ended, _existing(upstream, [write]), now)
    return concerned


def existing_keys(definition: Definition, texts: Sequence[str]) -> list[slicewise.PartitionKey]:
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


def _existing(definition: Definition, writes: Sequence[UpstreamWrite]) -> slicewise.PartitionSet:
    texts = [write.key for write in writes]
    return slicewise.PartitionSet.of(definition, existing_keys(definition, texts))


def _windows_needing(
    edge: Edge, ended: slicewise.PartitionSet, upstream: slicewise.PartitionSet, now: datetime
) -> slicewise.PartitionSet:
    """Return the ended windows that need some of the upstream partitions."""
    begins = [hull.start for hull in (ended.hull, upstream.hull) if hull is not None]
    if ended.hull is None:
        return ended
    return replace(edge, since=min(begins), until=now).needing(upstream, ended)
