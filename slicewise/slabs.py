"""Ranges of windows with the same segments, of which sets of partitions consist."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise
from typing import NamedTuple

from slicewise.space import Space

SegmentNumbers = frozenset[int]
Pick = Callable[[SegmentNumbers, SegmentNumbers], SegmentNumbers]
"""Which segments a combination of two sets has, from those of each."""

NO_SEGMENTS: SegmentNumbers = frozenset()


class Slab(NamedTuple):
    """Windows numbered first to stop - 1, each with the same segments."""

    first: int
    stop: int
    segments: SegmentNumbers


def combined(
    left: Iterable[Slab],
    right: Iterable[Slab],
    pick: Pick,
) -> Iterator[Slab]:
    """Walk both lists edge by edge; between two edges each side has one set of segments."""
    left, right = list(left), list(right)
    edges = sorted({edge for slab in chain(left, right) for edge in slab[:2]})
    sides = _segments_at(left, edges), _segments_at(right, edges)
    for (low, high), one, two in zip(pairwise(edges), *sides, strict=False):
        if picked := pick(one, two):
            yield Slab(low, high, picked)


def _segments_at(slabs: list[Slab], edges: list[int]) -> Iterator[SegmentNumbers]:
    """The segments that disjoint slabs have from each edge on."""
    coming = iter(slabs)
    slab = next(coming, None)
    for edge in edges:
        while slab is not None and slab.stop <= edge:
            slab = next(coming, None)
        yield slab.segments if slab is not None and slab.first <= edge else NO_SEGMENTS


def disjoint(slabs: list[Slab]) -> Iterable[Slab]:
    """Return the same partitions as slabs in order that do not overlap."""
    slabs = [slab for slab in slabs if slab.first < slab.stop and slab.segments]
    if all(before.stop <= after.first for before, after in pairwise(slabs)):
        return slabs
    if all(slab.segments == slabs[0].segments for slab in slabs):
        return _flattened(sorted(slabs))
    half = len(slabs) // 2
    halves = disjoint(slabs[:half]), disjoint(slabs[half:])
    return list(combined(*halves, lambda left, right: left | right))


def _flattened(slabs: list[Slab]) -> list[Slab]:
    """Slabs of equal segments, ordered by their first window, without overlap."""
    flat = [slabs[0]]
    for slab in slabs[1:]:
        if slab.first <= flat[-1].stop:
            flat[-1] = flat[-1]._replace(stop=max(flat[-1].stop, slab.stop))
        else:
            flat.append(slab)
    return flat


def merged(space: Space, slabs: Iterable[Slab]) -> Iterator[Slab]:
    """Return slabs in the one form of a set: no excluded window at an edge, neighbours of a
    kind in one.
    """
    held: Slab | None = None
    for slab in slabs:
        if space.windows is not None:
            slab = Slab(*space.windows.trim(slab.first, slab.stop), slab.segments)
            if slab.first == slab.stop:
                continue
        if held is None:
            held = slab
        elif held.segments == slab.segments and (
            held.stop == slab.first or not space.count(held.stop, slab.first)
        ):
            held = held._replace(stop=slab.stop)
        else:
            yield held
            held = slab
    if held is not None:
        yield held
