"""The key texts and labels of windows of time."""

from collections.abc import Iterator
from datetime import date, timedelta
from functools import lru_cache

from slicewise.calendar.zones import DAY, EPOCH, Zone

_LAST_YEAR = 9999
_EPOCH_DAY = EPOCH.toordinal()


def window_text(start: int, stop: int, zone: Zone) -> str:
    """Return the key text of a window, from the seconds of both ends."""
    offset = zone.offset_at(start)
    day, second = divmod(start + offset, DAY)
    if zone.is_day_start(start) and zone.is_day_start(stop):
        return _date_text(day)
    minutes, seconds = divmod(second, 60)
    clock = f"T{minutes // 60:02}:{minutes % 60:02}"
    if seconds:
        clock += f":{seconds:02}"
    return _date_text(day) + clock + _offset_text(offset, zone.name)


def window_label(start: int, stop: int, zone: Zone) -> str:
    """Return the name of a window that is a year, quarter, month or ISO week; empty for other
    windows.
    """
    if not (zone.is_day_start(start) and zone.is_day_start(stop)):
        return ""
    day = (EPOCH + timedelta(seconds=start + zone.offset_at(start))).date()
    if day.year == _LAST_YEAR:
        return ""
    for first, after, name in _periods(day):
        # Calendar rule 4 also gives an instant for a date without midnight, and for a skipped date.
        if zone.first_instant(_wall(first)) == start and zone.first_instant(_wall(after)) == stop:
            return name
    return ""


def _periods(day: date) -> Iterator[tuple[date, date, str]]:
    """Yield (first day, day after the last, name) of the periods that contain a date."""
    year, week, weekday = day.isocalendar()
    monday = day - timedelta(days=weekday - 1)
    yield monday, monday + timedelta(days=7), f"{year:04}-W{week:02}"
    months = day.year * 12 + day.month - 1
    for length, name in (
        (1, f"{day:%Y-%m}"),
        (3, f"{day:%Y}-Q{months // 3 % 4 + 1}"),
        (12, f"{day:%Y}"),
    ):
        first = months - months % length
        yield _month(first), _month(first + length), name


def _month(months: int) -> date:
    return date(months // 12, months % 12 + 1, 1)


def _wall(day: date) -> int:
    return (day.toordinal() - _EPOCH_DAY) * DAY


@lru_cache(maxsize=4096)
def _date_text(day: int) -> str:
    return (EPOCH + timedelta(days=day)).date().isoformat()


@lru_cache(maxsize=1024)
def _offset_text(offset: int, zone_name: str) -> str:
    if zone_name == "UTC":
        return "Z"
    sign = "-" if offset < 0 else "+"
    minutes, seconds = divmod(abs(offset), 60)
    text = f"{sign}{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{seconds:02}" if seconds else text
