"""Partitions by interval: windows of time."""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, tzinfo
from functools import cached_property
from typing import Any, Self

from slicewise.cadence import (
    Cadence,
    CalendarUnit,
    StepCadence,
    calendar_unit,
    read_cadence,
    read_cron,
)
from slicewise.definitions import DEFAULT_NAME, Dimension, Json, PartitionDefinition
from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.intervals import Interval
from slicewise.moments import Moment, read_iso, read_moment, read_time, since_second
from slicewise.names import check_name
from slicewise.segments import Segments
from slicewise.space import Space
from slicewise.windows import Bound, Exclusions, Windows, WindowSequence
from slicewise.zones import Zone, to_instant, zone

Excluded = str | date | datetime


class PartitionByInterval(PartitionDefinition, kind="interval"):
    """One partition for each window between two ticks of a cadence (AIP-76).

    `cadence` is a preset (`@hourly @daily @weekly @monthly @quarterly @yearly`), a five-field cron
    text, or a timedelta of whole seconds, aligned to `start` or else to the epoch. `timezone` is an
    IANA name. `start` and `end` bound the windows: naive values are wall time in the zone, a date
    is its midnight, aware values are instants. `exclude` leaves out the windows that start at the
    ticks of a cron text, on a date, or at a datetime. `name` is the dimension's.

    Raises DefinitionError for an unknown preset or zone, a bad cron, end before start, and naive
    mixed with aware bounds.
    """

    cadence: Cadence
    timezone: str
    start: datetime | None
    end: datetime | None
    exclude: tuple[Excluded, ...]

    def __init__(
        self,
        cadence: object,
        *,
        timezone: str | tzinfo = "UTC",
        start: Moment | None = None,
        end: Moment | None = None,
        exclude: Excluded | Iterable[Excluded] = (),
        name: str | None = None,
    ) -> None:
        place = zone(_zone_name(timezone))
        start, end = (read_iso(each) if isinstance(each, str) else each for each in (start, end))
        _check_not_mixed(start, end)
        bounds = [None if each is None else read_moment(each, place) for each in (start, end)]
        if isinstance(exclude, str | date):
            exclude = (exclude,)
        vars(self).update(
            cadence=read_cadence(cadence),
            timezone=place.name,
            start=bounds[0],
            end=bounds[1],
            exclude=tuple(_read_excluded(each, place) for each in exclude),
            name=check_name(name),
        )
        # Compared as instants: Python compares datetimes of one zone by what the clock reads.
        if bounds[0] and bounds[1] and to_instant(bounds[1]) < to_instant(bounds[0]):
            raise DefinitionError(f"the end {bounds[1]} comes before the start {bounds[0]}")
        if isinstance(self.cadence, StepCadence) and bounds[0] and bounds[0].microsecond:
            raise DefinitionError(
                f"a timedelta aligns to a start in whole seconds, not {bounds[0]}"
            )

    @property
    def zone(self) -> Zone:
        """The zone's offsets."""
        return zone(self.timezone)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The one dimension of time."""
        return (Dimension(self.name or DEFAULT_NAME, self),)

    @property
    def calendar_unit(self) -> CalendarUnit:
        """The unit in which pages draw the windows."""
        return calendar_unit(self.cadence.typical_width)

    def windows(self, since: Moment | None = None, until: Moment | None = None) -> WindowSequence:
        """The windows wholly inside [since, until) and the definition's bounds, in order.

        A lazy sequence. Raises UnboundedPartitionsError where neither bounds a side.
        """
        windows = self._windows
        return WindowSequence(windows, *windows.between(*self.read_bounds(since, until)))

    def keys(self, since: Moment | None = None, until: Moment | None = None) -> WindowSequence:
        """The same as `windows`: a window is its own key."""
        return self.windows(since, until)

    def window_at(self, instant: datetime) -> Interval | None:
        """The window that contains the instant (naive: wall time in the zone), or None."""
        second = to_instant(read_moment(instant, self.zone))
        number = self._windows.number_at(second)
        return self._windows.window(number) if self._windows.has(number) else None

    def parse(self, text: str) -> Interval:
        """The window of a key text. Raises PartitionKeyError where it names none."""
        try:
            start = read_time(text, self.zone).start
        except ValueError as error:
            raise PartitionKeyError(f"{text!r} is no key of {self!r}: {error}") from None
        number = self._windows.number_at(start)
        window = self._windows.window(number)
        # A date names a window of whole days, never the first hour of one.
        exact = window.first_second == start and (len(text) > 10 or window.text == text)
        if not exact or not self._windows.has(number):
            raise PartitionKeyError(f"{text!r} names no partition of {self!r}")
        return window

    def read_bounds(self, since: Moment | None, until: Moment | None) -> tuple[Bound, Bound]:
        """Seconds of `since` and `until`, read like `start` and `end`."""
        return (
            None if since is None else since_second(read_moment(since, self.zone)),
            None if until is None else to_instant(read_moment(until, self.zone)),
        )

    @cached_property
    def space(self) -> Space:
        """The windows as numbers."""
        return Space((self.dimensions[0].name,), self._windows, 0, Segments(()), product=False)

    @cached_property
    def _windows(self) -> Windows:
        bounds = self.read_bounds(self.start, self.end)
        crons, dates, instants = [], [], []
        for each in self.exclude:
            if isinstance(each, str):
                crons.append(read_cron(each))
            elif isinstance(each, datetime):
                instants.append(to_instant(each))
            else:
                dates.append(each)
        exclusions = Exclusions(tuple(crons), tuple(dates), tuple(instants))
        return Windows(self.cadence, self.zone, *bounds, exclusions)

    def to_json(self) -> Json:
        """Kind, cadence, timezone, start, end, exclude and name."""
        return {
            "kind": self.kind,
            "cadence": self.cadence.to_json(),
            "timezone": self.timezone,
            "start": self.start.isoformat() if self.start else None,
            "end": self.end.isoformat() if self.end else None,
            "exclude": [
                each if isinstance(each, str) else each.isoformat() for each in self.exclude
            ],
            "name": self.name,
        }

    def canonical(self) -> Json:
        """JSON that is the same for equal definitions."""
        return {
            **self.to_json(),
            "cadence": self.cadence.canonical,
            "start": self.start.astimezone(UTC).isoformat() if self.start else None,
            "end": self.end.astimezone(UTC).isoformat() if self.end else None,
            "exclude": sorted(_canonical_excluded(each) for each in self.exclude),
            "name": self.dimensions[0].name,
        }

    def shape(self) -> Json:
        """Cadence, zone and alignment."""
        phase = 0
        if isinstance(self.cadence, StepCadence) and self.start is not None:
            phase = to_instant(self.start) % self.cadence.seconds
        return {"cadence": self.cadence.canonical, "timezone": self.timezone, "phase": phase}

    @classmethod
    def _from_json(cls, spec: Mapping[str, Any]) -> Self:
        return cls(
            spec["cadence"],
            timezone=spec.get("timezone", "UTC"),
            start=spec.get("start"),
            end=spec.get("end"),
            exclude=spec.get("exclude", ()),
            name=spec.get("name"),
        )

    def __repr__(self) -> str:
        parts = [repr(str(self.cadence))]
        parts += [f"timezone={self.timezone!r}"] if self.timezone != "UTC" else []
        parts += [f"start={self.start.isoformat()}"] if self.start else []
        parts += [f"end={self.end.isoformat()}"] if self.end else []
        parts += [f"exclude={[str(each) for each in self.exclude]}"] if self.exclude else []
        return f"PartitionByInterval({', '.join(parts)})"


def _zone_name(timezone: str | tzinfo) -> str:
    if timezone is UTC:
        return "UTC"
    name = timezone if isinstance(timezone, str) else getattr(timezone, "key", None)
    if not isinstance(name, str):
        raise DefinitionError(f"a timezone is an IANA name, not {timezone!r}")
    return name


def _check_not_mixed(start: date | None, end: date | None) -> None:
    zoned = {each.tzinfo is not None for each in (start, end) if isinstance(each, datetime)}
    if len(zoned) > 1:
        raise DefinitionError(f"one of start {start} and end {end} has a zone, the other none")


def _read_excluded(value: object, zone: Zone) -> Excluded:
    """A cron text stays as it is, a datetime becomes aware; an ISO text is read."""
    if isinstance(value, str):
        try:
            read = datetime.fromisoformat(value) if len(value) > 10 else date.fromisoformat(value)
        except ValueError:
            return read_cron(value).text
        value = read
    if isinstance(value, datetime):
        return read_moment(value, zone)
    if isinstance(value, date):
        return value
    raise DefinitionError(f"exclude takes cron texts, dates and datetimes, not {value!r}")


def _canonical_excluded(value: Excluded) -> str:
    if isinstance(value, str):
        return str(read_cron(value).canonical)
    return (value.astimezone(UTC) if isinstance(value, datetime) else value).isoformat()
