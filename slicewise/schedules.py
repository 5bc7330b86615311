"""When an asset is written: a time rule, or an expression over other assets and times (AIP-75)."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from slicewise.cadence import StepCadence, read_cadence
from slicewise.errors import DefinitionError
from slicewise.schedule_terms import Cron, Every, Schedulable, cron_text, shown

Schedule = str | timedelta | Schedulable | None


def schedule_json(schedule: Schedule) -> dict[str, Any] | None:
    """Return a schedule as JSON. Raises DefinitionError for a text or span that is no rule of time.

    ``{"kind": "cron", "expression": "@daily"}``, ``{"kind": "timedelta", "seconds": 900}``,
    ``{"kind": "asset", "name": "raw"}``, ``{"kind": "any", "of": [...]}`` or ``"all"``. A cron in
    an expression may have a ``"timezone"`` of its own.
    """
    if schedule is None:
        return None
    if isinstance(schedule, Schedulable):
        return schedule.schedule_json()
    if not isinstance(schedule, str | timedelta):
        raise DefinitionError(
            "schedule is a preset, a cron expression, a timedelta, an asset, or times (Cron, Every)"
            f" and assets joined by | and &, not {shown(schedule)}"
        )
    try:
        cadence = read_cadence(schedule)
    except DefinitionError as error:
        raise DefinitionError(f"schedule={schedule!r}: {error}{_meant(schedule)}") from None
    if isinstance(cadence, StepCadence):
        return {"kind": "timedelta", "seconds": cadence.seconds}
    return {"kind": "cron", "expression": cadence.text}


def scheduling_assets(schedule: Schedule) -> list[str]:
    """Return the names of the assets in a schedule, each once, in the order in which they
    stand there.
    """
    return list(dict.fromkeys(schedule.asset_names())) if isinstance(schedule, Schedulable) else []


def schedule_names(spec: Mapping[str, Any] | None) -> list[str]:
    """Return the names of the assets in a schedule's JSON, each once, in the order of the text."""
    return list(dict.fromkeys(leaf["name"] for leaf in _leaves(spec) if leaf["kind"] == "asset"))


def time_terms(spec: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """Return the times in a schedule's JSON, in the order of the text; one for a plain time."""
    return [leaf for leaf in _leaves(spec) if is_time(leaf)]


def is_time(spec: Mapping[str, Any] | None) -> bool:
    """Return whether a schedule's JSON is one time and nothing else."""
    return spec is not None and spec["kind"] in ("cron", "timedelta")


def is_read_in_zone(spec: Mapping[str, Any] | None) -> bool:
    """Return whether some cron of a schedule's JSON goes by the time zone of the asset."""
    return any(term["kind"] == "cron" and not term.get("timezone") for term in time_terms(spec))


def has_ticks(schedule: Schedule) -> bool:
    """Return whether a declared schedule is a time, or joins one."""
    return isinstance(schedule, str | timedelta) or bool(time_terms(schedule_json(schedule)))


def plain_time(schedule: Schedule) -> tuple[Schedule, str | None]:
    """Return a schedule, one that is a single term of time as the text or timedelta that says the
    same; and the time zone of that term.
    """
    if isinstance(schedule, Cron):
        return schedule.expression, schedule.timezone
    return (schedule.span, None) if isinstance(schedule, Every) else (schedule, None)


def schedule_text(spec: Mapping[str, Any] | None) -> str:
    """Return a schedule's JSON as people write it: ``@daily``, ``every 0:15:00``, ``raw &
    (a | b)``.
    """
    if spec is None:
        return "by hand"
    if spec["kind"] == "cron":
        return str(spec["expression"])
    if spec["kind"] == "timedelta":
        return f"every {timedelta(seconds=spec['seconds'])}"
    return _text(spec)


def _text(spec: Mapping[str, Any]) -> str:
    if spec["kind"] == "asset":
        return str(spec["name"])
    if spec["kind"] == "cron":
        return cron_text(spec["expression"], spec.get("timezone"))
    if spec["kind"] == "timedelta":
        return f"Every({timedelta(seconds=spec['seconds'])})"
    parts = (
        f"({_text(part)})" if not is_time(part) and " " in _text(part) else _text(part)
        for part in spec["of"]
    )
    return (" | " if spec["kind"] == "any" else " & ").join(parts)


def _leaves(spec: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    if spec is None:
        return
    if "of" not in spec:
        yield spec
    for part in spec.get("of", ()):
        yield from _leaves(part)


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


def _meant(schedule: str | timedelta) -> str:
    """A name of an asset is a text as well, and only an asset can be scheduled after."""
    is_name = isinstance(schedule, str) and schedule.isidentifier()
    return f"; to follow an asset, write schedule=Asset.ref({schedule!r})" if is_name else ""
