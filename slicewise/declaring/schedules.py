"""Schedules: a cadence, or an expression over other assets and times (AIP-75)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from slicewise.calendar.cadence import StepCadence, read_cadence
from slicewise.declaring.schedule_terms import (
    Cron,
    Every,
    Schedulable,
    cron_text,
    schedule_value_text,
)
from slicewise.errors import DefinitionError

Schedule = str | timedelta | Schedulable | None
T = TypeVar("T")


def schedule_json(schedule: Schedule) -> dict[str, Any] | None:
    """Return a schedule as JSON. Raises DefinitionError for a text or span that is no cadence.

    ``{"kind": "cron", "expression": "@daily"}``, ``{"kind": "timedelta", "seconds": 900}``,
    ``{"kind": "asset", "name": "raw"}``, ``{"kind": "any", "of": [...]}`` or ``"all"``. A cron in
    an expression may have a ``"timezone"`` of its own. Terms of lateness are
    ``{"kind": "after", "seconds": 21600}`` and ``{"kind": "fresh", "name": ..., "seconds": ...}``.
    """
    if schedule is None:
        return None
    if isinstance(schedule, Schedulable):
        return schedule.schedule_json()
    if not isinstance(schedule, str | timedelta):
        raise DefinitionError(
            "schedule is a preset, a cron expression, a timedelta, an asset, or times (Cron, Every)"
            f" and assets joined by | and &, not {schedule_value_text(schedule)}"
        )
    try:
        cadence = read_cadence(schedule)
    except DefinitionError as error:
        raise DefinitionError(f"schedule={schedule!r}: {error}{_asset_hint(schedule)}") from None
    if isinstance(cadence, StepCadence):
        return {"kind": "timedelta", "seconds": cadence.seconds}
    return {"kind": "cron", "expression": cadence.text}


def scheduling_assets(schedule: Schedule) -> list[str]:
    """Return the names of the assets in a schedule without repetitions, in the written order."""
    return list(dict.fromkeys(schedule.asset_names())) if isinstance(schedule, Schedulable) else []


def schedule_names(spec: Mapping[str, Any] | None) -> list[str]:
    """Return the names of the assets in a schedule's JSON without repetitions, in order."""
    return list(dict.fromkeys(leaf["name"] for leaf in _leaves(spec) if leaf["kind"] == "asset"))


def fresh_names(spec: Mapping[str, Any] | None) -> list[str]:
    """Return the names of the assets that are to be fresh by a schedule's JSON, in order."""
    return list(dict.fromkeys(leaf["name"] for leaf in _leaves(spec) if leaf["kind"] == "fresh"))


def schedule_terms(spec: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """Return the assets, times and terms of lateness in a schedule's JSON, in order."""
    return list(_leaves(spec))


def evaluate_schedule(
    spec: Mapping[str, Any],
    of_leaf: Callable[[Mapping[str, Any]], T],
    *,
    of_any: Callable[[list[T]], T],
    of_all: Callable[[list[T]], T],
) -> T:
    """Return the value of a schedule's JSON, given the values of its assets and times, and how the
    values of the operands of ``|`` and ``&`` are combined.
    """
    if "of" not in spec:
        return of_leaf(spec)
    operands = [
        evaluate_schedule(operand, of_leaf, of_any=of_any, of_all=of_all) for operand in spec["of"]
    ]
    return of_any(operands) if spec["kind"] == "any" else of_all(operands)


def time_terms(spec: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """Return the terms with ticks in a schedule's JSON, in order: times, and spans after the end
    of a window. A schedule by time only has one.
    """
    return [leaf for leaf in _leaves(spec) if is_time(leaf) or is_after(leaf)]


def is_time(spec: Mapping[str, Any] | None) -> bool:
    """Return whether a schedule's JSON is a single time."""
    return spec is not None and spec["kind"] in ("cron", "timedelta")


def is_after(spec: Mapping[str, Any]) -> bool:
    """Return whether a term of a schedule's JSON is a span after the end of a window."""
    return bool(spec["kind"] == "after")


def is_read_in_zone(spec: Mapping[str, Any] | None) -> bool:
    """Return whether some cron of a schedule's JSON is read in the time zone of the asset."""
    return any(term["kind"] == "cron" and not term.get("timezone") for term in time_terms(spec))


def has_ticks(schedule: Schedule) -> bool:
    """Return whether a declared schedule is a time or contains a time."""
    return isinstance(schedule, str | timedelta) or bool(time_terms(schedule_json(schedule)))


def plain_time(schedule: Schedule) -> tuple[Schedule, str | None]:
    """Return (schedule, time zone); a single time term becomes the equal text or timedelta.

    The time zone is the one of the term, or None.
    """
    if isinstance(schedule, Cron):
        return schedule.expression, schedule.timezone
    return (schedule.span, None) if isinstance(schedule, Every) else (schedule, None)


def schedule_text(spec: Mapping[str, Any] | None) -> str:
    """Return a schedule's JSON as people write it, such as ``@daily``, ``raw & (a | b)``.

    A timedelta alone is ``every 0:15:00``, and no schedule is ``by hand``.
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
    if spec["kind"] == "after":
        remake = ", remake=True" if spec.get("remake") else ""
        return f"After({timedelta(seconds=spec['seconds'])}{remake})"
    if spec["kind"] == "fresh":
        return f"Fresh({spec['name']}, within={timedelta(seconds=spec['seconds'])})"
    term_texts = (
        f"({_text(term)})" if _needs_parentheses(term) else _text(term) for term in spec["of"]
    )
    return (" | " if spec["kind"] == "any" else " & ").join(term_texts)


def _needs_parentheses(term: Mapping[str, Any]) -> bool:
    return term["kind"] in ("any", "all", "asset") and " " in _text(term)


def _leaves(spec: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    if spec is None:
        return
    if "of" not in spec:
        yield spec
    for term in spec.get("of", ()):
        yield from _leaves(term)


def cycle_from(name: str, after: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Return a path from an asset to itself along schedules, or None.

    A write of an asset in ``after[x]`` makes x due.
    """
    paths = [[name]]
    visited: set[str] = set()
    while paths:
        path = paths.pop()
        for next_name in after.get(path[-1], ()):
            if next_name == name:
                return [*path, name]
            if next_name not in visited:
                visited.add(next_name)
                paths.append([*path, next_name])
    return None


def _asset_hint(schedule: str | timedelta) -> str:
    """Return a hint for a text that may be the name of an asset; else an empty text.

    The name of an asset is a text like a cadence, but a schedule needs the asset itself.
    """
    is_name = isinstance(schedule, str) and schedule.isidentifier()
    return f"; to follow an asset, write schedule=Asset.ref({schedule!r})" if is_name else ""
