"""Offsets of a time zone as arithmetic, read from the tzdata package.

Instants are whole seconds since 1970-01-01T00:00Z, wall times whole seconds since 1970-01-01T00:00
on the local clock. The machine's own database is never used: it may be years older than the locked
package, and then two hosts would give the same day different boundaries.
"""

import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cache, cached_property
from importlib.resources import files
from itertools import accumulate, pairwise
from operator import add
from pathlib import Path
from typing import NamedTuple
from zoneinfo import available_timezones

from slicewise.errors import DefinitionError
from slicewise.texts.hints import spelling_hint

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400
BEGIN = -62_135_596_800  # 0001-01-01T00:00Z
END = 253_402_300_799  # the last second of year 9999
# Tables reach this far at first; later times are rarely needed and cost far more.
HORIZON = 2_524_608_000  # 2050-01-01T00:00Z
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FOLDER = Path(str(files("tzdata") / "zoneinfo"))


def to_instant(moment: datetime) -> int:
    """Return the seconds since the epoch of an aware datetime, without a fraction of a second."""
    return (standard_datetime(moment) - EPOCH) // timedelta(seconds=1)


def standard_datetime(moment: datetime) -> datetime:
    """Return the moment as the standard library's type: pendulum's type has another arithmetic."""
    if type(moment) is datetime:
        return moment
    fields = (moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)
    return datetime(*fields, moment.microsecond, tzinfo=moment.tzinfo, fold=moment.fold)


def to_datetime(instant: int) -> datetime:
    """Return the instant as a datetime in UTC."""
    return EPOCH + timedelta(seconds=instant)


def to_wall(moment: datetime) -> int:
    """Return the wall seconds of a datetime's reading, in any zone."""
    return to_instant(moment.replace(tzinfo=UTC))


class OffsetTable(NamedTuple):
    """Periods of constant offset: period i runs from starts[i] to starts[i + 1]."""

    starts: tuple[int, ...]
    offsets: tuple[int, ...]
    # The latest local reading up to the end of period i, which calendar rule 4 searches.
    reach: tuple[int, ...]

    @classmethod
    def of(cls, changes: list[tuple[int, int]], end: int) -> "OffsetTable":
        """Build a table from ordered (instant, offset) pairs, without pairs that change nothing."""
        real_changes = [changes[0]]
        real_changes += [new for old, new in pairwise(changes) if old[1] != new[1]]
        starts = tuple([start for start, _ in real_changes])
        offsets = tuple([offset for _, offset in real_changes])
        reach = accumulate(map(add, (*starts[1:], end), offsets), max)
        return cls(starts, offsets, tuple(reach))


class Zone:
    """A time zone of the tzdata package. Use `zone(name)`, which keeps one object per name."""

    def __init__(self, name: str) -> None:
        path = _FOLDER / name
        data = path.read_bytes() if _is_zone_name(name) and path.is_file() else b""
        if data[:4] != b"TZif":  # the package also contains lists
            similar = spelling_hint(name, available_timezones()) or ", such as 'Europe/Berlin'"
            raise DefinitionError(f"unknown time zone {name!r}: use an IANA name{similar}")
        self.name = name
        self._written, self._rule = _read_tzif(data)
        self.near = self.table_until(HORIZON)

    def __repr__(self) -> str:
        return f"zone({self.name!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return zone, (self.name,)

    @cached_property
    def far(self) -> OffsetTable:
        """The offsets until the end of year 9999."""
        return self.table_until(END) if self.changes_for_ever else self.near

    @property
    def changes_for_ever(self) -> bool:
        """Whether a rule continues to change the offset after the last change on record."""
        return "," in self._rule

    def table(self, instant: int) -> OffsetTable:
        """Return the table that covers an instant or a wall time: the near table up to the horizon.

        The border lies a week before the horizon, so that wall times are covered, too.
        """
        return self.near if instant < HORIZON - 7 * DAY else self.far

    def offset_at(self, instant: int) -> int:
        """Return the seconds east of UTC at the instant."""
        table = self.table(instant)
        return table.offsets[bisect_right(table.starts, instant, 1) - 1]

    def tzinfo_at(self, instant: int) -> tzinfo:
        """Return the offset at an instant as a fixed tzinfo: both passes of a fold are distinct."""
        return timezone(timedelta(seconds=self.offset_at(instant)))

    def first_instant(self, wall: int) -> int:
        """Return the first instant at which the clock reads `wall` or later (calendar rule 4)."""
        table = self.table(wall)
        index = min(bisect_right(table.reach, wall), len(table.starts) - 1)
        return max(table.starts[index], wall - table.offsets[index])

    def instants(self, wall: int) -> list[int]:
        """Return all instants at which the clock reads `wall`: none in a gap, two in a fold."""
        table = self.table(wall)
        nearby = range(
            max(0, bisect_right(table.starts, wall - 2 * DAY) - 1),
            bisect_right(table.starts, wall + 2 * DAY),
        )
        candidates = (wall - table.offsets[index] for index in nearby)
        return sorted(
            {instant for instant in candidates if instant + self.offset_at(instant) == wall}
        )

    def is_day_start(self, instant: int) -> bool:
        """Return whether a local date begins at this instant."""
        table = self.table(instant)
        index = max(0, bisect_right(table.starts, instant) - 1)
        wall = instant + table.offsets[index]
        if wall % DAY and table.starts[index] != instant:
            return False
        return self.first_instant(wall - wall % DAY) == instant

    def table_until(self, end: int) -> OffsetTable:
        """Return the offsets up to an instant, and all changes on record after the instant."""
        changes = self._written
        if self.changes_for_ever:
            last = changes[-1][0]
            years = range(to_datetime(last).year, to_datetime(end).year + 1)
            coming = _changes_by_rule(self._rule, years)
            changes = [*changes, *(change for change in coming if last < change[0] < end)]
        return OffsetTable.of(changes, end)


def zone_name(timezone: str | tzinfo) -> str:
    """Return the IANA name of a text, a ZoneInfo or `UTC`. Raises DefinitionError for others."""
    if timezone is UTC:
        return "UTC"
    name = timezone if isinstance(timezone, str) else getattr(timezone, "key", None)
    if not isinstance(name, str):
        raise DefinitionError(f"a timezone is an IANA name, not {timezone!r}")
    return name


@cache
def zone(name: str) -> Zone:
    """Return the zone of that IANA name. Raises DefinitionError if tzdata has no such zone."""
    return Zone(name)


_NAME = r"(?:[A-Za-z]+|<[^>]+>)"
_TIME = r"[+-]?\d+(?::\d+){0,2}"
_CHANGE = rf"M(\d+)\.(\d)\.(\d)(?:/({_TIME}))?"
_RULE = re.compile(rf"{_NAME}({_TIME}){_NAME}({_TIME})?,{_CHANGE},{_CHANGE}")


def _changes_by_rule(tz_rule: str, years: range) -> Iterator[tuple[int, int]]:
    """Yield these years' changes by a TZ rule such as EST5EDT,M3.2.0,M11.1.0 (POSIX, RFC 8536)."""
    match = _RULE.fullmatch(tz_rule)
    if match is None:
        raise DefinitionError(f"the time zone rule {tz_rule!r} cannot be read")
    standard = -_seconds(match[1])  # POSIX counts west
    summer = -_seconds(match[2]) if match[2] else standard + 3600
    to_summer = tuple(map(int, match.group(3, 4, 5))), _seconds(match[6] or "2")
    to_standard = tuple(map(int, match.group(7, 8, 9))), _seconds(match[10] or "2")
    for year in years:
        start = _weekday_of_month(year, *to_summer[0]) * DAY + to_summer[1] - standard
        end = _weekday_of_month(year, *to_standard[0]) * DAY + to_standard[1] - summer
        yield from sorted([(start, summer), (end, standard)])


def _seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    fields = [int(field) for field in text.lstrip("+-").split(":")] + [0, 0]
    return sign * (fields[0] * 3600 + fields[1] * 60 + fields[2])


def _weekday_of_month(year: int, month: int, week: int, weekday: int) -> int:
    """Return the days since the epoch of, say, a second Sunday (2, 0); week 5 is the last week."""
    first = date(year, month, 1).toordinal()
    day = first + (weekday - first) % 7 + 7 * (week - 1)
    if week == 5 and date.fromordinal(day).month != month:
        day -= 7
    return day - _EPOCH_DAY


def _is_zone_name(name: str) -> bool:
    components = name.split("/")
    return all(
        component and component[0].isalpha() and component.isprintable() for component in components
    )


def _read_tzif(data: bytes) -> tuple[list[tuple[int, int]], str]:
    """Return (changes, closing rule) of a compiled zone file (RFC 8536), from its 64-bit block."""
    if data[4:5] < b"2":
        raise DefinitionError(
            "the tzdata package is too old: its zones have no 64-bit block; install a newer tzdata"
        )
    utc, standard, leap, times, types, letters = struct.unpack(">6l", data[20:44])
    block = 44 + times * 5 + types * 6 + letters + leap * 8 + standard + utc
    utc, standard, leap, times, types, letters = struct.unpack(">6l", data[block + 20 : block + 44])
    position = block + 44
    moments = struct.unpack(f">{times}q", data[position : position + 8 * times])
    indices = data[position + 8 * times : position + 9 * times]
    position += 9 * times
    offsets = [
        int(struct.unpack(">l", data[position + 6 * index : position + 6 * index + 4])[0])
        for index in range(types)
    ]
    position += types * 6 + letters + leap * 12 + standard + utc
    changes = [(BEGIN - 2 * DAY, offsets[0])]
    changes += [(moment, offsets[i]) for moment, i in zip(moments, indices, strict=True)]
    return [change for change in changes if change[0] >= changes[0][0]], data[
        position:
    ].decode().strip()
