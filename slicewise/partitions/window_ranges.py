"""Window ranges: windows in a row with the same segments, of which sets of partitions consist."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple

from slicewise.partitions.key_index import KeyIndex

SegmentNumbers = frozenset[int]
Pick = Callable[[SegmentNumbers, SegmentNumbers], SegmentNumbers]
"""A function that returns the segments of a combination from the segments of both sets."""

NO_SEGMENTS: SegmentNumbers = frozenset()


class WindowRange(NamedTuple):
    """Windows numbered first to stop - 1, all with the same segments."""

    first: int
    stop: int
    segments: SegmentNumbers


def combined(
    left: Iterable[WindowRange],
    right: Iterable[WindowRange],
    pick: Pick,
) -> Iterator[WindowRange]:
    """Yield the window ranges of a combination of two lists.

    Both lists are walked edge by edge; between two edges each side has one set of segments.
    """
    left, right = list(left), list(right)
    edges = sorted({edge for window_range in chain(left, right) for edge in window_range[:2]})
    sides = _segments_at(left, edges), _segments_at(right, edges)
    for (low, high), left_segments, right_segments in zip(pairwise(edges), *sides, strict=False):
        if picked := pick(left_segments, right_segments):
            yield WindowRange(low, high, picked)


def _segments_at(window_ranges: list[WindowRange], edges: list[int]) -> Iterator[SegmentNumbers]:
    """Yield the segments that disjoint window ranges have from each edge on."""
    coming = iter(window_ranges)
    window_range = next(coming, None)
    for edge in edges:
        while window_range is not None and window_range.stop <= edge:
            window_range = next(coming, None)
        yield (
            window_range.segments
            if window_range is not None and window_range.first <= edge
            else NO_SEGMENTS
        )


def disjoint(window_ranges: list[WindowRange]) -> Iterable[WindowRange]:
    """Return the same partitions as ordered window ranges that do not overlap."""
    window_ranges = [
        window_range
        for window_range in window_ranges
        if window_range.first < window_range.stop and window_range.segments
    ]
    if all(before.stop <= after.first for before, after in pairwise(window_ranges)):
        return window_ranges
    if all(window_range.segments == window_ranges[0].segments for window_range in window_ranges):
        return _flattened(sorted(window_ranges))
    half = len(window_ranges) // 2
    halves = disjoint(window_ranges[:half]), disjoint(window_ranges[half:])
    return list(
        combined(*halves, lambda left_segments, right_segments: left_segments | right_segments)
    )


def _flattened(window_ranges: list[WindowRange]) -> list[WindowRange]:
    """Return window ranges of equal segments, ordered by their first window, without overlap."""
    flat = [window_ranges[0]]
    for window_range in window_ranges[1:]:
        if window_range.first <= flat[-1].stop:
            flat[-1] = flat[-1]._replace(stop=max(flat[-1].stop, window_range.stop))
        else:
            flat.append(window_range)
    return flat


def merged(space: KeyIndex, window_ranges: Iterable[WindowRange]) -> Iterator[WindowRange]:
    """Yield window ranges in canonical form.

    No excluded window is at an edge, and equal neighbours are merged.
    """
    pending: WindowRange | None = None
    for window_range in window_ranges:
        if space.windows is not None:
            window_range = WindowRange(
                *space.windows.trim(window_range.first, window_range.stop), window_range.segments
            )
            if window_range.first == window_range.stop:
                continue
        if pending is None:
            pending = window_range
        elif pending.segments == window_range.segments and (
            pending.stop == window_range.first
            or next(space.runs(pending.stop, window_range.first), None) is None
        ):
            pending = pending._replace(stop=window_range.stop)
        else:
            yield pending
            pending = window_range
    if pending is not None:
        yield pending
