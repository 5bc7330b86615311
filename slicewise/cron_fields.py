"""What the five fields of a cron expression say. croniter reads them; what it misreads is refused.

croniter takes `30-30` for every value of its field, and drops weekdays written beside `5#2`: such
texts are turned down with what to write instead.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from croniter import croniter

from slicewise.errors import DefinitionError
from slicewise.zones import DAY

Last = Literal["l"]
# croniter would draw R and H anew, or from a hash: boundaries must follow from the text alone.
_DRAWN = re.compile(r"[hr](\(|/|$)", re.IGNORECASE)
_RANGE = re.compile(r"(?:^|,)(\w+)-(\w+)", re.ASCII)
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_NAMES = ("minute", "hour", "day of the month", "month", "day of the week")
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class DayFields(NamedTuple):
    """Which days: the last three fields. None stands for a field that leaves nothing out."""

    days: tuple[int, ...] | None
    last_day: bool
    # 15W: the weekday nearest to a day of the month.
    nearest: tuple[int, ...]
    months: tuple[int, ...] | None
    weekdays: tuple[int, ...] | None
    # 5#2 and L5: which of the weekday's days in a month, counted from 1; "l" is the last.
    nth: tuple[tuple[int, tuple[int | Last, ...]], ...]

    @property
    def by_month(self) -> bool:
        """Whether the day of the month is restricted."""
        return self.days is not None or bool(self.nearest)

    @property
    def by_week(self) -> bool:
        """Whether the day of the week is restricted."""
        return self.weekdays is not None or bool(self.nth)

    @property
    def never(self) -> bool:
        """Whether no year has such a day, as 31 February."""
        if self.by_week or self.last_day or self.nearest or self.days is None:
            return False
        months = self.months or range(1, 13)
        return min(self.days) > max(_LONGEST[month - 1] for month in months)


class CronFields(NamedTuple):
    """Minutes and hours at which a cron expression ticks, on which days."""

    minutes: tuple[int, ...] | None
    hours: tuple[int, ...] | None
    on: DayFields

    @property
    def times(self) -> Sequence[int]:
        """Seconds of a day at which it ticks, ascending."""
        if self.hours is self.minutes is None:
            return range(0, DAY, 60)
        hours: Sequence[int] = range(24) if self.hours is None else self.hours
        minutes: Sequence[int] = range(60) if self.minutes is None else self.minutes
        return [hour * 3600 + minute * 60 for hour in hours for minute in minutes]

    @property
    def canonical(self) -> str:
        """The same text for expressions that differ in spelling only."""
        on = self.on
        days = on.days if not on.last_day else (*(on.days or ()), "l")
        fields = (self.minutes, self.hours, days, on.months, on.weekdays)
        text = " ".join("*" if each is None else ",".join(map(str, each)) for each in fields)
        nth = "".join(f" {day}#{sorted(map(str, ordinals))}" for day, ordinals in on.nth)
        return text + nth + "".join(f" {day}W" for day in on.nearest)


@lru_cache(maxsize=1024)
def read_fields(expression: str) -> CronFields:
    """Return the fields of a five-field expression. Raises DefinitionError."""
    fields = expression.lower().split()
    if any(_DRAWN.match(field) for field in fields):
        raise DefinitionError(
            f"R and H are refused in {expression!r}: their ticks are drawn, not written"
        )
    plain = [_plain(field, *bounds) for field, bounds in zip(fields, _BOUNDS, strict=True)]
    if None not in plain:
        minutes, hours, days, months, weekdays = (_numbers(field or ()) for field in plain)
        return CronFields(minutes, hours, DayFields(days, False, (), months, weekdays, ()))
    _refuse_mixed_weekdays(expression, fields[4])
    try:
        # A start of its own: croniter would ask the clock for one.
        cron = croniter(expression, 0.0)
    except ValueError as error:
        wrong = _wrong_field(fields) or str(error)
        raise DefinitionError(f"bad cron expression {expression!r}: {wrong}") from None
    _refuse_ranges_of_one(expression, fields)
    minutes, hours, days, months, weekdays = map(_numbers, cron.expanded)
    nth = {int(day): ordinals for day, ordinals in cron.nth_weekday_of_month.items()}
    return CronFields(
        minutes,
        hours,
        DayFields(
            days,
            "l" in cron.expanded[2],
            tuple(sorted(cron.nearest_weekday)),
            months,
            weekdays,
            tuple((day, tuple(sorted(nth[day], key=str))) for day in sorted(nth)),
        ),
    )


def _wrong_field(fields: Sequence[str]) -> str:
    """Say which of the fields is wrong by itself; empty where none is."""
    for place, (field, name, (low, high)) in enumerate(zip(fields, _NAMES, _BOUNDS, strict=True)):
        others = ["*"] * len(fields)
        others[place] = field
        if not croniter.is_valid(" ".join(others)):
            return f"{field!r} is not right for the {name}, which is from {low} to {high}"
    return ""


def _plain(field: str, low: int, high: int) -> list[int | str] | None:
    """What croniter makes of `*`, `5` and `*/15`, without its first millisecond; else None."""
    if field == "*":
        return ["*"]
    number = field.removeprefix("*/")
    if not (number.isascii() and number.isdigit() and len(number) < 3):
        return None
    value = int(number)
    if number == field:
        return [value] if low <= value <= high else None
    return list(range(low, high + 1, value)) if value > 1 else None


def _numbers(field: Iterable[int | str]) -> tuple[int, ...] | None:
    """The values of a field, without `l`; None for all. `*,5` is all as well."""
    values = list(field)
    return None if "*" in values else tuple(int(value) for value in values if value != "l")


def _refuse_ranges_of_one(expression: str, fields: Sequence[str]) -> None:
    for place, field in enumerate(fields):
        for first, last in _RANGE.findall(field):
            ends = {first, last}
            sunday = place == 4 and ends <= {"0", "7", "sun"} and (first, last) != ("0", "7")
            if len(ends) == 1 or sunday:
                raise DefinitionError(
                    f"bad cron expression {expression!r}: write {first} for one value, "
                    f"or * for all, not {first}-{last}"
                )


def _refuse_mixed_weekdays(expression: str, field: str) -> None:
    special = {"#" in part or part.startswith("l") for part in field.split(",")}
    if len(special) > 1:
        raise DefinitionError(
            f"bad cron expression {expression!r}: weekdays with # or L stand without plain ones"
        )
