"""The partitions of a set as rows to be stored and drawn."""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from slicewise.calendar.zones import DAY, EPOCH, to_datetime
from slicewise.keys.product_key import SEPARATOR, WHOLE
from slicewise.keys.window_texts import window_text
from slicewise.partitions.definition import PartitionDefinition, PartitionSet
from slicewise.partitions.window_ranges import WindowRange
from slicewise.partitions.windows import Windows

_FINE_UNITS = {"minute", "hour"}
# A definition that starts near the end of Python's dates begins with a window after that end.
_LAST_DAY = (date.max - EPOCH.date()).days


class PartitionRow(NamedTuple):
    """One partition: key text, window, segment text, and the bucket that counts its status.

    The bucket is the local date of the window's start if the cadence is finer than a day, else the
    first day of the local month; None without a time dimension.
    """

    key: str
    start: datetime | None
    end: datetime | None
    segment: str
    bucket: date | None


def partition_rows(
    definition: PartitionDefinition | None, partitions: PartitionSet | Iterable[object] | None
) -> Iterator[PartitionRow]:
    """Return a row for each partition of a set or a list of keys, by window start, then segment.

    None stands for the single partition of an unpartitioned asset. Raises PartitionKeyError.
    """
    if not isinstance(partitions, PartitionSet):
        partitions = PartitionSet.of(definition, (WHOLE,) if partitions is None else partitions)
    space = partitions.space
    time_position = space.names.index(space.time_name) if space.time_name is not None else 0
    by_day = definition is not None and has_day_buckets(definition)
    for window_range in partitions.window_ranges:
        segments = [
            _Segment.of(
                [component.text for component in space.segments.components(number)], time_position
            )
            for number in sorted(window_range.segments)
        ]
        if space.windows is None:
            for segment in segments:
                yield PartitionRow(segment.text, None, None, segment.text, None)
        else:
            yield from _window_rows(space.windows, window_range, segments, by_day)


def has_day_buckets(definition: PartitionDefinition) -> bool:
    """Return whether windows are counted by day, because the cadence is finer; else by month."""
    return definition.calendar_unit in _FINE_UNITS


def bucket_of(definition: PartitionDefinition, instant: int) -> date:
    """Return the bucket of a window that starts at this second of UTC."""
    zone = definition.space.time.zone
    return _bucket((instant + zone.offset_at(instant)) // DAY, has_day_buckets(definition))


class _Segment(NamedTuple):
    """A segment's text, and the texts before and after the window's text in the key text."""

    text: str
    before: str
    after: str

    @classmethod
    def of(cls, texts: list[str], time_position: int) -> "_Segment":
        before = "".join(text + SEPARATOR for text in texts[:time_position])
        after = "".join(SEPARATOR + text for text in texts[time_position:])
        return cls(SEPARATOR.join(texts), before, after)


def _window_rows(
    windows: Windows, window_range: WindowRange, segments: list[_Segment], by_day: bool
) -> Iterator[PartitionRow]:
    zone = windows.zone
    for ticks in windows.boundaries(window_range.first, window_range.stop):
        end = to_datetime(ticks[0])
        for first, stop in pairwise(ticks):
            start, end = end, to_datetime(stop)
            text = window_text(first, stop, zone)
            bucket = _bucket((first + zone.offset_at(first)) // DAY, by_day)
            for segment_text, before, after in segments:
                yield PartitionRow(before + text + after, start, end, segment_text, bucket)


@lru_cache(maxsize=4096)
def _bucket(day: int, by_day: bool) -> date:
    local = (EPOCH + timedelta(days=min(day, _LAST_DAY))).date()
    return local if by_day else local.replace(day=1)
