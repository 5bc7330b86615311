"""Ticks of a cadence as instants, numbered in order: the boundaries of windows.

Numbers never depend on the present time, on a requested range, or on earlier calls (calendar rule
3). Ticks are computed by arithmetic: a zone is a list of periods of constant offset, and within a
period instants follow the wall clock one to one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from operator import add
from typing import Protocol

from slicewise.calendar.cadence import Cadence, CronCadence, StepCadence
from slicewise.calendar.wall_ticks import WallTicks
from slicewise.calendar.zones import DAY, HORIZON, OffsetTable, Zone


class Ticks(Protocol):
    """Instants in order, each with a number."""

    def rank(self, instant: int) -> int:
        """Return the number of the first tick at or after the instant."""

    def tick(self, number: int) -> int:
        """Return the instant of the tick of that number."""

    def ticks(self, first: int, stop: int) -> Sequence[int]:
        """Return instants of the ticks numbered first to stop - 1."""

    def number_of(self, start: int, stop: int) -> int | None:
        """Return the number of the tick at `start` if the next one is at `stop`."""

    def ranks(self, instants: Sequence[int]) -> Sequence[int]:
        """Return the ranks of instants in ascending order, faster than one by one."""

    def at(self, numbers: Sequence[int]) -> Sequence[int]:
        """Return the instants of ticks with ascending numbers, faster than one by one."""


class EvenTicks:
    """A tick every `step` seconds, aligned to an instant (calendar rule 7)."""

    def __init__(self, step: int, anchor: int) -> None:
        self._step = step
        self._phase = anchor % step

    def rank(self, instant: int) -> int:
        """Return the number of the first tick at or after the instant."""
        return -((self._phase - instant) // self._step)

    def tick(self, number: int) -> int:
        """Return the instant of the tick of that number."""
        return self._phase + number * self._step

    def ticks(self, first: int, stop: int) -> Sequence[int]:
        """Return instants of the ticks numbered first to stop - 1."""
        return range(self.tick(first), self.tick(max(first, stop)), self._step)

    def number_of(self, start: int, stop: int) -> int | None:
        """Return the number of the tick at `start` if the next one is at `stop`."""
        number, rest = divmod(start - self._phase, self._step)
        return None if rest or stop - start != self._step else number

    def ranks(self, instants: Sequence[int]) -> Sequence[int]:
        """Return the ranks of instants in ascending order."""
        phase, step = self._phase, self._step
        return [-((phase - instant) // step) for instant in instants]

    def at(self, numbers: Sequence[int]) -> Sequence[int]:
        """Return the instants of ticks with ascending numbers."""
        phase, step = self._phase, self._step
        return [phase + number * step for number in numbers]


class ShiftedTicks:
    """Other ticks, each a number of seconds later."""

    def __init__(self, ticks: Ticks, seconds: int) -> None:
        self._ticks, self._seconds = ticks, seconds

    def rank(self, instant: int) -> int:
        """Return the number of the first tick at or after the instant."""
        return self._ticks.rank(instant - self._seconds)

    def tick(self, number: int) -> int:
        """Return the instant of the tick of that number."""
        return self._ticks.tick(number) + self._seconds

    def ticks(self, first: int, stop: int) -> Sequence[int]:
        """Return instants of the ticks numbered first to stop - 1."""
        return [tick + self._seconds for tick in self._ticks.ticks(first, stop)]

    def number_of(self, start: int, stop: int) -> int | None:
        """Return the number of the tick at `start` if the next one is at `stop`."""
        return self._ticks.number_of(start - self._seconds, stop - self._seconds)

    def ranks(self, instants: Sequence[int]) -> Sequence[int]:
        """Return the ranks of instants in ascending order, faster than one by one."""
        return self._ticks.ranks([instant - self._seconds for instant in instants])

    def at(self, numbers: Sequence[int]) -> Sequence[int]:
        """Return the instants of ticks with ascending numbers, faster than one by one."""
        return [tick + self._seconds for tick in self._ticks.at(numbers)]


class PlacedTicks:
    """Wall ticks that the offsets of one table turn into instants (calendar rules 4 and 5)."""

    def __init__(self, wall: WallTicks, table: OffsetTable, elapsed: bool) -> None:
        self._wall = wall
        self._starts, self._offsets = table.starts, table.offsets
        readings = list(map(add, table.starts, table.offsets))
        begins, ends = wall.ranks(readings), wall.ranks(map(add, table.starts[1:], table.offsets))
        # Calendar rule 5 depends on the clock's reading, calendar rule 4 also on earlier ones.
        earlier_ranks = begins if elapsed else [begins[0], *wall.ranks(table.reach[:-1])]
        # For each period: the number of its first wall tick (after a fold, the first wall tick that
        # the clock never read before); whether the period begins with a tick that the wall clock
        # skipped (a gap); and the number of its first tick.
        self._low = list(map(max, begins, earlier_ranks))
        self._in_gap = [
            int(old < new and wall.tick(new) != reading)
            for old, new, reading in zip(earlier_ranks, begins, readings, strict=True)
        ]
        passed = [
            gap + ended - low if ended > low else gap
            for gap, low, ended in zip(self._in_gap, self._low, ends, strict=False)
        ]
        self._first = list(accumulate(passed, initial=begins[0]))

    def rank(self, instant: int) -> int:
        """Return the number of the first tick at or after the instant."""
        index = max(0, bisect_right(self._starts, instant) - 1)
        start = self._starts[index]
        if instant == start:
            return self._first[index]
        passed = self._wall.rank(instant + self._offsets[index]) - self._low[index]
        if index:
            passed = max(0, passed) + self._in_gap[index]
        return self._first[index] + passed

    def tick(self, number: int) -> int:
        """Return the instant of the tick of that number."""
        index = max(0, bisect_right(self._first, number) - 1)
        passed = number - self._first[index] - self._in_gap[index]
        if passed < 0 and index:
            return self._starts[index]
        return self._wall.tick(self._low[index] + passed) - self._offsets[index]

    def ticks(self, first: int, stop: int) -> Sequence[int]:
        """Return instants of the ticks numbered first to stop - 1."""
        instants: list[int] = []
        while first < stop:
            index = max(0, bisect_right(self._first, first) - 1)
            ended = self._first[index + 1] if index + 1 < len(self._first) else stop
            upto = min(stop, ended)
            if first == self._first[index] and self._in_gap[index]:
                instants.append(self._starts[index])
                first += 1
            shift = self._low[index] - self._first[index] - self._in_gap[index]
            offset = self._offsets[index]
            instants += [wall - offset for wall in self._wall.ticks(first + shift, upto + shift)]
            first = upto
        return instants

    def number_of(self, start: int, stop: int) -> int | None:
        """Return the number of the tick at `start` if the next one is at `stop`."""
        index = bisect_right(self._starts, start) - 1
        step = self._wall.step
        if step and 0 <= index < len(self._starts) - 1:
            begins, ends = self._starts[index : index + 2]
            wall, rest = divmod(start + self._offsets[index] - self._wall.phase, step)
            passed = wall - self._low[index]
            if begins < start and stop < ends and passed >= 0:  # no change of offset is near
                if rest or stop - start != step:
                    return None
                return self._first[index] + self._in_gap[index] + passed
        number = self.rank(start)
        return number if self.tick(number) == start and self.tick(number + 1) == stop else None

    def ranks(self, instants: Sequence[int]) -> Sequence[int]:
        """Return the ranks of instants in ascending order."""
        ranks: list[int] = []
        position = 0
        while position < len(instants):
            index = max(0, bisect_right(self._starts, instants[position]) - 1)
            upto = _end_of(self._starts, index, instants)
            low, offset = self._low[index], self._offsets[index]
            number_shift = self._first[index] + self._in_gap[index] - low
            # At the very start of a period a tick of a gap is still to come, and in a fold the
            # clock repeats earlier readings. Such instants are few: compute each by itself.
            while position < upto and self.rank(instants[position]) == self._first[index]:
                ranks.append(self._first[index])
                position += 1
            readings = [instant + offset for instant in instants[position:upto]]
            ranks += [number_shift + rank for rank in self._wall.ranks(readings)]
            position = upto
        return ranks

    def at(self, numbers: Sequence[int]) -> Sequence[int]:
        """Return the instants of ticks with ascending numbers."""
        instants: list[int] = []
        position = 0
        while position < len(numbers):
            index = max(0, bisect_right(self._first, numbers[position]) - 1)
            upto = _end_of(self._first, index, numbers)
            if self._in_gap[index]:
                while position < upto and numbers[position] == self._first[index]:
                    instants.append(self._starts[index])
                    position += 1
            shift = self._low[index] - self._first[index] - self._in_gap[index]
            offset = self._offsets[index]
            wall_numbers = [number + shift for number in numbers[position:upto]]
            instants += [wall - offset for wall in self._wall.at(wall_numbers)]
            position = upto
        return instants


def _end_of(borders: Sequence[int], index: int, values: Sequence[int]) -> int:
    """Return the end position, in ascending values, of the values in the period with that index."""
    return bisect_left(values, borders[index + 1]) if index + 1 < len(borders) else len(values)


class CronTicks:
    """Ticks of a cron cadence in a zone; ticks of the far future are computed on first use."""

    def __init__(self, cadence: CronCadence, zone: Zone, elapsed: bool) -> None:
        self._cadence, self._zone, self._elapsed = cadence, zone, elapsed
        self._near = self._placed(zone.near)
        self._border = HORIZON - 7 * DAY
        self._last_near = self._near.rank(self._border)

    @cached_property
    def _far(self) -> PlacedTicks:
        return self._placed(self._zone.far) if self._zone.changes_for_ever else self._near

    def _placed(self, table: OffsetTable) -> PlacedTicks:
        return PlacedTicks(self._cadence.wall_ticks, table, self._elapsed)

    def rank(self, instant: int) -> int:
        """Return the number of the first tick at or after the instant."""
        return (self._near if instant < self._border else self._far).rank(instant)

    def tick(self, number: int) -> int:
        """Return the instant of the tick of that number."""
        return (self._near if number < self._last_near else self._far).tick(number)

    def ticks(self, first: int, stop: int) -> Sequence[int]:
        """Return instants of the ticks numbered first to stop - 1."""
        return (self._near if stop <= self._last_near else self._far).ticks(first, stop)

    def number_of(self, start: int, stop: int) -> int | None:
        """Return the number of the tick at `start` if the next one is at `stop`."""
        return (self._near if stop < self._border else self._far).number_of(start, stop)

    def ranks(self, instants: Sequence[int]) -> Sequence[int]:
        """Return the ranks of instants in ascending order."""
        far = bool(instants) and instants[-1] >= self._border
        return (self._far if far else self._near).ranks(instants)

    def at(self, numbers: Sequence[int]) -> Sequence[int]:
        """Return the instants of ticks with ascending numbers."""
        far = bool(numbers) and numbers[-1] >= self._last_near
        return (self._far if far else self._near).at(numbers)


def ticks_of(cadence: Cadence, zone: Zone, anchor: int, elapsed: bool | None = None) -> Ticks:
    """Return the ticks of a cadence in a zone; a step of elapsed time aligns to the anchor.

    `elapsed` chooses calendar rule 5 (True) or 4 (False) for a cron; None lets the cron's hour
    field decide.
    """
    if isinstance(cadence, StepCadence):
        return EvenTicks(cadence.seconds, anchor)
    return CronTicks(cadence, zone, cadence.follows_elapsed_time if elapsed is None else elapsed)
