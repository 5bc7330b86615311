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
    """A window range of the larger set, and the position of its first partition."""

    window_range: WindowRange
    segments: Sequence[int]
    position: int


class Positions:
    """The positions of a set's partitions: by window, then segment, from 0 on."""

    def __init__(self, partitions: slicewise.PartitionSet) -> None:
        self.whole = partitions
        self._space = partitions.space
        self._stretches: list[_Stretch] = []
        position = 0
        for window_range in partitions.window_ranges:
            self._stretches.append(_Stretch(window_range, sorted(window_range.segments), position))
            window_count = self._space.count(window_range.first, window_range.stop)
            position += window_count * len(window_range.segments)
        self.count = position

    def holes(self) -> list[int]:
        """Return the positions before which windows are left out."""
        return [
            after.position
            for before, after in zip(self._stretches, self._stretches[1:], strict=False)
            if self._space.count(before.window_range.stop, after.window_range.first)
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
        window_ranges = [
            window_range
            for first, stop in ranges
            for window_range in self.whole[first:stop].window_ranges
        ]
        return slicewise.PartitionSet(self.whole.definition, window_ranges)

    def _pieces(self, subset: slicewise.PartitionSet) -> Iterator[Range]:
        index = 0
        for window_range in subset.window_ranges:
            while (
                index < len(self._stretches)
                and self._stretches[index].window_range.stop <= window_range.first
            ):
                index += 1
            for stretch in self._stretches[index:]:
                if stretch.window_range.first >= window_range.stop:
                    break
                yield from self._shared(stretch, window_range)

    def _shared(self, stretch: _Stretch, window_range: WindowRange) -> Iterator[Range]:
        range_of_set, width = stretch.window_range, len(stretch.segments)
        rows = [
            self._space.count(range_of_set.first, edge)
            for edge in (
                max(range_of_set.first, window_range.first),
                min(range_of_set.stop, window_range.stop),
            )
        ]
        if range_of_set.segments <= window_range.segments:
            yield stretch.position + rows[0] * width, stretch.position + rows[1] * width
            return
        columns = [
            column
            for column, segment in enumerate(stretch.segments)
            if segment in window_range.segments
        ]
        within = list(merged((column, column + 1) for column in columns))
        for row in range(*rows):
            start = stretch.position + row * width
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
