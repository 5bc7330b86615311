"""The partitions that a grid can show: all of a definition as far as they are expected by now, or
chosen ones, as a backfill has them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from partitions_app.grid import lists
from partitions_app.grid.periods import (
    Clock,
    Period,
    counts_starting,
    date_of,
    midnight,
    span_of,
    windows_in,
    windows_starting,
)
from slicewise import Interval, PartitionDefinition, PartitionSet
from slicewise.partitions import TimeDefinition, WindowRange

# The numbers of windows that start in a cell: all windows, and windows that have ended.
Expected = tuple[int, int]


@dataclass(frozen=True)
class Extent:
    """All partitions of a definition. ``address_bytes`` is the length of an address that stands
    before each cell's own.
    """

    definition: PartitionDefinition
    clock: Clock
    address_bytes: int = 0

    @property
    def time(self) -> TimeDefinition | None:
        """The partition definition of the time dimension."""
        return self.definition.time_dimension

    @property
    def windows_definition(self) -> TimeDefinition:
        """The definition of the time dimension; LookupError without time."""
        if self.time is None:
            raise LookupError("a grid without time has no windows")
        return self.time

    @cached_property
    def span(self) -> tuple[date, date]:
        """The local dates on which the first and the last window begin."""
        return span_of(self.windows_definition, self.clock)

    @property
    def segment_total(self) -> int:
        """The number of combinations of segments; 1 without dimensions of segments."""
        return lists.segment_count(self.definition)

    def segments(self, first: int, stop: int) -> list[str]:
        """Return the texts of combinations of segments ``[first, stop)``, in order."""
        return lists.segments(self.definition, first, stop)

    def window_count(self, period: Period) -> int:
        """Count the windows that start in a period."""
        return windows_in(self.windows_definition, period)

    def windows(self, period: Period) -> Iterator[Interval]:
        """Return the windows that start in a period, in order."""
        return windows_starting(self.windows_definition, period.first, period.stop, self.clock)

    def expected(self, edges: Sequence[date]) -> Sequence[Expected] | None:
        """Count the windows that start between each two edges; None where the counts of partitions
        in all states tell the number.
        """
        return counts_starting(self.windows_definition, edges, self.clock)


@dataclass(frozen=True, kw_only=True)
class ChosenExtent(Extent):
    """Some partitions of a definition, ended or not; ``clock`` does not matter."""

    chosen: PartitionSet

    @cached_property
    def span(self) -> tuple[date, date]:
        first, last = self.chosen.window_ranges[0], self.chosen.window_ranges[-1]
        start, end = self.chosen.windows(first)[0], self.chosen.windows(last)[-1]
        if start is None or end is None:
            raise LookupError("a grid without time has no windows")
        zone = self.windows_definition.timezone
        return date_of(start.start, zone), date_of(end.start, zone)

    @property
    def segment_total(self) -> int:
        return len(self._segment_numbers)

    def segments(self, first: int, stop: int) -> list[str]:
        segments = self.chosen.space.segments
        return [segments.text(number) for number in self._segment_numbers[first:stop]]

    def window_count(self, period: Period) -> int:
        space = self.chosen.space
        return sum(space.count(first, stop) for first, stop, _ in self.within(period).window_ranges)

    def windows(self, period: Period) -> Iterator[Interval]:
        within = self.within(period)
        return (
            window
            for window_range in within.window_ranges
            for window in within.windows(window_range)
            if window
        )

    def expected(self, edges: Sequence[date]) -> Sequence[Expected] | None:
        return None

    def within(self, period: Period, first: int = 0, stop: int | None = None) -> PartitionSet:
        """Return the chosen partitions whose windows start in a period, of the segments
        ``[first, stop)``.
        """
        zone = self.windows_definition.timezone
        ticks = self.chosen.space.time.ticks
        edges = (midnight(edge, zone) for edge in (period.first, period.stop))
        start, end = (ticks.rank(int(edge.timestamp())) for edge in edges)
        return self._cut(start, end, self._segment_numbers[first:stop])

    def shown(self, windows: Sequence[Interval], first: int, stop: int) -> PartitionSet:
        """Return the chosen partitions among those of some windows, in order, and of the segments
        ``[first, stop)``.
        """
        numbers = self._segment_numbers[first:stop]
        if self.time is None:
            return self._cut(0, 1, numbers)
        if not windows:
            return self._cut(0, 0, numbers)
        number_at = self.chosen.space.time.number_at
        start, last = (number_at(windows[index].first_second) for index in (0, -1))
        return self._cut(start, last + 1, numbers)

    def _cut(self, first: int, stop: int, numbers: Sequence[int]) -> PartitionSet:
        window_range = WindowRange(first, stop, frozenset(numbers))
        return self.chosen & PartitionSet(self.chosen.definition, [window_range])

    @cached_property
    def _segment_numbers(self) -> list[int]:
        ranges = self.chosen.window_ranges
        return sorted(frozenset[int]().union(*(segments for _, _, segments in ranges)))
