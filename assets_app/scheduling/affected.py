"""Which downstream partitions a new upstream partition concerns (calendar, "When … is due")."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import slicewise
from assets_app.models import AssetDependency
from partitions_app.rules import has_time, mapping_of
from slicewise.due import ended_between
from slicewise.keys import WHOLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A partition of an upstream asset that has been made, and when that was done before."""

    asset_id: int
    identity: str
    key: str
    version: int
    at: datetime
    # When the version before was made; None for the first.
    before: datetime | None


def affected(
    edge: AssetDependency, made: Sequence[Made], *, since: datetime, now: datetime
) -> slicewise.PartitionSet:
    """The partitions downstream of those that were made.

    Where only the downstream asset has time, what was made is a tick: the windows that ended since
    it was made before, but not before ``since``, when the schedule began. Also windows that are
    not over yet may be among the rest.
    """
    downstream, upstream = edge.downstream.definition, edge.upstream.definition
    mapping = mapping_of(edge.mapping)
    made = [piece for piece in made if piece.identity == edge.upstream.identity]
    if downstream is None:
        return slicewise.PartitionSet.of(None, [WHOLE] if made else [])
    found = slicewise.PartitionSet(downstream, ())
    if downstream.time_dimension is None or has_time(upstream):
        keys = existing_keys(upstream, [piece.key for piece in made])
        return slicewise.downstream_partitions(upstream, downstream, keys, mapping, until=now)
    for piece in made:
        keys = existing_keys(upstream, [piece.key])
        ended = ended_between(downstream, max(piece.before or since, since), piece.at)
        if ended.hull is not None:
            found |= ended & slicewise.downstream_partitions(
                upstream,
                downstream,
                keys,
                mapping,
                since=ended.hull.start,
                until=ended.hull.end,
            )
    return found


def existing_keys(
    definition: slicewise.PartitionDefinition | None, texts: Sequence[str]
) -> list[slicewise.PartitionKey]:
    """The keys of these texts; those that the definition has no more are left out."""
    if definition is None:
        return [WHOLE] if texts else []
    keys = []
    for text in texts:
        try:
            keys.append(definition.parse(text))
        except slicewise.PartitionKeyError:
            continue
    return keys
