"""Ticks of a cron expression on a clock without a zone, by arithmetic.

The Gregorian calendar repeats every 400 years, so the days a cron expression picks do as well: a
day's number among the picked ones is one division and one bisection away, however far it lies.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from croniter import CroniterBadDateError, croniter

from slicewise.zones import DAY

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_CYCLE_START = date(2000, 1, 1).toordinal() - _EPOCH_DAY
_CYCLE_YEARS = range(2000, 2400)
_SUNDAY = date(1970, 1, 4).toordinal() - _EPOCH_DAY


class DayCycle(NamedTuple):
    """Days (counted from 1970-01-01) that repeat: anchor + any multiple of period + each mark."""

    anchor: int
    period: int
    marks: Sequence[int]

    def rank(self, day: int) -> int:
        """How many picked days lie before `day`, counted from the anchor."""
        cycles, rest = divmod(day - self.anchor, self.period)
        return cycles * len(self.marks) + bisect_left(self.marks, rest)

    def day(self, rank: int) -> int:
        """The picked day of that rank."""
        cycles, rest = divmod(rank, len(self.marks))
        return self.anchor + cycles * self.period + self.marks[rest]


class WallTicks:
    """Wall seconds at which a cron expression ticks, numbered in order.

    `times` are seconds within a day, ascending. Where any two neighbours are equally far apart,
    tick n is at `phase + n * step`; else `step` is 0.
    """

    def __init__(self, days: DayCycle, times: Sequence[int]) -> None:
        self._days = days
        self._times = times
        # Evenly spaced ticks (most presets, */n) need no bisection and list as a range.
        self.step = _even_step(days, times)
        self.phase = (days.anchor + days.marks[0]) * DAY + times[0]

    def rank(self, wall: int) -> int:
        """The number of the first tick at or after `wall`."""
        if self.step:
            return -((self.phase - wall) // self.step)
        day, second = divmod(wall, DAY)
        rank = self._days.rank(day)
        before = rank * len(self._times)
        if self._days.day(rank) != day:
            return before
        return before + bisect_left(self._times, second)

    def tick(self, number: int) -> int:
        """Wall seconds of the tick of that number."""
        if self.step:
            return self.phase + number * self.step
        rank, index = divmod(number, len(self._times))
        return self._days.day(rank) * DAY + self._times[index]

    def ranks(self, walls: Iterable[int]) -> list[int]:
        """The ranks of many."""
        if step := self.step:
            phase = self.phase
            return [-((phase - wall) // step) for wall in walls]
        return [self.rank(wall) for wall in walls]

    def at(self, numbers: Iterable[int]) -> list[int]:
        """Wall seconds of many ticks."""
        if step := self.step:
            phase = self.phase
            return [phase + number * step for number in numbers]
        return [self.tick(number) for number in numbers]

    def ticks(self, first: int, stop: int) -> Sequence[int]:
        """Wall seconds of the ticks numbered first to stop - 1."""
        if self.step:
            start = self.phase + first * self.step
            return range(start, start + max(0, stop - first) * self.step, self.step)
        if first >= stop:
            return ()
        size = len(self._times)
        ranks = range(first // size, -(-stop // size))
        midnights = [self._days.day(rank) * DAY for rank in ranks]
        whole = [midnight + time for midnight in midnights for time in self._times]
        skipped = first - ranks.start * size
        return whole[skipped : skipped + stop - first]


def _even_step(days: DayCycle, times: Sequence[int]) -> int:
    """Seconds between any two neighbouring ticks, 0 where they differ."""
    if days.period == 1 and DAY % len(times) == 0:
        step = DAY // len(times)
        return step if all(b - a == step for a, b in pairwise(times)) else 0
    if len(days.marks) == len(times) == 1:
        return days.period * DAY
    return 0


@lru_cache(maxsize=1024)
def picked_days(day_of_month: str, month: str, day_of_week: str) -> DayCycle:
    """Days picked by the last three fields of a cron expression, as croniter reads them."""
    text = f"0 0 {day_of_month} {month} {day_of_week}"
    cron = croniter(text)
    days, months, weekdays = cron.expanded[2:5]
    if days == months == weekdays == ["*"]:
        return DayCycle(0, 1, (0,))
    special = cron.nth_weekday_of_month or cron.nearest_weekday
    if days == months == ["*"] and not special:
        return DayCycle(_SUNDAY, 7, tuple(int(weekday) for weekday in weekdays))
    return DayCycle(_CYCLE_START, 146_097, _cycle(text))


def _cycle(text: str) -> list[int]:
    """Picked days of 400 years. A year's days follow from its length and its first weekday."""
    kinds: dict[tuple[int, int], list[int]] = {}
    lengths, picked = [], []
    for year in _CYCLE_YEARS:
        first = date(year, 1, 1)
        length = (date(year + 1, 1, 1) - first).days
        kind = (length, first.weekday())
        if kind not in kinds:
            kinds[kind] = [day.timetuple().tm_yday - 1 for day in _days_of_year(text, year)]
        lengths.append(length)
        picked.append(kinds[kind])
    starts = accumulate(lengths, initial=0)
    return [start + day for start, days in zip(starts, picked, strict=False) for day in days]


def _days_of_year(text: str, year: int) -> Iterator[datetime]:
    walk = croniter(text, datetime(year - 1, 12, 31, 23, 59))
    try:
        while (day := walk.get_next(datetime)).year == year:
            yield day
    except CroniterBadDateError:  # rarer than croniter looks ahead: none in this year
        return
