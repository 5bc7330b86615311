"""Partitions by time: windows between boundaries that a kind of definition computes (AIP-76)."""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, tzinfo
from functools import cached_property
from itertools import pairwise
from typing import Any, Self, TypedDict

from slicewise.calendar.cadence import CalendarUnit, calendar_unit, read_cron
from slicewise.calendar.ticks import Ticks
from slicewise.calendar.time_text import (
    Moment,
    read_iso,
    read_moment,
    read_time,
    since_second,
)
from slicewise.calendar.year_ticks import YearTicks
from slicewise.calendar.zones import BEGIN, END, Zone, to_instant, zone, zone_name
from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.keys.names import check_name
from slicewise.keys.partition_key import Interval, check_text
from slicewise.partitions.definition import DEFAULT_NAME, Dimension, Excluded, Json, TimeDefinition
from slicewise.partitions.key_index import KeyIndex
from slicewise.partitions.segments import Segments
from slicewise.partitions.windows import Bound, Exclusions, Windows, WindowSequence


class TimeOptions(TypedDict, total=False):
    """The arguments of every definition by time."""

    timezone: str | tzinfo
    start: Moment | None
    end: Moment | None
    exclude: Excluded | Iterable[Excluded]
    name: str | None


class PartitionByTime(TimeDefinition):
    """One partition for each window between two boundaries; the base of `PartitionByInterval`.

    A plug-in's subclass says where boundaries lie: `boundaries(year)` lists the boundaries of a
    year, or `make_ticks()` numbers boundaries by arithmetic. The subclass passes its own arguments
    as `own`, plain JSON values, which become attributes and are part of the JSON and of equality.

    `timezone` is an IANA name. `start` and `end` bound the windows: naive values are wall time in
    the zone, a date means midnight, aware values are instants. `exclude` leaves out the windows
    that start at the ticks of a cron text, on a date, or at a datetime. `name` is the dimension's
    name. Raises DefinitionError for an unknown zone, end before start, and naive mixed with aware
    bounds.
    """

    timezone: str
    start: datetime | None
    end: datetime | None
    exclude: tuple[Excluded, ...]
    _own: Json

    def __init__(
        self,
        *,
        own: Mapping[str, Any] | None = None,
        timezone: str | tzinfo = "UTC",
        start: Moment | None = None,
        end: Moment | None = None,
        exclude: Excluded | Iterable[Excluded] = (),
        name: str | None = None,
    ) -> None:
        time_zone = zone(zone_name(timezone))
        start, end = (
            read_iso(bound) if isinstance(bound, str) else bound for bound in (start, end)
        )
        _check_not_mixed(start, end)
        bounds = [
            None if bound is None else read_moment(bound, time_zone) for bound in (start, end)
        ]
        if isinstance(exclude, str | date) or not isinstance(exclude, Iterable):
            exclude = (exclude,)
        vars(self).update(
            own or {},
            _own=dict(own or {}),
            timezone=time_zone.name,
            start=bounds[0],
            end=bounds[1],
            exclude=tuple(_read_excluded(exclusion, time_zone) for exclusion in exclude),
            name=check_name(name),
        )
        # Compared as instants: Python compares datetimes of one zone by wall time.
        if bounds[0] and bounds[1] and to_instant(bounds[1]) < to_instant(bounds[0]):
            raise DefinitionError(f"the end {bounds[1]} comes before the start {bounds[0]}")

    # -- methods that a kind of definition may override

    def boundaries(self, year: int) -> Iterable[date | datetime]:
        """Return where windows of a year begin, in order: dates, naive wall times or aware
        datetimes.

        The boundaries of consecutive years continue each other. Each boundary lies within a year of
        `year`. The method is called for years in any order, and for no more years than are looked
        at, so the result depends on nothing but the year and the definition's arguments.
        """
        raise NotImplementedError(f"{type(self).__name__} has neither boundaries nor make_ticks")

    def make_ticks(self) -> Ticks:
        """Return the boundaries as numbered instants; by default, the list of `boundaries`."""
        return YearTicks(self.boundaries, self.zone)

    @property
    def follows_elapsed_time(self) -> bool:
        """Whether exclusion crons are read by calendar rule 5, not 4."""
        return False

    @property
    def typical_width(self) -> int:
        """Seconds of a typical window: the median of twenty-five windows."""
        ticks = self._windows.ticks
        now = ticks.rank(0)
        return sorted(b - a for a, b in pairwise(ticks.ticks(now, now + 26)))[12]

    # -- methods that build on these

    @property
    def zone(self) -> Zone:
        """The time zone with its offsets."""
        return zone(self.timezone)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The one dimension of time."""
        return (Dimension(self.name or DEFAULT_NAME, self),)

    @property
    def calendar_unit(self) -> CalendarUnit:
        """The unit in which pages draw the windows."""
        return calendar_unit(self.typical_width)

    def windows(self, since: Moment | None = None, until: Moment | None = None) -> WindowSequence:
        """Return the windows wholly inside [since, until) and the definition's bounds, in order.

        The sequence is lazy. Raises UnboundedPartitionsError where neither bounds a side.
        """
        windows = self._windows
        return WindowSequence(windows, *windows.between(*self.read_bounds(since, until)))

    def keys(self, since: Moment | None = None, until: Moment | None = None) -> WindowSequence:
        """Return the same as `windows`: a window is its own key."""
        return self.windows(since, until)

    def window_at(self, instant: datetime) -> Interval | None:
        """Return the window that contains the instant (naive: wall time in the zone), or None."""
        return self._window_at(to_instant(read_moment(instant, self.zone)))

    def _window_at(self, second: int) -> Interval | None:
        number = self._windows.number_at(second)
        window = self._windows.window(number)
        # Cadences have no end; Python's calendar ends with the year 9999.
        exists = window.first_second >= BEGIN and window.stop_second <= END
        return window if exists and self._windows.has(number) else None

    def parse(self, text: str) -> Interval:
        """Return the window of a key text. Raises PartitionKeyError if no window has that text."""
        try:
            check_text(text)
            start = read_time(text, self.zone).start
        except ValueError as error:
            raise PartitionKeyError(f"{text!r} is no key of {self!r}: {error}") from None
        window = self._window_at(start)
        # A date names a window of whole days, never the first hour of a day.
        if window and window.first_second == start and (len(text) > 10 or window.text == text):
            return window
        raise PartitionKeyError(f"{text!r} names no partition of {self!r}")

    def read_bounds(self, since: Moment | None, until: Moment | None) -> tuple[Bound, Bound]:
        """Return `since` and `until` in seconds, read like `start` and `end`."""
        return (
            None if since is None else since_second(read_moment(since, self.zone)),
            None if until is None else to_instant(read_moment(until, self.zone)),
        )

    @cached_property
    def space(self) -> KeyIndex:
        """The windows, by number."""
        return KeyIndex((self.dimensions[0].name,), self._windows, 0, Segments(()), product=False)

    @cached_property
    def _windows(self) -> Windows:
        bounds = self.read_bounds(self.start, self.end)
        crons, dates, instants = [], [], []
        for exclusion in self.exclude:
            if isinstance(exclusion, str):
                crons.append(read_cron(exclusion))
            elif isinstance(exclusion, datetime):
                instants.append(to_instant(exclusion))
            else:
                dates.append(exclusion)
        exclusions = Exclusions(tuple(crons), tuple(dates), tuple(instants))
        ticks, elapsed = self.make_ticks(), self.follows_elapsed_time
        return Windows(ticks, self.zone, *bounds, exclusions, elapsed=elapsed)

    def to_json(self) -> Json:
        """Return the kind, the subclass's arguments, timezone, start, end, exclude and name."""
        return {
            "kind": self.kind,
            **self._own,
            "timezone": self.timezone,
            "start": self.start.isoformat() if self.start else None,
            "end": self.end.isoformat() if self.end else None,
            "exclude": [
                exclusion if isinstance(exclusion, str) else exclusion.isoformat()
                for exclusion in self.exclude
            ],
            "name": self.name,
        }

    def canonical(self) -> Json:
        """Return JSON that is the same for equal definitions."""
        return {
            **self.to_json(),
            "start": self.start.astimezone(UTC).isoformat() if self.start else None,
            "end": self.end.astimezone(UTC).isoformat() if self.end else None,
            "exclude": sorted({_canonical_excluded(exclusion) for exclusion in self.exclude}),
            "name": self.dimensions[0].name,
        }

    def shape(self) -> Json:
        """Return the kind, the subclass's arguments, and the zone."""
        return {"kind": self.kind, **self._own, "timezone": self.timezone}

    @classmethod
    def _from_json(cls, spec: Mapping[str, Any]) -> Self:
        return cls(**{name: value for name, value in spec.items() if name != "kind"})

    def __repr__(self) -> str:
        arguments = self._shown() + (
            [f"timezone={self.timezone!r}"] if self.timezone != "UTC" else []
        )
        arguments += [f"start={self.start.isoformat()}"] if self.start else []
        arguments += [f"end={self.end.isoformat()}"] if self.end else []
        arguments += (
            [f"exclude={[str(exclusion) for exclusion in self.exclude]}"] if self.exclude else []
        )
        return f"{type(self).__name__}({', '.join(arguments)})"

    def _shown(self) -> list[str]:
        return [f"{name}={value!r}" for name, value in self._own.items()]


def _check_not_mixed(start: date | None, end: date | None) -> None:
    has_zone = {bound.tzinfo is not None for bound in (start, end) if isinstance(bound, datetime)}
    if len(has_zone) > 1:
        raise DefinitionError(
            f"start {start} and end {end}: give a time zone to both, or to neither"
        )


def _read_excluded(value: object, zone: Zone) -> Excluded:
    """Return an exclusion in stored form: a cron text, a date or an aware datetime.

    An ISO text is read as a date or datetime.
    """
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value) if len(value) > 10 else date.fromisoformat(value)
        except ValueError:
            return read_cron(value).text
        value = parsed
    if isinstance(value, datetime):
        if value.microsecond:
            raise DefinitionError(f"windows start at whole seconds, so {value} excludes none")
        return read_moment(value, zone)
    if isinstance(value, date):
        return value
    raise DefinitionError(f"exclude takes cron texts, dates and datetimes, not {value!r}")


def _canonical_excluded(value: Excluded) -> str:
    if isinstance(value, str):
        return str(read_cron(value).canonical)
    return (value.astimezone(UTC) if isinstance(value, datetime) else value).isoformat()
