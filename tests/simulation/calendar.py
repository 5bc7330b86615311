"""Windows and ticks by scanning local clocks half an hour at a time: slow, and simple enough to
check by reading. Nothing here is imported from the product.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

HALF_HOUR = timedelta(minutes=30)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCAN_START = datetime(2024, 1, 1, tzinfo=UTC)
SCAN_END = datetime(2026, 8, 1, tzinfo=UTC)


class Window(NamedTuple):
    """A half-open span of time, both ends in UTC."""

    start: datetime
    end: datetime


@lru_cache(maxsize=16)
def clock_readings(zone: str) -> tuple[tuple[datetime, datetime], ...]:
    """Return each scanned instant with the reading of a wall clock of the zone."""
    local_zone = ZoneInfo(zone)
    count = (SCAN_END - SCAN_START) // HALF_HOUR
    instants = [SCAN_START + number * HALF_HOUR for number in range(count)]
    return tuple(
        (instant, instant.astimezone(local_zone).replace(tzinfo=None)) for instant in instants
    )


@lru_cache(maxsize=16)
def first_instants(zone: str) -> tuple[tuple[date, datetime], ...]:
    """Return each local date with its first instant."""
    first: dict[date, datetime] = {}
    for instant, reading in clock_readings(zone):
        first.setdefault(reading.date(), instant)
    return tuple(first.items())


@lru_cache(maxsize=256)
def ticks(rule: str, zone: str) -> tuple[datetime, ...]:
    """Return the ticks of a rule: `every 6`, in hours, or a cron of a minute, hours and a day."""
    if rule.startswith("every "):
        hours = int(rule.removeprefix("every "))
        return tuple(
            instant
            for instant, _ in clock_readings("UTC")
            if (instant - EPOCH) % timedelta(hours=hours) == timedelta(0)
        )
    minute, hour, day, _, weekday = _cron(rule).split()
    if hour == "*":
        return tuple(
            instant for instant, reading in clock_readings(zone) if reading.minute == int(minute)
        )
    return tuple(sorted(set(_wall_ticks(int(minute), hour, day, weekday, zone))))


def bounded_ticks(rule: str, zone: str, start: str, end: str) -> tuple[datetime, ...]:
    """Return the ticks of a rule from the midnight of one local date to that of another; elapsed
    time is counted from the first midnight.
    """
    first, last = (
        datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
        for day in (start, end)
    )
    if not rule.startswith("every "):
        return tuple(tick for tick in ticks(rule, zone) if first <= tick <= last)
    step = timedelta(hours=int(rule.removeprefix("every ")))
    return tuple(first + number * step for number in range((last - first) // step + 1))


def _cron(rule: str) -> str:
    return {
        "@hourly": "0 * * * *",
        "@daily": "0 0 * * *",
        "@weekly": "0 0 * * 0",
        "@monthly": "0 0 1 * *",
    }.get(rule, rule)


def _wall_ticks(minute: int, hour: str, day: str, weekday: str, zone: str) -> Iterator[datetime]:
    step = int(hour.removeprefix("*/")) if hour.startswith("*/") else 0
    hours = range(0, 24, step) if step else [int(number) for number in hour.split(",")]
    readings = clock_readings(zone)
    position = {instant: number for number, (instant, _) in enumerate(readings)}
    for local_date, first in first_instants(zone):
        if day != "*" and local_date.day != int(day):
            continue
        if weekday != "*" and local_date.isoweekday() % 7 != int(weekday):
            continue
        for wanted_hour in hours:
            wanted = datetime.combine(local_date, time(wanted_hour, minute))
            # The first instant at which the clock shows that time or a later one.
            for instant, reading in readings[position[first] :]:
                if reading >= wanted:
                    yield instant
                    break


@lru_cache(maxsize=64)
def windows(cadence: str, zone: str) -> tuple[Window, ...]:
    """Return all windows of a cadence, in order."""
    return tuple(Window(start, end) for start, end in pairwise(ticks(cadence, zone)))


def local_weekday(instant: datetime, zone: str) -> int:
    """Return the day of the week that a clock of the zone shows; Monday is 0."""
    return instant.astimezone(ZoneInfo(zone)).weekday()
