"""Partitions that a mapping reaches and a definition does not have, and how many these are
(docs/internals/calendar.md, need rule 7).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from slicewise.intervals import Interval, make_interval
from slicewise.slabs import Slab, disjoint
from slicewise.space import Space
from slicewise.windows import Windows
from slicewise.zones import BEGIN, END

Span = tuple[int, int]


class Nonexistent(NamedTuple):
    """Partitions that a definition does not have: merged spans of time, and segments by text.

    `partitions` is their number, windows times segments; `first` and `last` are the key texts of
    their first and last window, or of their first and last segment where they have no window.
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
    """All that does not exist of what a mapping reaches, and its two kinds."""

    nonexistent: Nonexistent = NONE_NONEXISTENT
    # Windows that `exclude=` takes out: no partition needs them.
    excluded: Nonexistent = NONE_NONEXISTENT
    # Windows outside the definition's bounds, and segments that the definition lacks.
    blocking: Nonexistent = NONE_NONEXISTENT


class Lost(NamedTuple):
    """Texts of segments that a definition lacks; each stands for `width` of its segments."""

    texts: Sequence[str] = ()
    width: int = 1


def reach_of(space: Space, reached: Iterable[Slab], lost: Lost, ignores_outside: bool) -> Reach:
    """Return what does not exist of slabs that may overlap and lie outside the bounds.

    Segment numbers from the space's count on stand for the texts of `lost`, in order. With
    `ignores_outside` windows outside the bounds block nothing.
    """
    all_segments = space.segments.count
    excluded_count = outside_count = lost_count = 0
    excluded: list[Span] = []
    outside: list[Span] = []
    lacked: set[int] = set()
    for slab in disjoint(list(_in_calendar(space.windows, reached))):
        gone, beyond, inside = _parted(space.windows, slab)
        lost_numbers = {number for number in slab.segments if number >= all_segments}
        lost_size = len(lost_numbers) * lost.width
        size = len(slab.segments) - len(lost_numbers) + lost_size
        excluded_count += len(gone) * size
        beyond_count = sum(stop - first for first, stop in beyond)
        outside_count += beyond_count * size
        lost_count += inside * lost_size
        if inside or (beyond_count and not ignores_outside):
            lacked |= lost_numbers
        excluded += ((number, number + 1) for number in gone)
        outside += beyond
    texts = tuple(text for place, text in enumerate(lost.texts, all_segments) if place in lacked)
    count = excluded_count + outside_count + lost_count
    blocking, blocking_count = outside, outside_count + lost_count
    if ignores_outside:
        blocking, blocking_count = [], lost_count
    return Reach(
        _nonexistent(space, [*excluded, *outside], tuple(lost.texts), count),
        _nonexistent(space, excluded, (), excluded_count),
        _nonexistent(space, blocking, texts, blocking_count),
    )


def classified(space: Space, told: Nonexistent) -> Reach:
    """Return the two kinds of what a mapping tells by spans and texts alone.

    Each window and each segment counts as one partition; so does a span that is no whole windows.
    """
    if not told:
        return Reach()
    excluded: list[Span] = []
    outside: list[Span] = []
    others: list[Interval] = []
    for span in told.spans:
        numbers = _numbers(space.windows, span)
        if numbers is None or space.windows is None:
            others.append(span)
            continue
        excluded += ((number, number + 1) for number in space.windows.excluded(*numbers))
        outside += space.windows.runs(*numbers)
    count = sum(stop - first for first, stop in outside) + len(others) + len(told.segments)
    found = _nonexistent(space, outside, told.segments, count)
    spans = tuple(sorted((*found.spans, *others)))
    first, last = (str(spans[0]), str(spans[-1])) if others else (found.first, found.last)
    return Reach(
        told._replace(partitions=count + len(excluded)),
        _nonexistent(space, excluded, (), len(excluded)),
        found._replace(spans=spans, first=first, last=last),
    )


def merged_spans(spans: Iterable[Span], space: Space) -> Iterator[Interval]:
    """Yield ranges of window numbers as spans of time, in order and merged."""
    for first, stop in _joined(spans):
        ticks = space.time.ticks
        # An offset may reach beyond Python's calendar, where there is nothing to speak of.
        start, end = max(BEGIN, ticks.tick(first)), min(END, ticks.tick(stop))
        if start < end:
            yield make_interval(start, end, space.time.zone)


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for first, stop in sorted(span for span in spans if span[0] < span[1]):
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((first, stop))
    return joined


def _in_calendar(windows: Windows | None, slabs: Iterable[Slab]) -> Iterable[Slab]:
    """The slabs as far as Python's calendar goes."""
    if windows is None:
        return slabs
    low, high = windows.number_at(BEGIN), windows.ticks.rank(END)
    return (slab._replace(first=max(low, slab.first), stop=min(high, slab.stop)) for slab in slabs)


def _parted(windows: Windows | None, slab: Slab) -> tuple[Sequence[int], list[Span], int]:
    """Excluded windows of a slab, those of the rest outside the bounds, and how many are inside."""
    if windows is None:
        return (), [], slab.stop - slab.first
    gone = windows.excluded(slab.first, slab.stop)
    low, high = windows.clip(slab.first, slab.stop)
    if low >= high:
        low = high = slab.stop
    beyond = [run for part in ((slab.first, low), (high, slab.stop)) for run in _runs(part, gone)]
    count = slab.stop - slab.first - len(gone) - sum(stop - first for first, stop in beyond)
    return gone, beyond, count


def _runs(span: Span, gone: Sequence[int]) -> Iterator[Span]:
    first, stop = span
    for number in gone:
        if span[0] <= number < stop:
            if first < number:
                yield first, number
            first = number + 1
    if first < stop:
        yield first, stop


def _nonexistent(
    space: Space, numbers: Sequence[Span], segments: tuple[str, ...], count: int
) -> Nonexistent:
    spans = tuple(merged_spans(numbers, space)) if numbers else ()
    if not spans:
        first, last = (segments[0], segments[-1]) if segments else ("", "")
        return Nonexistent((), segments, count, first, last)
    lowest, highest = min(numbers)[0], max(stop for _, stop in numbers)
    # Of a window that begins before Python's calendar no text can be made.
    first, last = (
        space.window_text(number) if space.time.ticks.tick(number) >= BEGIN else str(spans[0])
        for number in (lowest, highest - 1)
    )
    return Nonexistent(spans, segments, count, first, last)


def _numbers(windows: Windows | None, span: Interval) -> Span | None:
    """The window numbers of a span; None where it is no whole windows."""
    if windows is None:
        return None
    first, stop = (windows.ticks.rank(each) for each in (span.first_second, span.stop_second))
    ends = windows.ticks.tick(first), windows.ticks.tick(stop)
    return (first, stop) if ends == (span.first_second, span.stop_second) else None
