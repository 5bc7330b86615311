"""Which partitions a scheduled write makes (docs/internals/calendar.md, due rules)."""

from datetime import datetime

from slicewise.definitions import PartitionDefinition
from slicewise.partition_set import PartitionSet
from slicewise.slabs import Slab
from slicewise.zones import to_instant


def ended_between(
    definition: PartitionDefinition, since: datetime, until: datetime
) -> PartitionSet:
    """The partitions whose windows end after one instant and not after another, all segments.

    Of a definition without a time dimension all partitions: they are made at every tick.
    """
    space = definition.space
    if space.windows is None:
        return PartitionSet(definition, [Slab(0, 1, space.segments.all)])
    ticks = space.windows.ticks
    # Window n ends with tick n + 1.
    first, stop = (ticks.rank(to_instant(moment) + 1) - 1 for moment in (since, until))
    return PartitionSet(definition, [Slab(*space.windows.clip(first, stop), space.segments.all)])


def latest(partitions: PartitionSet) -> PartitionSet:
    """Those of the last window of a set."""
    if not partitions or partitions.space.windows is None:
        return partitions
    slab = partitions.slabs[-1]
    return PartitionSet(partitions.definition, [slab._replace(first=slab.stop - 1)])


def before(definition: PartitionDefinition, until: datetime, windows: int) -> PartitionSet:
    """Return the partitions of the last so many windows that end at or before an instant.

    Excluded windows are not counted. Empty for a definition without a time dimension.
    """
    space = definition.space
    if space.windows is None or windows < 1:
        return PartitionSet(definition, ())
    stop = space.windows.ticks.rank(to_instant(until) + 1) - 1
    if space.windows.lowest is not None:
        # No more than there are: of a billion, exclusions would be looked for before the first one.
        windows = min(windows, max(stop - space.windows.lowest, 0))
    first = stop - windows
    # Excluded windows among them: as many more, until none is new.
    while (lacking := windows - space.windows.count(first, stop)) > 0:
        if space.windows.lowest is not None and first < space.windows.lowest:
            break
        first -= lacking
    return PartitionSet(definition, [Slab(*space.windows.clip(first, stop), space.segments.all)])
