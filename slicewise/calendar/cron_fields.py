"""The five fields of a cron expression. croniter parses most fields.

croniter reads `30-30` as every value of the field, and drops weekdays written beside `5#2`: such
texts are refused with a correction.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from croniter import croniter

from slicewise.calendar.zones import DAY
from slicewise.errors import DefinitionError

Last = Literal["l"]
# croniter draws R at random and H from a hash, but boundaries must follow from the text alone.
_RANDOM_OR_HASHED = re.compile(r"[hr](\(|/|$)", re.IGNORECASE)
_RANGE = re.compile(r"(?:^|,)(\w+)-(\w+)", re.ASCII)
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_NAMES = ("minute", "hour", "day of the month", "month", "day of the week")
_MONTH_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class DayFields(NamedTuple):
    """The last three fields, which pick days. None stands for a field that leaves no value out."""

    days: tuple[int, ...] | None
    last_day: bool
    # 15W: the working day nearest to a day of the month.
    nearest: tuple[int, ...]
    months: tuple[int, ...] | None
    weekdays: tuple[int, ...] | None
    # 5#2 and L5: a weekday with ordinals in a month, counted from 1; "l" is the last.
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
        """Whether no year has such a day, such as 31 February."""
        if self.by_week or self.last_day or self.nearest or self.days is None:
            return False
        months = self.months or range(1, 13)
        return min(self.days) > max(_MONTH_LENGTHS[month - 1] for month in months)


class CronFields(NamedTuple):
    """The minutes, hours and days at which a cron expression ticks."""

    minutes: tuple[int, ...] | None
    hours: tuple[int, ...] | None
    on: DayFields

    @property
    def times(self) -> Sequence[int]:
        """The seconds of a day at which the expression ticks, ascending."""
        if self.hours is self.minutes is None:
            return range(0, DAY, 60)
        hours: Sequence[int] = range(24) if self.hours is None else self.hours
        minutes: Sequence[int] = range(60) if self.minutes is None else self.minutes
        return [hour * 3600 + minute * 60 for hour in hours for minute in minutes]

    @property
    def canonical(self) -> str:
        """A text that is equal for expressions that differ in spelling only."""
        day_fields = self.on
        days = day_fields.days if not day_fields.last_day else (*(day_fields.days or ()), "l")
        fields = (self.minutes, self.hours, days, day_fields.months, day_fields.weekdays)
        text = " ".join("*" if values is None else ",".join(map(str, values)) for values in fields)
        nth = "".join(f" {day}#{sorted(map(str, ordinals))}" for day, ordinals in day_fields.nth)
        return text + nth + "".join(f" {day}W" for day in day_fields.nearest)


@lru_cache(maxsize=1024)
def read_fields(expression: str) -> CronFields:
    """Return the fields of a five-field expression. Raises DefinitionError."""
    fields = expression.lower().split()
    if any(_RANDOM_OR_HASHED.match(field) for field in fields):
        raise DefinitionError(
            f"R and H cannot be used in {expression!r}, since these fields are random: write values"
        )
    plain = [_simple_values(field, *bounds) for field, bounds in zip(fields, _BOUNDS, strict=True)]
    if None not in plain:
        minutes, hours, days, months, weekdays = (_field_values(field or ()) for field in plain)
        return CronFields(minutes, hours, DayFields(days, False, (), months, weekdays, ()))
    _refuse_mixed_weekdays(expression, fields[4])
    try:
        # With a start given, croniter does not read the clock.
        cron = croniter(expression, 0.0)
    except ValueError as error:
        wrong = _wrong_field(fields) or str(error)
        raise DefinitionError(f"bad cron expression {expression!r}: {wrong}") from None
    _refuse_ranges_of_one(expression, fields)
    minutes, hours, days, months, weekdays = map(_field_values, cron.expanded)
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
    """Return the problem of the first field that is wrong by itself; empty if no field is."""
    for position, (field, name, (low, high)) in enumerate(
        zip(fields, _NAMES, _BOUNDS, strict=True)
    ):
        test_fields = ["*"] * len(fields)
        test_fields[position] = field
        if not croniter.is_valid(" ".join(test_fields)):
            return f"{field!r} is no value of the {name}: write {low} to {high}"
    return ""


def _simple_values(field: str, low: int, high: int) -> list[int | str] | None:
    """Return croniter's values of `*`, `5` and `*/15`, without the cost of a call of croniter; None
    for other fields.
    """
    if field == "*":
        return ["*"]
    number = field.removeprefix("*/")
    if not (number.isascii() and number.isdigit() and len(number) < 3):
        return None
    value = int(number)
    if number == field:
        return [value] if low <= value <= high else None
    return list(range(low, high + 1, value)) if value > 1 else None


def _field_values(field: Iterable[int | str]) -> tuple[int, ...] | None:
    """Return the values of a field, without `l`; None for all values, also of `*,5`."""
    values = list(field)
    return None if "*" in values else tuple(int(value) for value in values if value != "l")


def _refuse_ranges_of_one(expression: str, fields: Sequence[str]) -> None:
    for position, field in enumerate(fields):
        for first, last in _RANGE.findall(field):
            ends = {first, last}
            sunday = position == 4 and ends <= {"0", "7", "sun"} and (first, last) != ("0", "7")
            if len(ends) == 1 or sunday:
                raise DefinitionError(
                    f"bad cron expression {expression!r}: write {first} for one value, "
                    f"or * for all, not {first}-{last}"
                )


def _refuse_mixed_weekdays(expression: str, field: str) -> None:
    special = {"#" in term or term.startswith("l") for term in field.split(",")}
    if len(special) > 1:
        raise DefinitionError(
            f"bad cron expression {expression!r}: weekdays with # or L cannot be mixed with plain"
            " weekdays"
        )
