"""When an asset is written: a time rule, or an expression over other assets (AIP-75)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from slicewise.cadence import StepCadence, read_cadence
from slicewise.errors import DefinitionError


class Schedulable:
    """What can stand in a schedule expression: joined by ``|`` (any of) and ``&`` (all of)."""

    def __or__(self, other: "Schedulable") -> "ScheduleExpression":
        return _joined("any", self, other)

    def __ror__(self, other: object) -> "ScheduleExpression":
        return _joined("any", other, self)

    def __and__(self, other: "Schedulable") -> "ScheduleExpression":
        return _joined("all", self, other)

    def __rand__(self, other: object) -> "ScheduleExpression":
        return _joined("all", other, self)

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
    """A schedule as JSON. Raises DefinitionError for a text or span that is no rule of time.

    ``{"kind": "cron", "expression": "@daily"}``, ``{"kind": "timedelta", "seconds": 900}``,
    ``{"kind": "asset", "name": "raw"}``, ``{"kind": "any", "of": [...]}`` or ``"all"``.
    """
    if schedule is None:
        return None
    if isinstance(schedule, Schedulable):
        return schedule.schedule_json()
    if not isinstance(schedule, str | timedelta):
        raise DefinitionError(
            f"schedule is a preset, a cron expression, a timedelta, an asset or assets joined by"
            f" | and &, not {_shown(schedule)}"
        )
    try:
        cadence = read_cadence(schedule)
    except DefinitionError as error:
        raise DefinitionError(f"schedule={schedule!r}: {error}{_meant(schedule)}") from None
    if isinstance(cadence, StepCadence):
        return {"kind": "timedelta", "seconds": cadence.seconds}
    return {"kind": "cron", "expression": cadence.text}


def scheduling_assets(schedule: Schedule) -> list[str]:
    """The names of the assets in a schedule, each once, in the order in which they stand there."""
    return list(dict.fromkeys(schedule.asset_names())) if isinstance(schedule, Schedulable) else []


def schedule_text(spec: Mapping[str, Any] | None) -> str:
    """A schedule's JSON as people write it: ``@daily``, ``every 0:15:00``, ``raw & (a | b)``."""
    if spec is None:
        return "by hand"
    if spec["kind"] == "cron":
        return str(spec["expression"])
    if spec["kind"] == "timedelta":
        return f"every {timedelta(seconds=spec['seconds'])}"
    if spec["kind"] == "asset":
        return str(spec["name"])
    parts = (f"({text})" if " " in text else text for text in map(schedule_text, spec["of"]))
    return (" | " if spec["kind"] == "any" else " & ").join(parts)


def cycle_from(name: str, after: Mapping[str, Sequence[str]]) -> list[str] | None:
    """A way from an asset back to itself along schedules (``after[x]`` schedule x), if any."""
    ways = [[name]]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        for other in after.get(way[-1], ()):
            if other == name:
                return [*way, name]
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return None


def _joined(kind: Literal["any", "all"], *parts: object) -> ScheduleExpression:
    flat: list[Schedulable] = []
    for part in parts:
        if not isinstance(part, Schedulable):
            raise DefinitionError(f"a schedule joins assets, not {_shown(part)}")
        same = isinstance(part, ScheduleExpression) and part.kind == kind
        flat.extend(part.parts if same and isinstance(part, ScheduleExpression) else [part])
    return ScheduleExpression(kind, tuple(flat))


def _meant(schedule: str | timedelta) -> str:
    """A name of an asset is a text as well, and only an asset can be scheduled after."""
    is_name = isinstance(schedule, str) and schedule.isidentifier()
    return f"; to follow an asset, write schedule=Asset.ref({schedule!r})" if is_name else ""


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f"the text {value!r}; write Asset.ref({value!r})"
    outlets = getattr(value, "outlets", None)
    if outlets:
        return f"a multi-asset; write one of its outlets, such as {outlets[0]!r}"
    return type(value).__name__
