"""Partitions that a mapping reaches and a definition does not have, and the number of such
partitions (docs/internals/calendar.md, need rule 7).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from slicewise.calendar.zones import BEGIN, END
from slicewise.keys.intervals import make_interval
from slicewise.keys.partition_key import Interval
from slicewise.partitions.key_index import KeyIndex
from slicewise.partitions.window_ranges import WindowRange, disjoint
from slicewise.partitions.windows import Windows

Span = tuple[int, int]


class Nonexistent(NamedTuple):
    """Partitions that a definition does not have: merged spans of time, and segments by text.

    `partitions` is the number of partitions, windows times segments; `first` and `last` are the key
    texts of the first and last window, or of the first and last segment where there is no window.
    """

    spans: tuple[Interval, ...] = ()
    segments: tuple[str, ...] = ()
    partitions: int = 0
    first: str = ""
    last: str = ""

    def __bool__(self) -> bool:
        return bool(self.spans or self.segments)


NONE_NONEXISTENT = Nonexistent()


class Reach(NamedTuple):
    """The partitions that a mapping reaches and that do not exist: all, excluded, and blocking."""

    nonexistent: Nonexistent = NONE_NONEXISTENT
    # Windows that `exclude=` removes, which no partition needs.
    excluded: Nonexistent = NONE_NONEXISTENT
    # Windows outside the definition's bounds, and segments that the definition lacks.
    blocking: Nonexistent = NONE_NONEXISTENT


class Lost(NamedTuple):
    """Texts of segments that a definition lacks; each text stands for `width` segments."""

    texts: Sequence[str] = ()
    width: int = 1


def reach_of(
    space: KeyIndex, reached: Iterable[WindowRange], lost: Lost, ignores_outside: bool
) -> Reach:
    """Return the nonexistent partitions of window ranges, which may overlap and exceed the bounds.

    Segment numbers from the space's count on stand for the texts of `lost`, in order. With
    `ignores_outside`, windows outside the bounds block no partition.
    """
    all_segments = space.segments.count
    excluded_count = outside_count = lost_count = 0
    excluded: list[Span] = []
    outside: list[Span] = []
    blocking_numbers: set[int] = set()
    for window_range in disjoint(list(_in_calendar(space.windows, reached))):
        excluded_numbers, outside_spans, inside_count = _split_window_range(
            space.windows, window_range
        )
        lost_numbers = {number for number in window_range.segments if number >= all_segments}
        lost_size = len(lost_numbers) * lost.width
        size = len(window_range.segments) - len(lost_numbers) + lost_size
        excluded_count += len(excluded_numbers) * size
        range_outside_count = sum(stop - first for first, stop in outside_spans)
        outside_count += range_outside_count * size
        lost_count += inside_count * lost_size
        if inside_count or (range_outside_count and not ignores_outside):
            blocking_numbers |= lost_numbers
        excluded += ((number, number + 1) for number in excluded_numbers)
        outside += outside_spans
    texts = tuple(
        text for number, text in enumerate(lost.texts, all_segments) if number in blocking_numbers
    )
    count = excluded_count + outside_count + lost_count
    blocking, blocking_count = outside, outside_count + lost_count
    if ignores_outside:
        blocking, blocking_count = [], lost_count
    return Reach(
        _nonexistent(space, [*excluded, *outside], tuple(lost.texts), count),
        _nonexistent(space, excluded, (), excluded_count),
        _nonexistent(space, blocking, texts, blocking_count),
    )


def classify_nonexistent(space: KeyIndex, nonexistent: Nonexistent) -> Reach:
    """Return excluded and blocking partitions of a mapping that reports only spans and texts.

    Each window and each segment counts as one partition; so does a span that is not made of whole
    windows.
    """
    if not nonexistent:
        return Reach()
    excluded: list[Span] = []
    outside: list[Span] = []
    other_spans: list[Interval] = []
    for span in nonexistent.spans:
        numbers = _numbers(space.windows, span)
        if numbers is None or space.windows is None:
            other_spans.append(span)
            continue
        excluded += ((number, number + 1) for number in space.windows.excluded(*numbers))
        outside += space.windows.runs(*numbers)
    count = (
        sum(stop - first for first, stop in outside) + len(other_spans) + len(nonexistent.segments)
    )
    blocking = _nonexistent(space, outside, nonexistent.segments, count)
    spans = tuple(sorted((*blocking.spans, *other_spans)))
    first, last = (
        (str(spans[0]), str(spans[-1])) if other_spans else (blocking.first, blocking.last)
    )
    return Reach(
        nonexistent._replace(partitions=count + len(excluded)),
        _nonexistent(space, excluded, (), len(excluded)),
        blocking._replace(spans=spans, first=first, last=last),
    )


def merged_spans(spans: Iterable[Span], space: KeyIndex) -> Iterator[Interval]:
    """Yield ranges of window numbers as spans of time, in order and merged."""
    for first, stop in _joined_spans(spans):
        ticks = space.time.ticks
        # An offset may reach beyond Python's calendar, where no interval can be made.
        start, end = max(BEGIN, ticks.tick(first)), min(END, ticks.tick(stop))
        if start < end:
            yield make_interval(start, end, space.time.zone)


def _joined_spans(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for first, stop in sorted(span for span in spans if span[0] < span[1]):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((first, stop))
    return joined


def _in_calendar(
    windows: Windows | None, window_ranges: Iterable[WindowRange]
) -> Iterable[WindowRange]:
    """Return the window ranges, clipped to Python's calendar."""
    if windows is None:
        return window_ranges
    low, high = windows.number_at(BEGIN), windows.ticks.rank(END)
    return (
        WindowRange(max(low, first), min(high, stop), segments)
        for first, stop, segments in window_ranges
    )


def _split_window_range(
    windows: Windows | None, window_range: WindowRange
) -> tuple[Sequence[int], list[Span], int]:
    """Return a range's excluded windows, the other windows outside the bounds as spans, and the
    number of windows inside the bounds.
    """
    if windows is None:
        return (), [], window_range.stop - window_range.first
    excluded_numbers = windows.excluded(window_range.first, window_range.stop)
    low, high = windows.clip(window_range.first, window_range.stop)
    if low >= high:
        low = high = window_range.stop
    outside_spans = [
        run
        for span in ((window_range.first, low), (high, window_range.stop))
        for run in _runs(span, excluded_numbers)
    ]
    count = (
        window_range.stop
        - window_range.first
        - len(excluded_numbers)
        - sum(stop - first for first, stop in outside_spans)
    )
    return excluded_numbers, outside_spans, count


def _runs(span: Span, excluded_numbers: Sequence[int]) -> Iterator[Span]:
    first, stop = span
    for number in excluded_numbers:
        if span[0] <= number < stop:
            if first < number:
                yield first, number
            first = number + 1
    if first < stop:
        yield first, stop


def _nonexistent(
    space: KeyIndex, numbers: Sequence[Span], segments: tuple[str, ...], count: int
) -> Nonexistent:
    spans = tuple(merged_spans(numbers, space)) if numbers else ()
    if not spans:
        first, last = (segments[0], segments[-1]) if segments else ("", "")
        return Nonexistent((), segments, count, first, last)
    lowest, highest = min(numbers)[0], max(stop for _, stop in numbers)
    # A window that begins before Python's calendar has no text.
    first, last = (
        space.window_text(number) if space.time.ticks.tick(number) >= BEGIN else str(spans[0])
        for number in (lowest, highest - 1)
    )
    return Nonexistent(spans, segments, count, first, last)


def _numbers(windows: Windows | None, span: Interval) -> Span | None:
    """Return the window numbers of a span; None for a span that is not made of whole windows."""
    if windows is None:
        return None
    first, stop = (windows.ticks.rank(second) for second in (span.first_second, span.stop_second))
    ends = windows.ticks.tick(first), windows.ticks.tick(stop)
    return (first, stop) if ends == (span.first_second, span.stop_second) else None
