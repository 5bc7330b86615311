"""The days that a cron expression picks, by arithmetic.

The Gregorian calendar repeats every 400 years, so the picked days repeat as well. The number of a
picked day takes one division and two bisections, however far the day is away.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache, lru_cache
from itertools import accumulate
from typing import NamedTuple, Protocol

from slicewise.calendar.cron_fields import DayFields

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_CYCLE_START = date(2000, 1, 1).toordinal() - _EPOCH_DAY
_CYCLE_DAYS = 146_097
_SUNDAY = date(1970, 1, 4).toordinal() - _EPOCH_DAY
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Days(Protocol):
    """Picked days, counted from 1970-01-01 and numbered in order."""

    @property
    def step(self) -> int:
        """Days from one picked day to the next, 0 where the distance varies."""

    def rank(self, day: int) -> int:
        """Return the number of the first picked day at or after `day`."""

    def day(self, rank: int) -> int:
        """Return the picked day of number `rank`."""


class DayCycle(NamedTuple):
    """Days that repeat after a short period: anchor + any multiple of period + each mark."""

    anchor: int
    period: int
    marks: Sequence[int]

    @property
    def step(self) -> int:
        """Days from one picked day to the next, 0 where the distance varies."""
        return self.period if len(self.marks) == 1 else 0

    def rank(self, day: int) -> int:
        """Return the number of the first picked day at or after `day`."""
        cycles, rest = divmod(day - self.anchor, self.period)
        return cycles * len(self.marks) + bisect_left(self.marks, rest)

    def day(self, rank: int) -> int:
        """Return the picked day of number `rank`."""
        cycles, rest = divmod(rank, len(self.marks))
        return self.anchor + cycles * self.period + self.marks[rest]


class YearCycle:
    """Days picked by month or by position in a month. The 400 years are of only 14 kinds."""

    step = 0

    def __init__(self, fields: DayFields) -> None:
        starts, kinds = _years()
        days_by_kind = {kind: list(_days_of_year(fields, *kind)) for kind in set(kinds)}
        self._starts = starts
        self._days = [days_by_kind[kind] for kind in kinds]
        self._before = list(accumulate(map(len, self._days), initial=0))

    def rank(self, day: int) -> int:
        """Return the number of the first picked day at or after `day`."""
        cycles, rest = divmod(day - _CYCLE_START, _CYCLE_DAYS)
        year = bisect_right(self._starts, rest) - 1
        passed = bisect_left(self._days[year], rest - self._starts[year])
        return cycles * self._before[-1] + self._before[year] + passed

    def day(self, rank: int) -> int:
        """Return the picked day of number `rank`."""
        cycles, rest = divmod(rank, self._before[-1])
        year = bisect_right(self._before, rest) - 1
        in_year = self._days[year][rest - self._before[year]]
        return _CYCLE_START + cycles * _CYCLE_DAYS + self._starts[year] + in_year


@lru_cache(maxsize=1024)
def picked_days(fields: DayFields) -> Days:
    """Return the days that the last three fields of a cron expression pick."""
    if fields.months is None and not fields.by_month and not fields.nth:
        if fields.weekdays is None:
            return DayCycle(0, 1, (0,))
        return DayCycle(_SUNDAY, 7, fields.weekdays)
    return YearCycle(fields)


@cache
def _years() -> tuple[list[int], list[tuple[bool, int]]]:
    """Return (starts, kinds) of the years 2000 to 2399: the first day of each year, and whether
    the year is a leap year, with the first weekday.
    """
    starts, kinds, day = [], [], 0
    for year in range(400):
        leap = year % 4 == 0 and (year % 100 != 0 or year == 0)
        starts.append(day)
        kinds.append((leap, (day + 6) % 7))  # 2000 began with a Saturday
        day += 365 + leap
    return starts, kinds


def _days_of_year(fields: DayFields, leap: bool, weekday: int) -> Iterator[int]:
    """Yield the picked days of a year, from 0; weekdays count from Sunday, as in cron."""
    before = 0
    for month, length in enumerate(_LENGTHS, 1):
        length += leap and month == 2
        if fields.months is None or month in fields.months:
            for day in sorted(_days_of_month(fields, length, (weekday + before) % 7)):
                yield before + day - 1
        before += length


def _days_of_month(fields: DayFields, length: int, weekday: int) -> set[int]:
    """Return the picked days, from 1, of a month that begins on `weekday`.

    A day is picked if the field of days or the field of weekdays picks that day.
    """
    if not fields.by_month and not fields.by_week:
        return set(range(1, length + 1))
    picked: set[int] = set()
    if fields.nearest:
        picked.update(_nearest_workday(day, length, weekday) for day in fields.nearest)
    elif fields.days is not None:
        picked.update(day for day in fields.days if day <= length)
        picked.update((length,) if fields.last_day else ())
    if fields.nth:
        for picked_weekday, ordinals in fields.nth:
            days = _days_on_weekday(picked_weekday, length, weekday)
            selections = (days[-1:] if n == "l" else days[n - 1 : n] for n in ordinals)
            picked.update(day for selected_days in selections for day in selected_days)
    else:
        for picked_weekday in fields.weekdays or ():
            picked.update(_days_on_weekday(picked_weekday, length, weekday))
    return picked


def _days_on_weekday(weekday: int, length: int, first_weekday: int) -> range:
    """Return the days of a month that fall on a weekday; the month begins on `first_weekday`."""
    return range(1 + (weekday - first_weekday) % 7, length + 1, 7)


def _nearest_workday(day: int, length: int, weekday: int) -> int:
    """Return the day from Monday to Friday nearest to a day of the month, in the same month."""
    day = min(day, length)
    match (weekday + day - 1) % 7:
        case 6:
            return day - 1 if day > 1 else day + 2
        case 0:
            return day + 1 if day < length else day - 2
    return day
