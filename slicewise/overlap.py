"""Windows of one definition that overlap windows of another, whole sets at a time."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from slicewise.windows import Windows

Span = tuple[int, int]
Ranges = tuple[Sequence[int], Sequence[int]]
"""Ranges of window numbers in order, as two columns: their firsts and their stops."""


def overlapping(source: Windows, ranges: Ranges, target: Windows) -> list[Span]:
    """Return numbers of the target's windows that overlap ranges of the source's, as merged ranges.

    The target's bounds and exclusions are not looked at.
    """
    firsts, stops = ranges
    (since,), (until,) = source.ticks.at(firsts[:1]), source.ticks.at(stops[-1:])
    first, stop = target.ticks.rank(since + 1) - 1, target.ticks.rank(until)
    if stop - first < len(firsts):
        return merged(_each_hit(source, firsts, stops, target, first, stop))
    starts = [start + 1 for start in source.ticks.at(firsts)]
    afters = target.ticks.ranks(starts)
    ends = target.ticks.ranks(source.ticks.at(stops))
    return merged((after - 1, end) for after, end in zip(afters, ends, strict=True))


def _each_hit(
    source: Windows,
    firsts: Sequence[int],
    stops: Sequence[int],
    target: Windows,
    first: int,
    stop: int,
) -> Iterable[Span]:
    """The windows from first to stop - 1 of the target that a range hits, one by one.

    Faster where many ranges lie in few windows: hours that make up days.
    """
    edges = target.ticks.ticks(first, stop + 1)
    lows = source.ticks.ranks([edge + 1 for edge in edges])
    highs = source.ticks.ranks(edges)
    place, last = 0, len(firsts)
    for number in range(first, stop):
        low, high = lows[number - first] - 1, highs[number - first + 1]
        place = bisect_right(stops, low, place)
        if place == last:
            return
        if firsts[place] < high:
            yield number, number + 1


def merged(spans: Iterable[Span]) -> list[Span]:
    """Spans whose starts and ends ascend, with those that touch in one."""
    found: list[Span] = []
    for first, stop in spans:
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], stop)
        else:
            found.append((first, stop))
    return found
