"""Which downstream partitions a new upstream partition concerns (need rules)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import slicewise
from assets_app.models import AssetDependency
from partitions_app.rules import goes_by_windows, has_time, mapping_of
from slicewise.due import ended_between
from slicewise.keys import WHOLE

Write = tuple[int | None, int | None]
"""The id of a run, or that of a report of a write: one of them is None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A partition of an upstream asset that has been made, and when that was done before."""

    # The run or the report that it is of: what came of one of them has a limit.
    write: Write
    asset_id: int
    identity: str
    key: str
    at: datetime
    # When a version before was made that made others due, if it has no window; None for the first.
    before: datetime | None


def affected(
    edge: AssetDependency, made: Sequence[Made], *, since: datetime, now: datetime
) -> slicewise.PartitionSet:
    """Return the partitions downstream of the partitions that were made.

    Where only the downstream asset has time, the upstream write is a tick: the windows that ended
    since the write before, but not before ``since``, when the schedule began. Where a mapping needs
    the same for all windows, the windows that ended since then. Windows that are not over yet may
    be among the rest.
    """
    downstream, upstream = edge.downstream.definition, edge.upstream.definition
    mapping = mapping_of(edge.mapping)
    made = [piece for piece in made if piece.identity == edge.upstream.identity]
    if downstream is None:
        return slicewise.PartitionSet.of(None, [WHOLE] if made else [])
    found = slicewise.PartitionSet(downstream, ())
    if downstream.time_dimension is None or has_time(upstream):
        keys = existing_keys(upstream, [piece.key for piece in made])
        if downstream.time_dimension is None or goes_by_windows(mapping):
            return slicewise.downstream_partitions(upstream, downstream, keys, mapping, until=now)
        ended = ended_between(downstream, since, now)
        return _needing(ended, upstream, keys, mapping, now)
    for piece in made:
        keys = existing_keys(upstream, [piece.key])
        ended = ended_between(downstream, max(piece.before or since, since), piece.at)
        found |= _needing(ended, upstream, keys, mapping, now)
    return found


def _needing(
    ended: slicewise.PartitionSet,
    upstream: slicewise.PartitionDefinition | None,
    keys: Sequence[slicewise.PartitionKey],
    mapping: slicewise.PartitionMapping | None,
    now: datetime,
) -> slicewise.PartitionSet:
    """Those of the windows that ended that need some of the upstream partitions."""
    hulls = (ended.hull, slicewise.PartitionSet.of(upstream, keys).hull)
    if ended.hull is None:
        return ended
    # A mapping reads the bounds for both sides: the last upstream window may well begin before the
    # first one downstream.
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
