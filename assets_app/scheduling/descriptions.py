"""Schedules described in English, and moments on the clock of the time zone of a schedule."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assets_app.models import Asset, Schedule
from slicewise.calendar import to_instant, zone
from slicewise.declaring import is_after, schedule_text

_PRESETS = {
    "@hourly": "every hour, on the hour",
    "@daily": "every day at 00:00",
    "@midnight": "every day at 00:00",
    "@weekly": "every Sunday at 00:00",
    "@monthly": "on the first day of each month at 00:00",
    "@quarterly": "on the first day of each quarter at 00:00",
    "@yearly": "on 1 January at 00:00",
    "@annually": "on 1 January at 00:00",
}
_EVERY_MINUTES = re.compile(r"\*/(\d+) \* \* \* \*")
_HOURLY = re.compile(r"(\d+) \* \* \* \*")
_DAILY = re.compile(r"(\d+) (\d+) \* \* \*")
_WEEKLY = re.compile(r"(\d+) (\d+) \* \* ([0-7])(?:-([0-7]))?")
_MONTHLY = re.compile(r"(\d+) (\d+) ([1-9]|[12]\d|3[01]) \* \*")
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_EPOCH = "1970-01-01T00:00Z"
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


@dataclass(frozen=True, slots=True)
class ScheduleDescription:
    """A schedule as pages, commands and the API describe it."""

    row: Schedule
    asset: Asset

    @property
    def rule(self) -> Mapping[str, Any]:
        """The declaration of the schedule; a schedule without one is not shown."""
        return self.row.rule or {}

    @property
    def text(self) -> str:
        """The schedule as people write it: ``@daily``, ``hourly & daily``."""
        return schedule_text(self.rule["schedule"])

    @property
    def has_times(self) -> bool:
        """Whether the schedule ticks: it is a time, or joins a time to assets."""
        return self.row.by_time or self.row.joins_times

    @property
    def timezone(self) -> str:
        """The zone on whose clock times without a zone of their own are read."""
        return self.rule.get("timezone") or "UTC"

    @property
    def meaning(self) -> str:
        """A schedule with times in words; empty where the text is as clear."""
        spec = self.rule["schedule"]
        if self.row.joins_times:
            return expression_in_words(spec, self.timezone)
        if spec["kind"] == "timedelta":
            return f"{_every(spec['seconds'])}, counted from {self.rule.get('start') or _EPOCH}"
        return cron_in_words(spec.get("expression", ""))

    @property
    def start(self) -> str:
        """The first moment at which the schedule may tick, on its own clock."""
        return self._bound("start")

    @property
    def end(self) -> str:
        """The last moment at which the schedule may tick, on its own clock."""
        return self._bound("end")

    @property
    def has_ended(self) -> bool:
        """Whether a schedule by time has no further tick and is not paused."""
        return self.row.by_time and self.row.next_at is None and not self.asset.paused

    def local(self, moment: datetime | None) -> str:
        """Return a moment on the clock of the schedule, without the name of the zone."""
        return "" if moment is None else local_text(moment, self.timezone)

    def _bound(self, name: str) -> str:
        text = self.rule.get(name)
        return local_text(datetime.fromisoformat(text), self.timezone) if text else ""


def describe_schedule(asset: Asset) -> ScheduleDescription | None:
    """Describe the schedule of the asset's producer; return None for an asset without a
    schedule.
    """
    row = Schedule.of(asset)
    return None if row is None or row.rule is None else ScheduleDescription(row, asset)


def expression_in_words(spec: Mapping[str, Any], timezone: str) -> str:
    """Describe an expression of assets and times: ``raw or every day at 00:00 (Europe/Berlin)``."""
    if spec["kind"] == "asset":
        return str(spec["name"])
    if "of" not in spec:
        return term_in_words(spec, timezone)
    texts = (
        f"({text})" if "of" in operand else text
        for operand in spec["of"]
        if (text := expression_in_words(operand, timezone))
    )
    return (" or " if spec["kind"] == "any" else " and ").join(texts)


def term_in_words(spec: Mapping[str, Any], timezone: str) -> str:
    """Describe a time or a term of lateness: ``every day at 00:00 (Europe/Berlin)``, ``every 15
    minutes``, ``6 hours after the end of the window``, ``model at most 30 days old``.
    """
    if is_after(spec):
        remake = ", materialized again when late inputs arrive" if spec.get("remake") else ""
        return f"{span_in_words(spec['seconds'])} after the end of the window{remake}"
    if spec["kind"] == "fresh":
        return f"{spec['name']} at most {span_in_words(spec['seconds'])} old"
    if spec["kind"] == "timedelta":
        return _every(spec["seconds"])
    words = cron_in_words(spec["expression"]) or f"at {spec['expression']}"
    return f"{words} ({spec.get('timezone') or timezone})"


def cron_in_words(expression: str) -> str:
    """Describe common crons in words; return an empty text for others, no clearer in words."""
    if expression in _PRESETS:
        return _PRESETS[expression]
    if match := _EVERY_MINUTES.fullmatch(expression):
        minutes = int(match[1])
        return _every(60 * minutes) if minutes and 60 % minutes == 0 else ""
    if match := _HOURLY.fullmatch(expression):
        return f"every hour at minute {match[1]}"
    if match := _DAILY.fullmatch(expression):
        return f"every day at {_clock(match)}"
    if match := _WEEKLY.fullmatch(expression):
        until = f" to {_WEEKDAYS[int(match[4])]}" if match[4] else ""
        return f"every {_WEEKDAYS[int(match[3])]}{until} at {_clock(match)}"
    if match := _MONTHLY.fullmatch(expression):
        return f"on day {match[3]} of each month at {_clock(match)}"
    return ""


def _clock(match: re.Match[str]) -> str:
    """Return the time of day of a cron that begins with one minute and one hour."""
    return f"{int(match[2]):02}:{int(match[1]):02}"


def local_text(moment: datetime, timezone: str) -> str:
    """Render ``Tue 2024-07-02 00:00``, with seconds where there are any."""
    local = moment.astimezone(zone(timezone).tzinfo_at(to_instant(moment)))
    return f"{local:%a %Y-%m-%d %H:%M:%S}" if local.second else f"{local:%a %Y-%m-%d %H:%M}"


def span_in_words(seconds: int) -> str:
    """Return a span in its largest whole unit: ``2 hours``, ``1 day``, ``90 minutes``."""
    count, unit = _in_units(seconds)
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def _every(seconds: int) -> str:
    count, unit = _in_units(seconds)
    return f"every {unit}" if count == 1 else f"every {count} {unit}s"


def _in_units(seconds: int) -> tuple[int, str]:
    size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
    return seconds // size, unit
