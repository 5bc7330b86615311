"""The key of a partition by interval: a window of time."""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import pairwise
from typing import Any

from slicewise.calendar.zones import DAY, EPOCH, Zone, to_instant, zone, zone_name
from slicewise.errors import PartitionKeyError
from slicewise.keys.partition_key import PartitionKey
from slicewise.keys.plain_values import JOINT

_INTERVAL_ORDER = 11
_LAST_YEAR = 9999
_EPOCH_DAY = EPOCH.toordinal()


class Interval(PartitionKey, built_in=True):
    """A half-open window of time, [start, end).

    `start` and `end` are aware datetimes (any zone, whole seconds); the attributes are in UTC.
    `timezone` is for printing only: intervals of equal start and end are equal in all zones.
    Raises PartitionKeyError for naive datetimes, fractions of a second and end before start,
    DefinitionError for an unknown zone.
    """

    __slots__ = ("_first_second", "_stop_second", "_zone")

    def __init__(self, start: datetime, end: datetime, timezone: str | tzinfo = "UTC") -> None:
        for moment in (start, end):
            if not isinstance(moment, datetime) or moment.tzinfo is None or moment.microsecond:
                raise PartitionKeyError(
                    f"{moment!r} is not an aware datetime in whole seconds; a key text is read by"
                    " its definition's parse"
                )
        self._first_second, self._stop_second = to_instant(start), to_instant(end)
        self._zone = zone(zone_name(timezone))
        if self._first_second >= self._stop_second:
            raise PartitionKeyError(f"a window ends after it starts: {start} to {end}")

    @property
    def first_second(self) -> int:
        """The start of the window, in seconds since 1970-01-01T00:00Z."""
        return self._first_second

    @property
    def stop_second(self) -> int:
        """The end of the window, in seconds since 1970-01-01T00:00Z."""
        return self._stop_second

    @property
    def start(self) -> datetime:
        """The start of the window, in UTC."""
        return EPOCH + timedelta(seconds=self._first_second)

    @property
    def end(self) -> datetime:
        """The end of the window, in UTC; the end is not part of the window."""
        return EPOCH + timedelta(seconds=self._stop_second)

    @property
    def time(self) -> "Interval":
        """The window itself."""
        return self

    @property
    def segment(self) -> str:
        """The empty text: a window has no segment."""
        return ""

    @property
    def local_start(self) -> datetime:
        """The start of the window, with the offset of the window's zone at that instant."""
        return self.start.astimezone(self._zone.tzinfo_at(self._first_second))

    @property
    def local_end(self) -> datetime:
        """The end of the window, with the offset of the window's zone at that instant."""
        return self.end.astimezone(self._zone.tzinfo_at(self._stop_second))

    @property
    def duration(self) -> timedelta:
        """The elapsed time between start and end."""
        return timedelta(seconds=self._stop_second - self._first_second)

    @property
    def zone(self) -> str:
        """The name of the time zone in which the window is written."""
        return self._zone.name

    @property
    def text(self) -> str:
        """`2024-01-01` where both ends begin a local date, else `2024-11-03T01:00-04:00`."""
        return window_text(self._first_second, self._stop_second, self._zone)

    @property
    def label(self) -> str:
        """`2024-W05`, `2024-01`, `2024-Q1` or `2024` for exactly that window, else the text.

        Weeks are weeks of ISO 8601, which begin on Mondays.
        """
        return window_label(self._first_second, self._stop_second, self._zone) or self.text

    @property
    def _order(self) -> tuple[Any, ...]:
        return (_INTERVAL_ORDER, self._first_second, self._stop_second)

    @property
    def _exact(self) -> str:
        # The zone is left out, since equality ignores the zone.
        ends = (f"{end:%Y-%m-%dT%H:%M:%S}Z" for end in (self.start, self.end))
        return f"@interval({JOINT.join(ends)})"

    def __contains__(self, moment: datetime) -> bool:
        return self.start <= moment < self.end

    def __repr__(self) -> str:
        return f"Interval({self.start.isoformat()}, {self.end.isoformat()}, {self.zone!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interval):
            return NotImplemented
        return (self._first_second, self._stop_second) == (other._first_second, other._stop_second)

    def __lt__(self, other: Any) -> bool:
        if not isinstance(other, Interval):
            return super().__lt__(other)
        return (self._first_second, self._stop_second) < (other._first_second, other._stop_second)

    def __hash__(self) -> int:
        return hash((self._first_second, self._stop_second))

    def __reduce__(self) -> tuple[object, ...]:
        return Interval, (self.start, self.end, self.zone)


def make_interval(first_second: int, stop_second: int, zone: Zone) -> Interval:
    """Return the window between two instants, without a check of the order."""
    interval = Interval.__new__(Interval)
    interval._first_second = first_second
    interval._stop_second = stop_second
    interval._zone = zone
    return interval


def make_intervals(ticks: Iterable[int], zone: Zone) -> list[Interval]:
    """Return the windows between consecutive ticks. Calls of `make_interval` would double the
    time.
    """
    new = Interval.__new__
    intervals: list[Interval] = []
    add = intervals.append
    for start, stop in pairwise(ticks):
        interval = new(Interval)
        interval._first_second = start
        interval._stop_second = stop
        interval._zone = zone
        add(interval)
    return intervals


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
