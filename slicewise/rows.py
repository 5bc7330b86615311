"""The partitions of a set as rows to be stored and drawn."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import NamedTuple

from slicewise.definitions import PartitionDefinition
from slicewise.intervals import Interval, window_text
from slicewise.keys import SEPARATOR
from slicewise.partition_set import PartitionSet
from slicewise.zones import DAY, EPOCH, Zone

_FINE_UNITS = {"minute", "hour"}


class PartitionRow(NamedTuple):
    """One partition: key text, window, segment text, and the bucket its state is counted in.

    The bucket is the local date of the window's start where the cadence is finer than a day, else
    the first day of its local month; None without a time dimension.
    """

    key: str
    start: datetime | None
    end: datetime | None
    segment: str
    bucket: date | None


def partition_rows(
    definition: PartitionDefinition | None, partitions: PartitionSet
) -> Iterator[PartitionRow]:
    """A row for each partition of the set, ordered by window start, then segment."""
    space = partitions.space
    by_day = definition is not None and definition.calendar_unit in _FINE_UNITS
    time_name = space.time_name
    before = space.names.index(time_name) if time_name is not None else 0
    for slab in partitions.slabs:
        segments = [
            _Segment.of([part.text for part in space.segments.parts(number)], before)
            for number in sorted(slab.segments)
        ]
        for window in partitions.windows(slab):
            if window is None:
                for segment in segments:
                    yield PartitionRow(segment.text, None, None, segment.text, None)
            else:
                yield from _window_rows(window, segments, by_day)


class _Segment(NamedTuple):
    """A segment's text, and what it puts before and after the window's in the key text."""

    text: str
    before: str
    after: str

    @classmethod
    def of(cls, texts: list[str], time_place: int) -> "_Segment":
        before = "".join(text + SEPARATOR for text in texts[:time_place])
        after = "".join(SEPARATOR + text for text in texts[time_place:])
        return cls(SEPARATOR.join(texts), before, after)


def _window_rows(
    window: Interval, segments: list[_Segment], by_day: bool
) -> Iterator[PartitionRow]:
    zone = window.offsets
    text = window_text(window.first_second, window.stop_second, zone)
    start, end = window.start, window.end
    bucket = _bucket(window.first_second, zone, by_day)
    for segment in segments:
        key = segment.before + text + segment.after
        yield PartitionRow(key, start, end, segment.text, bucket)


def _bucket(instant: int, zone: Zone, by_day: bool) -> date:
    day = (EPOCH + timedelta(days=(instant + zone.offset_at(instant)) // DAY)).date()
    return day if by_day else day.replace(day=1)
