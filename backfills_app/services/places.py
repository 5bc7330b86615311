"""Where the partitions of a set stand in a larger one.

Rows are numbered so, and sets come back from ranges of such numbers by arithmetic.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import slicewise
from slicewise.slabs import Slab

Range = tuple[int, int]


class _Stretch(NamedTuple):
    """A slab of the whole, and the place of its first partition."""

    slab: Slab
    segments: Sequence[int]
    place: int


class Places:
    """The places of a set's partitions: by window, then segment, from 0 on."""

    def __init__(self, whole: slicewise.PartitionSet) -> None:
        self.whole = whole
        self._space = whole.space
        self._stretches: list[_Stretch] = []
        place = 0
        for slab in whole.slabs:
            self._stretches.append(_Stretch(slab, sorted(slab.segments), place))
            place += self._space.count(slab.first, slab.stop) * len(slab.segments)
        self.count = place

    def holes(self) -> list[int]:
        """Return the positions before which windows are left out."""
        return [
            after.place
            for before, after in zip(self._stretches, self._stretches[1:], strict=False)
            if self._space.count(before.slab.stop, after.slab.first)
        ]

    def ranges(self, part: slicewise.PartitionSet) -> list[Range]:
        """Return the positions of the partitions in a subset, as the fewest ranges."""
        return list(merged(self._pieces(part)))

    def unbroken(self, part: slicewise.PartitionSet) -> Iterator[Range]:
        """Return the positions of the partitions in a subset, as ranges without holes."""
        holes = self.holes()
        for first, stop in self.ranges(part):
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

    def _pieces(self, part: slicewise.PartitionSet) -> Iterator[Range]:
        at = 0
        for slab in part.slabs:
            while at < len(self._stretches) and self._stretches[at].slab.stop <= slab.first:
                at += 1
            for stretch in self._stretches[at:]:
                if stretch.slab.first >= slab.stop:
                    break
                yield from self._shared(stretch, slab)

    def _shared(self, stretch: _Stretch, slab: Slab) -> Iterator[Range]:
        own, width = stretch.slab, len(stretch.segments)
        rows = [
            self._space.count(own.first, edge)
            for edge in (max(own.first, slab.first), min(own.stop, slab.stop))
        ]
        if own.segments <= slab.segments:
            yield stretch.place + rows[0] * width, stretch.place + rows[1] * width
            return
        columns = [at for at, each in enumerate(stretch.segments) if each in slab.segments]
        within = list(merged((at, at + 1) for at in columns))
        for row in range(*rows):
            start = stretch.place + row * width
            yield from ((start + first, start + stop) for first, stop in within)


def merged(ranges: Iterable[Range]) -> Iterator[Range]:
    """Join ranges that touch; the ranges are in ascending order."""
    held: Range | None = None
    for first, stop in ranges:
        if held is not None and first <= held[1]:
            held = held[0], max(stop, held[1])
            continue
        if held is not None:
            yield held
        held = first, stop
    if held is not None:
        yield held


def ranges_of(places: Iterable[int]) -> list[Range]:
    """Return single positions, in any order, as ranges."""
    return list(merged((place, place + 1) for place in sorted(places)))
