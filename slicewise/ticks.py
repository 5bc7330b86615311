"""Ticks of a cadence as instants, numbered in order: the boundaries of windows.

Numbers never depend on now, on a range asked for, or on what was asked before (calendar rule 3).
Ticks are found by arithmetic: a zone is a list of periods of constant offset, and within a period
instants follow the wall clock one to one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from operator import add
from typing import Protocol

from slicewise.cadence import Cadence, CronCadence, StepCadence
from slicewise.wall_ticks import WallTicks
from slicewise.zones import DAY, HORIZON, OffsetTable, Zone


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
        """Return the instants of ticks whose numbers ascend, faster than one by one."""


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
        """Return the instants of ticks whose numbers ascend."""
        phase, step = self._phase, self._step
        return [phase + number * step for number in numbers]


class PlacedTicks:
    """Wall ticks placed on instants by the offsets of one table (calendar rules 4 and 5)."""

    def __init__(self, wall: WallTicks, table: OffsetTable, elapsed: bool) -> None:
        self._wall = wall
        self._starts, self._offsets = table.starts, table.offsets
        shown = list(map(add, table.starts, table.offsets))
        begins, ends = wall.ranks(shown), wall.ranks(map(add, table.starts[1:], table.offsets))
        # Calendar rule 5 asks only what the clock reads; calendar rule 4 also what it read before.
        seen = begins if elapsed else [begins[0], *wall.ranks(table.reach[:-1])]
        # Of each period: the wall number its clock begins with (after a fold, the first that was
        # never read before); whether the instant it begins at is a tick that the wall clock
        # skipped (a gap); and the number of its first tick.
        self._low = list(map(max, begins, seen))
        self._in_gap = [
            int(old < new and wall.tick(new) != begun)
            for old, new, begun in zip(seen, begins, shown, strict=True)
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
        found: list[int] = []
        while first < stop:
            index = max(0, bisect_right(self._first, first) - 1)
            ended = self._first[index + 1] if index + 1 < len(self._first) else stop
            upto = min(stop, ended)
            if first == self._first[index] and self._in_gap[index]:
                found.append(self._starts[index])
                first += 1
            shift = self._low[index] - self._first[index] - self._in_gap[index]
            offset = self._offsets[index]
            found += [wall - offset for wall in self._wall.ticks(first + shift, upto + shift)]
            first = upto
        return found

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
        found: list[int] = []
        place = 0
        while place < len(instants):
            index = max(0, bisect_right(self._starts, instants[place]) - 1)
            upto = _end_of(self._starts, index, instants)
            low, offset = self._low[index], self._offsets[index]
            begun = self._first[index] + self._in_gap[index] - low
            # At the very start of a period a tick of a gap is still to come; and in a fold the
            # clock has to pass what it showed before. Both are few: look at them one by one.
            while place < upto and self.rank(instants[place]) == self._first[index]:
                found.append(self._first[index])
                place += 1
            part = [instant + offset for instant in instants[place:upto]]
            found += [begun + rank for rank in self._wall.ranks(part)]
            place = upto
        return found

    def at(self, numbers: Sequence[int]) -> Sequence[int]:
        """Return the instants of ticks whose numbers ascend."""
        found: list[int] = []
        place = 0
        while place < len(numbers):
            index = max(0, bisect_right(self._first, numbers[place]) - 1)
            upto = _end_of(self._first, index, numbers)
            if self._in_gap[index]:
                while place < upto and numbers[place] == self._first[index]:
                    found.append(self._starts[index])
                    place += 1
            shift = self._low[index] - self._first[index] - self._in_gap[index]
            offset = self._offsets[index]
            part = [number + shift for number in numbers[place:upto]]
            found += [wall - offset for wall in self._wall.at(part)]
            place = upto
        return found


def _end_of(borders: Sequence[int], index: int, values: Sequence[int]) -> int:
    """Where in ascending values those of the period with that index end."""
    return bisect_left(values, borders[index + 1]) if index + 1 < len(borders) else len(values)


class CronTicks:
    """Ticks of a cron cadence in a zone, with the far future placed only when it is asked for."""

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
        """Return the instants of ticks whose numbers ascend."""
        far = bool(numbers) and numbers[-1] >= self._last_near
        return (self._far if far else self._near).at(numbers)


def place(cadence: Cadence, zone: Zone, anchor: int, elapsed: bool | None = None) -> Ticks:
    """Return the ticks of a cadence in a zone; a step of elapsed time aligns to the anchor.

    `elapsed` makes a cron follow calendar rule 5 or 4 where its own hour field is not to decide.
    """
    if isinstance(cadence, StepCadence):
        return EvenTicks(cadence.seconds, anchor)
    return CronTicks(cadence, zone, cadence.follows_elapsed_time if elapsed is None else elapsed)
