"""Windows of one definition that overlap windows of another, computed for whole sets at a time."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from slicewise.partitions.windows import Windows

Span = tuple[int, int]
Ranges = tuple[Sequence[int], Sequence[int]]
"""Ranges of window numbers in order, as two columns: first numbers and stop numbers."""


def overlapping(source: Windows, ranges: Ranges, target: Windows) -> list[Span]:
    """Return the numbers of target windows that overlap ranges of source windows, as merged ranges.

    The bounds and exclusions of the target are ignored.
    """
    firsts, stops = ranges
    (since,), (until,) = source.ticks.at(firsts[:1]), source.ticks.at(stops[-1:])
    first, stop = target.ticks.rank(since + 1) - 1, target.ticks.rank(until)
    if stop - first < len(firsts):
        return merged(_overlapped_windows(source, firsts, stops, target, first, stop))
    starts = [start + 1 for start in source.ticks.at(firsts)]
    upper_ranks = target.ticks.ranks(starts)
    ends = target.ticks.ranks(source.ticks.at(stops))
    return merged((after - 1, end) for after, end in zip(upper_ranks, ends, strict=True))


def _overlapped_windows(
    source: Windows,
    firsts: Sequence[int],
    stops: Sequence[int],
    target: Windows,
    first: int,
    stop: int,
) -> Iterable[Span]:
    """Yield a range for each window of the target, from first to stop - 1, that a source range
    overlaps.

    This way is faster where many ranges lie in few windows, such as hours in days.
    """
    edges = target.ticks.ticks(first, stop + 1)
    lows = source.ticks.ranks([edge + 1 for edge in edges])
    highs = source.ticks.ranks(edges)
    position, last = 0, len(firsts)
    for number in range(first, stop):
        low, high = lows[number - first] - 1, highs[number - first + 1]
        position = bisect_right(stops, low, position)
        if position == last:
            return
        if firsts[position] < high:
            yield number, number + 1


def merged(spans: Iterable[Span]) -> list[Span]:
    """Merge adjacent and overlapping spans; starts and ends of the spans must ascend."""
    merged_spans: list[Span] = []
    for first, stop in spans:
        if merged_spans and first <= merged_spans[-1][1]:
            merged_spans[-1] = (merged_spans[-1][0], stop)
        else:
            merged_spans.append((first, stop))
    return merged_spans
