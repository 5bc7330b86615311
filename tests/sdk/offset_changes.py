"""The clock of a zone read minute by minute around every change of its offset.

The module shares no code with the package and none with croniter: zoneinfo reads the tzdata
package's files, and cron fields are matched by hand.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from tests.sdk.reference_ticks import zone_of

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
YEARS = (1990, 2035)
# Of a zone without a change in those years a plain week is read instead.
A_WEEK = datetime(2024, 2, 26, 12, tzinfo=UTC)
BEFORE, AFTER = 30 * 60, 40 * 60


class Wall(NamedTuple):
    """Readings of clocks: minutes since 1970-01-01T00:00 on the clock, and the fields of the
    minutes.
    """

    minute: Numbers
    hour: Numbers
    day: Numbers
    month: Numbers
    weekday: Numbers  # Sunday is 0, as in cron
    length: Numbers  # of the month


Matches = Callable[[Wall], Flags]


class Reading(NamedTuple):
    """Consecutive minutes from `start` on, with the clock's reading at each minute."""

    start: int  # minutes since the epoch
    shown: Numbers
    before: int  # the latest minute the clock has shown until then
    low: int
    wall: Wall  # fields of every minute from `low` to the latest one shown


def fields(first: int, last: int) -> Wall:
    """Return the fields of the minutes from first to last, on a clock that never changes."""
    minutes = np.arange(first, last + 1)
    days, rest = np.divmod(minutes, 1440)
    dates = [date(1970, 1, 1) + timedelta(int(day)) for day in range(days[0], days[-1] + 1)]
    ends = [(day.replace(day=28) + timedelta(4)).replace(day=1) for day in dates]
    table = np.array(
        [
            (day.day, day.month, day.isoweekday() % 7, (end - timedelta(1)).day)
            for day, end in zip(dates, ends, strict=True)
        ]
    )[days - days[0]]
    return Wall(rest % 60, rest // 60, *table.T)


def matching(cron: str) -> Matches:
    """Return whether minutes match five fields of numbers, ranges, lists, steps, `L`, `#`, `L5`."""
    minute, hour, day, month, weekday = cron.split()

    def matches(wall: Wall) -> Flags:
        matched = _either(minute, wall.minute) & _either(hour, wall.hour)
        matched &= _either(month, wall.month)
        by_month = _either(day.replace("L", "99"), np.where(wall.day == wall.length, 99, wall.day))
        by_month |= _either(day.replace("L", "99"), wall.day)
        by_week = np.zeros(len(wall.day), bool)
        for item in weekday.split(","):
            by_week |= _on_weekday(item, wall)
        if "*" not in (day, weekday):
            return matched & (by_month | by_week)
        return matched & by_month & by_week

    return matches


def _on_weekday(item: str, wall: Wall) -> Flags:
    week = np.ones(len(wall.day), bool)
    if item.startswith("L"):
        item, week = item[1:], wall.day > wall.length - 7
    elif "#" in item:
        item, _, nth = item.partition("#")
        week = (wall.day - 1) // 7 + 1 == int(nth)
    return _either(item, wall.weekday) & week


def _either(field: str, values: Numbers) -> Flags:
    mask = np.zeros(len(values), bool)
    for item in field.split(","):
        span, _, step = item.partition("/")
        low, _, high = ("0-99" if span == "*" else span).partition("-")
        inside = (values >= int(low)) & (values <= int(high or low))
        mask |= inside & ((values - int(low)) % int(step or 1) == 0)
    return mask


def ticks(cron: str, reading: Reading) -> list[int]:
    """List minutes since the epoch at which the cron ticks, by calendar rule 5 or 4."""
    matched = matching(cron)(reading.wall)
    shown = reading.shown - reading.low
    if _either(cron.split()[1], np.arange(24)).all():
        matched_numbers = matched[shown]
    else:
        # A minute ticks where the clock shows something new, for all it has passed since.
        passed = np.cumsum(matched)
        latest = np.maximum.accumulate(np.concatenate(([reading.before - reading.low], shown)))
        matched_numbers = passed[latest[1:]] > passed[latest[:-1]]
    return [reading.start + int(place) for place in np.flatnonzero(matched_numbers)]


@cache
def readings(zone_name: str) -> list[Reading]:
    """Read the clock around every change of the zone's offset in these years."""
    moments = changes(zone_name, *YEARS) or [A_WEEK]
    return [_reading(zone_name, int(moment.timestamp()) // 60) for moment in moments]


def _reading(zone_name: str, change: int) -> Reading:
    start, zone = change - BEFORE, zone_of(zone_name)
    shown = np.array([_shown(minute, zone) for minute in range(start, change + AFTER)])
    # What the clock has shown in the two days before the reading does not tick again.
    earlier = (*range(start - 2 * 1440, start, 10), start - 1)
    before = max(_shown(minute, zone) for minute in earlier)
    low = min(before, int(shown.min()))
    return Reading(start, shown, before, low, fields(low, int(shown.max())))


def _shown(minute: int, zone: ZoneInfo) -> int:
    wall = datetime.fromtimestamp(minute * 60, zone)
    return (wall.toordinal() - 719_163) * 1440 + wall.hour * 60 + wall.minute


def changes(zone_name: str, first_year: int, last_year: int) -> list[datetime]:
    """Find the minute of every change of a zone's offset, by a look at every sixth hour."""
    zone = zone_of(zone_name)
    step = 6 * 3600
    start = int(datetime(first_year, 1, 1, tzinfo=UTC).timestamp())
    end = int(datetime(last_year + 1, 1, 1, tzinfo=UTC).timestamp())

    def offset(second: int) -> timedelta | None:
        return datetime.fromtimestamp(second, zone).utcoffset()

    instants = []
    last_offset = offset(start)
    for second in range(start + step, end, step):
        if (next_offset := offset(second)) != last_offset:
            low, high = second - step, second
            while high - low > 60:
                middle = (low + high) // 120 * 60
                low, high = (middle, high) if offset(middle) == last_offset else (low, middle)
            instants.append(datetime.fromtimestamp(high, UTC))
            last_offset = next_offset
    return instants
