"""Slabs: ranges of windows with the same segments, of which sets of partitions consist."""

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
    """Yield the slabs of a combination of two lists.

    Both lists are walked edge by edge; between two edges each side has one set of segments.
    """
    left, right = list(left), list(right)
    edges = sorted({edge for slab in chain(left, right) for edge in slab[:2]})
    sides = _segments_at(left, edges), _segments_at(right, edges)
    for (low, high), left_segments, right_segments in zip(pairwise(edges), *sides, strict=False):
        if picked := pick(left_segments, right_segments):
            yield WindowRange(low, high, picked)


def _segments_at(slabs: list[WindowRange], edges: list[int]) -> Iterator[SegmentNumbers]:
    """Yield the segments that disjoint slabs have from each edge on."""
    coming = iter(slabs)
    slab = next(coming, None)
    for edge in edges:
        while slab is not None and slab.stop <= edge:
            slab = next(coming, None)
        yield slab.segments if slab is not None and slab.first <= edge else NO_SEGMENTS


def disjoint(slabs: list[WindowRange]) -> Iterable[WindowRange]:
    """Return the same partitions as ordered slabs that do not overlap."""
    slabs = [slab for slab in slabs if slab.first < slab.stop and slab.segments]
    if all(before.stop <= after.first for before, after in pairwise(slabs)):
        return slabs
    if all(slab.segments == slabs[0].segments for slab in slabs):
        return _flattened(sorted(slabs))
    half = len(slabs) // 2
    halves = disjoint(slabs[:half]), disjoint(slabs[half:])
    return list(
        combined(*halves, lambda left_segments, right_segments: left_segments | right_segments)
    )


def _flattened(slabs: list[WindowRange]) -> list[WindowRange]:
    """Return slabs of equal segments, ordered by their first window, without overlap."""
    flat = [slabs[0]]
    for slab in slabs[1:]:
        if slab.first <= flat[-1].stop:
            flat[-1] = flat[-1]._replace(stop=max(flat[-1].stop, slab.stop))
        else:
            flat.append(slab)
    return flat


def merged(space: KeyIndex, slabs: Iterable[WindowRange]) -> Iterator[WindowRange]:
    """Yield slabs in the canonical form: no excluded window at an edge, equal neighbours merged."""
    pending: WindowRange | None = None
    for slab in slabs:
        if space.windows is not None:
            slab = WindowRange(*space.windows.trim(slab.first, slab.stop), slab.segments)
            if slab.first == slab.stop:
                continue
        if pending is None:
            pending = slab
        elif pending.segments == slab.segments and (
            pending.stop == slab.first or not space.count(pending.stop, slab.first)
        ):
            pending = pending._replace(stop=slab.stop)
        else:
            yield pending
            pending = slab
    if pending is not None:
        yield pending
