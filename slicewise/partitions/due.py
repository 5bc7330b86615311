"""The partitions that a scheduled run materializes (docs/internals/calendar.md, due rules)."""

from datetime import datetime, timedelta

from slicewise.calendar.ticks import ShiftedTicks
from slicewise.calendar.time_schedules import TimeSchedule
from slicewise.calendar.zones import to_instant
from slicewise.partitions.definition import PartitionDefinition, PartitionSet
from slicewise.partitions.window_ranges import WindowRange


def ended_between(
    definition: PartitionDefinition, since: datetime, until: datetime
) -> PartitionSet:
    """Return the partitions whose windows end after `since` and not after `until`, all segments.

    Without a time dimension, return all partitions, which every tick materializes.
    """
    space = definition.space
    if space.windows is None:
        return PartitionSet(definition, [WindowRange(0, 1, space.segments.all)])
    ticks = space.windows.ticks
    # Window n ends with tick n + 1.
    first, stop = (ticks.rank(to_instant(instant) + 1) - 1 for instant in (since, until))
    return PartitionSet(
        definition, [WindowRange(*space.windows.clip(first, stop), space.segments.all)]
    )


def ticks_after_windows(definition: PartitionDefinition, span: timedelta) -> TimeSchedule:
    """Return the moments so long after the end of each window of a definition with time. Ends of
    excluded windows are among the moments.
    """
    windows = definition.space.windows
    assert windows is not None  # noqa: S101  (the caller has checked)
    ticks = ShiftedTicks(windows.ticks, span // timedelta(seconds=1))
    # Window n ends with tick n + 1.
    start = None if windows.lowest is None else ticks.tick(windows.lowest + 1)
    return TimeSchedule(
        ticks, start, None if windows.highest is None else ticks.tick(windows.highest)
    )


def ended_by(chosen: PartitionSet, instant: datetime) -> PartitionSet:
    """Return the partitions whose windows have ended by an instant; all without windows."""
    windows = chosen.space.windows
    if windows is None or not chosen:
        return chosen
    stop = windows.last_before(to_instant(instant))
    window_ranges = (
        window_range._replace(stop=min(window_range.stop, stop))
        for window_range in chosen.window_ranges
    )
    return PartitionSet(chosen.definition, window_ranges)


def partitions_of_last_window(partitions: PartitionSet) -> PartitionSet:
    """Return the partitions of a set's last window; the whole set without a time dimension."""
    if not partitions or partitions.space.windows is None:
        return partitions
    window_range = partitions.window_ranges[-1]
    return PartitionSet(partitions.definition, [window_range._replace(first=window_range.stop - 1)])


def partitions_of_last_windows(
    definition: PartitionDefinition, until: datetime, windows: int
) -> PartitionSet:
    """Return the partitions of the last `windows` windows that end at or before `until`.

    Excluded windows are not counted. The set is empty for a definition without a time dimension.
    """
    space = definition.space
    if space.windows is None or windows < 1:
        return PartitionSet(definition, ())
    stop = space.windows.ticks.rank(to_instant(until) + 1) - 1
    if space.windows.lowest is not None:
        # At most the windows that exist: otherwise a request for a billion windows would search
        # exclusions before the first window.
        windows = min(windows, max(stop - space.windows.lowest, 0))
    first = stop - windows
    # For each excluded window in the range take one window more, until the range has enough.
    while (missing_count := windows - space.windows.count(first, stop)) > 0:
        if space.windows.lowest is not None and first < space.windows.lowest:
            break
        first -= missing_count
    return PartitionSet(
        definition, [WindowRange(*space.windows.clip(first, stop), space.segments.all)]
    )
