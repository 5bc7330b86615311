"""When an asset is written: a time rule, or an expression over other assets (AIP-75)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from croniter import croniter

PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")


class Schedulable:
    """What can stand in a schedule expression: joined by ``|`` (any of) and ``&`` (all of)."""

    def __or__(self, other: "Schedulable") -> "ScheduleExpression":
        return _joined("any", self, other)

    def __and__(self, other: "Schedulable") -> "ScheduleExpression":
        return _joined("all", self, other)

    def schedule_json(self) -> dict[str, Any]:
        """The expression as JSON."""
        raise TypeError(f"{type(self).__name__} cannot stand in a schedule")

    def asset_names(self) -> Iterator[str]:
        """The names of the assets in the expression, as often as they stand there."""
        raise TypeError(f"{type(self).__name__} cannot stand in a schedule")


@dataclass(frozen=True)
class ScheduleExpression(Schedulable):
    """Several assets, any or all of which must be written before the schedule is met."""

    kind: Literal["any", "all"]
    parts: tuple[Schedulable, ...]

    def schedule_json(self) -> dict[str, Any]:
        """``{"kind": "any" | "all", "of": [...]}``."""
        return {"kind": self.kind, "of": [part.schedule_json() for part in self.parts]}

    def asset_names(self) -> Iterator[str]:
        """The names of the assets in the expression, as often as they stand there."""
        for part in self.parts:
            yield from part.asset_names()


Schedule = str | timedelta | Schedulable | None


def schedule_json(schedule: Schedule) -> dict[str, Any] | None:
    """A schedule as JSON. Raises ValueError for a text or span that is no rule of time.

    ``{"kind": "cron", "expression": "@daily"}``, ``{"kind": "timedelta", "seconds": 900.0}``,
    ``{"kind": "asset", "name": "raw"}``, ``{"kind": "any", "of": [...]}`` or ``"all"``.
    """
    if schedule is None:
        return None
    if isinstance(schedule, Schedulable):
        return schedule.schedule_json()
    if isinstance(schedule, timedelta):
        if schedule <= timedelta(0):
            raise ValueError("a schedule's timedelta is longer than nothing")
        return {"kind": "timedelta", "seconds": schedule.total_seconds()}
    if not isinstance(schedule, str):
        raise ValueError(
            f"schedule is a preset, a cron expression, a timedelta, an asset or assets joined by"
            f" | and &, not {type(schedule).__name__}"
        )
    _check_expression(schedule)
    return {"kind": "cron", "expression": schedule}


def scheduling_assets(schedule: Schedule) -> list[str]:
    """The names of the assets in a schedule, each once, in the order in which they stand there."""
    return list(dict.fromkeys(schedule.asset_names())) if isinstance(schedule, Schedulable) else []


def _check_expression(text: str) -> None:
    if text.startswith("@"):
        if text not in PRESETS:
            raise ValueError(f"unknown preset {text!r}; there are {', '.join(PRESETS)}")
    elif len(text.split()) != 5 or not croniter.is_valid(text):
        raise ValueError(f"{text!r} is not a cron expression of five fields")


def _joined(kind: Literal["any", "all"], *parts: Schedulable) -> ScheduleExpression:
    flat: list[Schedulable] = []
    for part in parts:
        if not isinstance(part, Schedulable):
            raise TypeError(f"a schedule joins assets, not {type(part).__name__}")
        same = isinstance(part, ScheduleExpression) and part.kind == kind
        flat.extend(part.parts if same and isinstance(part, ScheduleExpression) else [part])
    return ScheduleExpression(kind, tuple(flat))
