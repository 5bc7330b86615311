"""Periods of local time that a page of the grid shows, and the windows that start in a period."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from partitions_app.grid.cells import Zoom, address
from partitions_app.grid.wall_clock import offset_text
from slicewise import Interval
from slicewise.partitions import TimeDefinition

Unit = Literal["minute", "hour", "day", "long"]
YEARS_PER_PAGE = 20
# Pages look a few years ahead and behind: addresses stay clear of the ends of Python's dates.
_YEARS_OF_ADDRESSES = range(1000, 9000)
_LATEST_SINCE = datetime(9990, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """The present, and the start of expected partitions for definitions without a start."""

    now: datetime
    since: datetime


@dataclass(frozen=True, slots=True)
class Period:
    """Local dates ``[first, stop)`` of one page."""

    zoom: Zoom
    first: date
    stop: date

    def within(self, first: date, last: date) -> "Period":
        """Return the years of the period with dates between two dates; the period if none."""
        start = max(self.first, date(first.year, 1, 1))
        stop = min(self.stop, date(last.year + 1, 1, 1))
        return Period(self.zoom, start, stop) if start < stop else self

    @property
    def title(self) -> str:
        """The name: ``2013``, ``May 2013``, ``Wednesday 1 May 2013``, ``2004 to 2023``."""
        match self.zoom:
            case "day":
                return f"{self.first:%A} {self.first.day} {self.first:%B %Y}"
            case "month":
                return f"{self.first:%B %Y}"
            case "year":
                return f"{self.first.year}"
        if len(self.years) == 1:
            return f"{self.first.year}"
        return f"{self.first.year} to {self.stop.year - 1}"

    def part(self, begin: datetime | None, end: datetime | None) -> str:
        """Return the part of the period from one local time to another, None for an end of the
        period: ``from 00:00 until 17:33``; an empty text for the whole period.
        """
        parts = [
            f"from {self._time_text(begin)}" if begin else "",
            f"until {self._time_text(end)}" if end else "",
        ]
        return " ".join(filter(None, parts))

    def _time_text(self, local_time: datetime) -> str:
        text = f"{local_time:%H:%M}" if self.zoom == "day" else f"{local_time:%d %b %H:%M}"
        offset = _with_needed_offset(local_time).utcoffset()
        return text if offset is None else f"{text} {offset_text(offset)}"

    def address_of_part(self, begin: datetime | None) -> str:
        """Return the query string of the part from a local time on, None for the first part."""
        return address(self.zoom, _with_needed_offset(begin) if begin else self.first)

    @property
    def months(self) -> list[date]:
        """The first days of all months, for periods of whole months."""
        return [date(year, month, 1) for year in self.years for month in range(1, 13)
                if self.first <= date(year, month, 1) < self.stop]  # fmt: skip

    @property
    def years(self) -> range:
        """The calendar years of the period."""
        return range(self.first.year, (self.stop - timedelta(days=1)).year + 1)

    @property
    def days(self) -> list[date]:
        """The days of the period."""
        return [self.first + timedelta(days=n) for n in range((self.stop - self.first).days)]


def period_of(zoom: Zoom, day: date) -> Period:
    """Return the page of a zoom that holds the date."""
    match zoom:
        case "day":
            return Period(zoom, day, day + timedelta(days=1))
        case "month":
            return Period(zoom, day.replace(day=1), next_month(day))
        case "year":
            return Period(zoom, date(day.year, 1, 1), date(day.year + 1, 1, 1))
    first = max(day.year - day.year % YEARS_PER_PAGE, 1)
    return Period(zoom, date(first, 1, 1), date(min(first + YEARS_PER_PAGE, 9999), 1, 1))


def local_time_of(text: str, zone: str) -> datetime | None:
    """Parse a local time as written in addresses of pages; return None for any other text. Without
    an offset, a time that the clock shows twice is the first of the two.
    """
    try:
        local_time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if local_time.year not in _YEARS_OF_ADDRESSES:
        return None
    if local_time.tzinfo is None:
        return local_time.replace(tzinfo=ZoneInfo(zone))
    return local_time.astimezone(ZoneInfo(zone))


def _with_needed_offset(local_time: datetime) -> datetime:
    """Return a local time without an offset, unless the clock shows the time twice."""
    other_pass = local_time.replace(fold=1 - local_time.fold)
    is_clear = other_pass.utcoffset() == local_time.utcoffset()
    return local_time.replace(tzinfo=None) if is_clear else local_time


def next_month(day: date) -> date:
    """Return the first day of the following month."""
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def unit_of(definition: TimeDefinition) -> Unit:
    """Return the unit of time in which the windows of a definition are drawn."""
    unit = definition.calendar_unit
    return unit if unit in ("minute", "hour", "day") else "long"


def windows_in(definition: TimeDefinition, period: Period) -> int:
    """Count the windows of the definition that start in the period."""
    first, stop = (midnight(edge, definition.timezone) for edge in (period.first, period.stop))
    return definition.count(first, _end_of_last(definition, stop))


def since_of(definition: TimeDefinition, clock: Clock) -> datetime:
    """Return the instant since when the windows of the definition are expected.

    A definition that starts near the end of Python's dates has no window that a page could show.
    """
    return min(definition.start or clock.since, _LATEST_SINCE)


def span_of(definition: TimeDefinition, clock: Clock) -> tuple[date, date]:
    """Return the local dates of the first and the last window that exist or have begun."""
    zone = definition.timezone
    start = since_of(definition, clock)
    end = max(min(definition.end or clock.now, clock.now), start)
    # The last window of a bounded definition begins before its end.
    last = end - timedelta(microseconds=1) if end > start else end
    return date_of(start, zone), date_of(last, zone)


def windows_starting(
    definition: TimeDefinition, first: date, stop: date, clock: Clock
) -> Iterator[Interval]:
    """Return the expected windows that start on the local dates ``[first, stop)``, in order."""
    edge = midnight(stop, definition.timezone)
    since = max(midnight(first, definition.timezone), since_of(definition, clock))
    return iter(definition.windows(since, _end_of_last(definition, edge)))


def counts_starting(
    definition: TimeDefinition, edges: Sequence[date], clock: Clock
) -> list[tuple[int, int]]:
    """Count the windows that start between each two edges: all windows, and windows that have
    ended.

    A window that starts between two edges may end after the second edge: hence differences of
    counts up to the end of the last window that starts before the last edge.
    """
    far = _end_of_last(definition, midnight(edges[-1], definition.timezone))
    least = since_of(definition, clock)
    starts = [max(midnight(edge, definition.timezone), least) for edge in edges]
    started = [definition.count(start, far) for start in starts]
    until = min(far, clock.now)
    ended = [definition.count(start, until) if start < until else 0 for start in starts]
    return [(started[n] - started[n + 1], ended[n] - ended[n + 1]) for n in range(len(edges) - 1)]


def _end_of_last(definition: TimeDefinition, edge: datetime) -> datetime:
    """Return the end of the window that begins before the edge and lasts beyond; the edge if no
    window of the definition does.

    The windows up to this end are the windows that start before the edge, however long the last
    window is: windows begin at whole seconds, and do not overlap.
    """
    last = definition.window_at(edge - timedelta(seconds=1))
    return edge if last is None else last.end


def midnight(day: date, zone: str) -> datetime:
    """Return the instant at which a local date begins."""
    return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)


def date_of(instant: datetime, zone: str) -> date:
    """Return the local date that has begun last: a repeated time that crosses midnight belongs to
    the later date (calendar rule 4), although the clock shows the earlier date again.
    """
    shown_date = instant.astimezone(UTC).astimezone(ZoneInfo(zone)).date()
    day = shown_date + timedelta(days=1)
    while midnight(day, zone) > instant:
        day -= timedelta(days=1)
    return day
