"""Ticks of a cron expression on a clock without a zone, computed by arithmetic."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from slicewise.calendar.day_cycles import Days
from slicewise.calendar.zones import DAY


class WallTicks:
    """Wall seconds at which a cron expression ticks, numbered in order.

    `times` are seconds within a day, ascending. If all neighbouring ticks are equally far apart,
    tick n is at `phase + n * step`; else `step` is 0.
    """

    def __init__(self, days: Days, times: Sequence[int]) -> None:
        self._days = days
        self._times = times
        # Evenly spaced ticks (most presets, */n) need no bisection and list as a range.
        self.step = _even_step(days, times)
        self.phase = days.day(0) * DAY + times[0]

    def rank(self, wall: int) -> int:
        """Return the number of the first tick at or after `wall`."""
        if self.step:
            return -((self.phase - wall) // self.step)
        day, second = divmod(wall, DAY)
        rank = self._days.rank(day)
        before = rank * len(self._times)
        if self._days.day(rank) != day:
            return before
        return before + bisect_left(self._times, second)

    def tick(self, number: int) -> int:
        """Return the wall seconds of the tick of that number."""
        if self.step:
            return self.phase + number * self.step
        rank, index = divmod(number, len(self._times))
        return self._days.day(rank) * DAY + self._times[index]

    def ranks(self, walls: Iterable[int]) -> list[int]:
        """Return the ranks of many wall seconds."""
        if step := self.step:
            phase = self.phase
            return [-((phase - wall) // step) for wall in walls]
        return [self.rank(wall) for wall in walls]

    def at(self, numbers: Iterable[int]) -> list[int]:
        """Return the wall seconds of many ticks."""
        if step := self.step:
            phase = self.phase
            return [phase + number * step for number in numbers]
        return [self.tick(number) for number in numbers]

    def ticks(self, first: int, stop: int) -> Sequence[int]:
        """Return the wall seconds of the ticks numbered first to stop - 1."""
        if self.step:
            start = self.phase + first * self.step
            return range(start, start + max(0, stop - first) * self.step, self.step)
        if first >= stop:
            return ()
        size = len(self._times)
        ranks = range(first // size, -(-stop // size))
        midnights = [self._days.day(rank) * DAY for rank in ranks]
        walls = [midnight + time for midnight in midnights for time in self._times]
        skipped = first - ranks.start * size
        return walls[skipped : skipped + stop - first]


def _even_step(days: Days, times: Sequence[int]) -> int:
    """Return the seconds between neighbouring ticks if all distances are equal, else 0."""
    if len(times) == 1:
        return days.step * DAY
    if days.step != 1 or DAY % len(times):
        return 0
    step = DAY // len(times)
    return step if list(times) == list(range(times[0], times[0] + DAY, step)) else 0
