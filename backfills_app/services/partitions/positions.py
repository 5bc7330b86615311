"""Positions of partitions within a larger set.

Rows are numbered by position, and sets are built from ranges of positions by arithmetic.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import slicewise
from slicewise.partitions import WindowRange

Range = tuple[int, int]


class _Stretch(NamedTuple):
    """A slab of the larger set, and the position of the slab's first partition."""

    slab: WindowRange
    segments: Sequence[int]
    place: int


class Positions:
    """The positions of a set's partitions: by window, then segment, from 0 on."""

    def __init__(self, partitions: slicewise.PartitionSet) -> None:
        self.whole = partitions
        self._space = partitions.space
        self._stretches: list[_Stretch] = []
        position = 0
        for slab in partitions.slabs:
            self._stretches.append(_Stretch(slab, sorted(slab.segments), position))
            position += self._space.count(slab.first, slab.stop) * len(slab.segments)
        self.count = position

    def holes(self) -> list[int]:
        """Return the positions before which windows are left out."""
        return [
            after.place
            for before, after in zip(self._stretches, self._stretches[1:], strict=False)
            if self._space.count(before.slab.stop, after.slab.first)
        ]

    def ranges(self, subset: slicewise.PartitionSet) -> list[Range]:
        """Return the positions of the partitions in a subset, as the fewest ranges."""
        return list(merged(self._pieces(subset)))

    def unbroken(self, subset: slicewise.PartitionSet) -> Iterator[Range]:
        """Return the positions of the partitions in a subset, as ranges without holes."""
        holes = self.holes()
        for first, stop in self.ranges(subset):
            for hole in holes[bisect_right(holes, first) :]:
                if hole >= stop:
                    break
                yield first, hole
                first = hole
            yield first, stop

    def at(self, ranges: Iterable[Range]) -> slicewise.PartitionSet:
        """Return the partitions at these positions."""
        slabs = [slab for first, stop in ranges for slab in self.whole[first:stop].slabs]
        return slicewise.PartitionSet(self.whole.definition, slabs)

    def _pieces(self, subset: slicewise.PartitionSet) -> Iterator[Range]:
        index = 0
        for slab in subset.slabs:
            while index < len(self._stretches) and self._stretches[index].slab.stop <= slab.first:
                index += 1
            for stretch in self._stretches[index:]:
                if stretch.slab.first >= slab.stop:
                    break
                yield from self._shared(stretch, slab)

    def _shared(self, stretch: _Stretch, slab: WindowRange) -> Iterator[Range]:
        slab_of_set, width = stretch.slab, len(stretch.segments)
        rows = [
            self._space.count(slab_of_set.first, edge)
            for edge in (max(slab_of_set.first, slab.first), min(slab_of_set.stop, slab.stop))
        ]
        if slab_of_set.segments <= slab.segments:
            yield stretch.place + rows[0] * width, stretch.place + rows[1] * width
            return
        columns = [
            column for column, segment in enumerate(stretch.segments) if segment in slab.segments
        ]
        within = list(merged((column, column + 1) for column in columns))
        for row in range(*rows):
            start = stretch.place + row * width
            yield from ((start + first, start + stop) for first, stop in within)


def merged(ranges: Iterable[Range]) -> Iterator[Range]:
    """Join ranges that touch; the ranges are in ascending order."""
    pending: Range | None = None
    for first, stop in ranges:
        if pending is not None and first <= pending[1]:
            pending = pending[0], max(stop, pending[1])
            continue
        if pending is not None:
            yield pending
        pending = first, stop
    if pending is not None:
        yield pending


def ranges_of(positions: Iterable[int]) -> list[Range]:
    """Return single positions, in any order, as ranges."""
    return list(merged((position, position + 1) for position in sorted(positions)))
