"""Schedules by time as ticks: the instants at which an asset is written (AIP-75, Schedules)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from slicewise.calendar.cadence import StepCadence, read_cadence
from slicewise.calendar.ticks import Ticks, ticks_of
from slicewise.calendar.zones import to_datetime, to_instant, zone
from slicewise.errors import DefinitionError


@dataclass(frozen=True)
class TimeSchedule:
    """The ticks of a preset, a cron text or a timedelta, from one instant to another.

    A cron is read on the clock of a time zone, by the same rules as windows; a timedelta is elapsed
    time, aligned to the start if there is one, else to 1970-01-01T00:00Z. Instants are whole
    seconds since 1970-01-01T00:00Z.
    """

    ticks: Ticks
    start: int | None = None
    end: int | None = None

    @classmethod
    def from_json(
        cls,
        schedule: Mapping[str, Any],
        *,
        timezone: str | None = None,
        start: str | None = None,
        end: str | None = None,
    ) -> "TimeSchedule":
        """Return the time rule of an asset's declaration: a schedule, and aware bounds in ISO 8601.

        Raises DefinitionError for a schedule that is not by time.
        """
        kind = schedule.get("kind")
        if kind == "cron":
            cadence = read_cadence(schedule["expression"])
        elif kind == "timedelta":
            cadence = read_cadence(timedelta(seconds=schedule["seconds"]))
        else:
            raise DefinitionError(f"a schedule of the kind {kind!r} has no ticks of its own")
        first, last = (None if text is None else _instant(text) for text in (start, end))
        anchor = first if isinstance(cadence, StepCadence) and first is not None else 0
        return cls(ticks_of(cadence, zone(timezone or "UTC"), anchor), first, last)

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first tick after the moment, or None if there is none."""
        after = to_instant(moment) + 1
        if self.start is not None:
            after = max(after, self.start)
        tick = self.ticks.tick(self.ticks.rank(after))
        return None if self.end is not None and tick > self.end else to_datetime(tick)

    def last_until(self, moment: datetime) -> datetime | None:
        """Return the last tick at or before the moment, or None if there is none."""
        until = to_instant(moment)
        if self.end is not None:
            until = min(until, self.end)
        tick = self.ticks.tick(self.ticks.rank(until + 1) - 1)
        return None if self.start is not None and tick < self.start else to_datetime(tick)

    def count(self, after: datetime, until: datetime) -> int:
        """Return the number of ticks after one moment, up to and including another moment."""
        first, stop = to_instant(after) + 1, to_instant(until) + 1
        if self.start is not None:
            first = max(first, self.start)
        if self.end is not None:
            stop = min(stop, self.end + 1)
        return max(0, self.ticks.rank(stop) - self.ticks.rank(first))


def _instant(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise DefinitionError(f"the bound {text!r} of a schedule has no time zone; write one")
    return to_instant(moment)
