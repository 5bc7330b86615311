"""Cadences: a preset, a cron expression or a timedelta says how often a window begins (AIP-76)."""

import itertools
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Literal

from slicewise.calendar.cron_fields import CronFields, read_fields
from slicewise.calendar.day_cycles import picked_days
from slicewise.calendar.wall_ticks import WallTicks
from slicewise.calendar.zones import DAY
from slicewise.errors import DefinitionError

PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 1,4,7,10 *",
    "@yearly": "0 0 1 1 *",
}
CalendarUnit = Literal["minute", "hour", "day", "week", "month", "quarter", "year", "other"]
_LONGEST = timedelta(days=36_525)  # a century: windows have to end within Python's calendar
CadenceJson = str | dict[str, int]


@dataclass(frozen=True)
class StepCadence:
    """A cadence in elapsed time: a tick every `seconds` seconds."""

    seconds: int

    def to_json(self) -> CadenceJson:
        """Return the cadence as JSON, in the written form."""
        return {"seconds": self.seconds}

    @property
    def canonical(self) -> CadenceJson:
        """JSON that is equal for cadences with equal ticks."""
        return self.to_json()

    @property
    def typical_width(self) -> int:
        """Seconds of a typical window."""
        return self.seconds

    def __str__(self) -> str:
        return f"every {timedelta(seconds=self.seconds)}"


@dataclass(frozen=True)
class CronCadence:
    """Ticks on the local clock, by a preset or a five-field cron expression."""

    text: str

    @cached_property
    def expression(self) -> str:
        """The five fields."""
        return PRESETS.get(self.text, self.text)

    @cached_property
    def fields(self) -> CronFields:
        """The five fields, parsed."""
        return read_fields(self.expression)

    @property
    def follows_elapsed_time(self) -> bool:
        """Whether the hour field leaves no hour out (calendar rule 5)."""
        return self.fields.hours is None

    @cached_property
    def wall_ticks(self) -> WallTicks:
        """The ticks on a clock without a zone."""
        return WallTicks(picked_days(self.fields.on), self.fields.times)

    def to_json(self) -> CadenceJson:
        """Return the cadence as JSON, in the written form."""
        return self.text

    @cached_property
    def canonical(self) -> CadenceJson:
        """JSON that is equal if only the spelling differs, as in @daily and 00 0 * * *."""
        return self.fields.canonical

    @cached_property
    def typical_width(self) -> int:
        """Seconds of a typical window: the median of twenty-five windows."""
        ticks = self.wall_ticks.ticks(0, 26)
        return sorted(b - a for a, b in itertools.pairwise(ticks))[12]

    def __str__(self) -> str:
        return self.text


Cadence = StepCadence | CronCadence


def read_cadence(value: object) -> Cadence:
    """Return the cadence that a preset, cron text, timedelta or JSON value stands for.

    Raises DefinitionError, whose message says how to write a cadence.
    """
    if isinstance(value, dict) and isinstance(value.get("seconds"), int):
        value = _seconds(value["seconds"])
    if isinstance(value, timedelta):
        if value <= timedelta(0) or value % timedelta(seconds=1):
            raise DefinitionError(
                f"a cadence takes a positive number of whole seconds, not {value}"
            )
        if value > _LONGEST:
            raise DefinitionError(f"a cadence takes at most {_LONGEST.days:,} days, not {value}")
        return StepCadence(value // timedelta(seconds=1))
    if not isinstance(value, str):
        raise DefinitionError(f"a cadence is a preset, a cron text or a timedelta, not {value!r}")
    return read_cron(value)


def _seconds(count: int) -> timedelta:
    try:
        return timedelta(seconds=count)
    except OverflowError:
        raise DefinitionError(f"a cadence takes at most {_LONGEST.days:,} days") from None


def read_cron(text: str) -> CronCadence:
    """Return the cadence of a preset or cron text. Raises DefinitionError."""
    text = " ".join(text.split())
    if text.startswith("@") and text not in PRESETS:
        raise DefinitionError(f"unknown preset {text!r}: use one of {', '.join(PRESETS)}")
    fields = PRESETS.get(text, text).split()
    if len(fields) != 5:
        raise DefinitionError(f"a cron expression has five fields, {text!r} has {len(fields)}")
    cadence = CronCadence(text)
    if cadence.fields.on.never:
        raise DefinitionError(f"the cron expression {text!r} never ticks")
    return cadence


def calendar_unit(width: int) -> CalendarUnit:
    """Return the unit of the calendar in which windows of `width` seconds are best drawn."""
    days = width / DAY
    if width < 3600:
        return "minute"
    if days < 0.9:
        return "hour"
    units: dict[CalendarUnit, tuple[float, float]] = {
        "week": (7, 7),
        "day": (0.9, 7),
        "month": (28, 31),
        "quarter": (89, 92),
        "year": (365, 366),
    }
    return next((unit for unit, (low, high) in units.items() if low <= days <= high), "other")
