"""The parsing of times: bounds of definitions, and the time texts of selections."""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import NamedTuple

from slicewise.calendar.zones import BEGIN, DAY, END, Zone, standard_datetime, to_instant, to_wall
from slicewise.errors import DefinitionError

Moment = datetime | date | str
# Python's dates end with 9999, and windows that begin in that year may end later.
FIRST_YEAR, LAST_YEAR = 1000, 9998


class Span(NamedTuple):
    """The instants that a time text names, from `start` up to, but not including, `end`."""

    start: int
    end: int


def read_moment(value: Moment, zone: Zone) -> datetime:
    """Return a bound as an aware datetime (calendar rule 8). Raises DefinitionError.

    A naive datetime is wall time in the zone (`fold=1`: the second pass), a date means midnight; an
    aware datetime keeps the offset; a text is read as ISO 8601.
    """
    value = read_iso(value) if isinstance(value, str) else value
    if not isinstance(value, date):
        raise DefinitionError(f"a bound is a datetime or a date, not {value!r}")
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        _check_calendar(value, to_instant(value))
        return standard_datetime(value)
    passes = zone.instants(to_wall(value))
    instant = passes[-1] if passes and value.fold else zone.first_instant(to_wall(value))
    _check_calendar(value, instant)
    local = datetime.fromtimestamp(0, zone.tzinfo_at(instant)) + timedelta(seconds=instant)
    # A time inside a gap becomes the instant after the gap, without any fraction of a second.
    return local + timedelta(microseconds=value.microsecond if passes else 0)


def _check_calendar(value: datetime, instant: int) -> None:
    """Refuse a time that Python's calendar has locally but not in UTC, such as datetime.max."""
    if not BEGIN <= instant <= END:
        raise DefinitionError(
            f"{value} is no time in UTC; write an earlier or later bound, or leave the bound out"
        )


def read_iso(text: str) -> datetime | date:
    """Return the date or datetime of a text in ISO 8601. Raises DefinitionError."""
    try:
        return datetime.fromisoformat(text) if len(text) > 10 else date.fromisoformat(text)
    except ValueError:
        raise DefinitionError(f"{text!r} is not a date or time in ISO 8601") from None


def since_second(moment: datetime) -> int:
    """Return the first whole second at or after the moment, as a lower bound: a window that began
    before the moment stays out.
    """
    return to_instant(moment) + bool(moment.microsecond)


def read_time(text: str, zone: Zone) -> Span:
    """Return the span that a year, quarter, month, ISO week, date or time names in a zone.

    `2024`, `2024-Q1`, `2024-02`, `2024-W05`, `2024-02-29`, `2024-02-29T06:00` (with `Z` or an
    offset if the local clock reads the time twice). Raises ValueError with the reason.
    """
    if not f"{FIRST_YEAR}" <= text[:4] <= f"{LAST_YEAR}":
        raise ValueError(f"not a time between the years {FIRST_YEAR} and {LAST_YEAR}")
    for pattern, read in _DATES:
        if match := pattern.fullmatch(text):
            first, stop = read(*map(int, match.groups()))
            span = Span(_midnight(first, zone), _midnight(stop, zone))
            if span.start == span.end:
                raise ValueError(f"the clock of {zone.name} never showed {text}")
            return span
    return _read_clock(text, zone)


def _read_clock(text: str, zone: Zone) -> Span:
    if not _CLOCK.fullmatch(text):
        raise ValueError(
            "not a time: write 2024, 2024-Q1, 2024-02, 2024-W05, 2024-02-29 or 2024-02-29T06:00Z"
        )
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        instant = to_instant(moment)
    else:
        passes = zone.instants(to_wall(moment))
        if not passes:
            raise ValueError(f"the clock of {zone.name} never reads {text}")
        if len(passes) > 1:
            first, last = (_with_offset(moment, instant, zone) for instant in passes)
            raise ValueError(
                f"the clock of {zone.name} shows this time twice: write {first} or {last}"
            )
        instant = passes[0]
    return Span(instant, instant + 1)


def _with_offset(moment: datetime, instant: int, zone: Zone) -> str:
    return moment.replace(tzinfo=zone.tzinfo_at(instant)).isoformat(timespec="minutes")


def _midnight(day: date, zone: Zone) -> int:
    return zone.first_instant((day - date(1970, 1, 1)).days * DAY)


def _months(year: int, month: int, length: int) -> tuple[date, date]:
    if not 1 <= month <= 12:
        raise ValueError(f"the month {month} does not exist: write 01 to 12")
    after = month - 1 + length
    return date(year, month, 1), date(year + after // 12, after % 12 + 1, 1)


def _quarter(year: int, quarter: int) -> tuple[date, date]:
    return _months(year, quarter * 3 - 2, 3)


def _week(year: int, week: int) -> tuple[date, date]:
    monday = date.fromisocalendar(year, week, 1)
    return monday, monday + timedelta(days=7)


def _date(year: int, month: int, day: int) -> tuple[date, date]:
    first = date(year, month, day)
    return first, first + timedelta(days=1)


_CLOCK = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d(:\d\d)?)?", re.ASCII)
_DATES: list[tuple[re.Pattern[str], Callable[..., tuple[date, date]]]] = [
    (re.compile(r"(\d{4})", re.ASCII), lambda year: _months(year, 1, 12)),
    (re.compile(r"(\d{4})-Q([1-4])", re.ASCII), _quarter),
    (re.compile(r"(\d{4})-(\d\d)", re.ASCII), lambda year, month: _months(year, month, 1)),
    (re.compile(r"(\d{4})-W(\d\d)", re.ASCII), _week),
    (re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII), _date),
]
