"""Ticks the long way, the general path: croniter walks naive wall time, calendar
rules 4 and 5 place the ticks.

Shares no code with the package, so that both can be wrong only in different ways.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter

PRESETS = {"@quarterly": "0 0 1 1,4,7,10 *"}


@cache
def zone_of(name: str) -> ZoneInfo:
    """Read the zone from the tzdata package, not from the machine."""
    with (files("tzdata") / "zoneinfo" / name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def walked_ticks(cron: str, zone_name: str, start: datetime, end: datetime) -> list[datetime]:
    """List ticks in [start, end) by calendar rules 4 and 5."""
    zone = zone_of(zone_name)
    text = PRESETS.get(cron, cron)
    elapsed = croniter(text).expanded[1] == ["*"]
    ticks: set[datetime] = set()
    margin = timedelta(days=2)
    for wall in _walls(text, _local(start, zone) - margin, _local(end, zone) + margin):
        ticks |= set(_passes(wall, zone)) if elapsed else {_first_at_or_after(wall, zone)}
    return sorted(tick for tick in ticks if start <= tick < end)


def _walls(text: str, start: datetime, end: datetime) -> Iterator[datetime]:
    walk = croniter(text, start)
    while True:
        try:
            wall = walk.get_next(datetime)
        except CroniterBadDateError:
            return
        if wall > end:
            return
        yield wall


def _local(instant: datetime, zone: ZoneInfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None)


def _passes(wall: datetime, zone: ZoneInfo) -> list[datetime]:
    """List the instants at which the clock shows this reading: none in a gap, two in a fold."""
    both = {wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(instant for instant in both if _local(instant, zone) == wall)


def _first_at_or_after(wall: datetime, zone: ZoneInfo) -> datetime:
    if passes := _passes(wall, zone):
        return passes[0]
    low, high = (wall.replace(tzinfo=UTC) + timedelta(days=days) for days in (-2, 2))
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) // 2
        middle = middle.replace(microsecond=0)
        low, high = (low, middle) if _local(middle, zone) >= wall else (middle, high)
    return high
