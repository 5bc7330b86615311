"""The terms of schedules, which ``|`` and ``&`` combine: assets and times (AIP-75)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, NoReturn

from slicewise.calendar.cadence import read_cadence
from slicewise.calendar.zones import zone
from slicewise.errors import DefinitionError


class Schedulable:
    """A term of a schedule expression, combined by ``|`` (any of) and ``&`` (all of)."""

    def __or__(self, other: "Schedulable") -> "Schedulable":
        return _joined("any", self, other)

    def __ror__(self, other: object) -> "Schedulable":
        return _joined("any", other, self)

    def __and__(self, other: "Schedulable") -> "Schedulable":
        return _joined("all", self, other)

    def __rand__(self, other: object) -> "Schedulable":
        return _joined("all", other, self)

    def __bool__(self) -> NoReturn:
        # `a and b` would be b, and `a or b` would be a: the other term would be lost silently.
        raise DefinitionError(
            f"{type(self).__name__} is neither true nor false; in a schedule write & for 'and' and"
            " | for 'or'"
        )

    def schedule_json(self) -> dict[str, Any]:
        """Return the expression as JSON."""
        raise TypeError(f"{type(self).__name__} cannot be part of a schedule")

    def asset_names(self) -> Iterator[str]:
        """Return the names of the assets in the expression, with repetitions."""
        raise TypeError(f"{type(self).__name__} cannot be part of a schedule")


@dataclass(frozen=True)
class Cron(Schedulable):
    """The ticks of a preset or a five-field cron expression, as a term of a schedule.

    Assets and other terms are combined with the ticks by ``|`` and ``&``: a partition is due at the
    first tick after its window for which the rest of the expression holds. The expression is read
    on the clock of ``timezone``; without one, on the clock of the asset's ``timezone=``, else of
    the asset's partition, else of UTC. Raises DefinitionError.
    """

    expression: str
    timezone: str | None = None

    def __post_init__(self) -> None:
        expression: object = self.expression
        timezone: object = self.timezone
        if not isinstance(expression, str):
            hint = "; write Every(...)" if isinstance(expression, timedelta) else ""
            raise DefinitionError(
                f"Cron takes a preset or a cron expression, not {expression!r}{hint}"
            )
        if timezone is not None and not isinstance(timezone, str):
            raise DefinitionError(f"timezone is a name such as 'Europe/Berlin', not {timezone!r}")
        try:
            object.__setattr__(self, "expression", str(read_cadence(self.expression)))
            if self.timezone is not None:
                object.__setattr__(self, "timezone", zone(self.timezone).name)
        except DefinitionError as error:
            raise DefinitionError(f"{self!r}: {error}") from None

    def __repr__(self) -> str:
        return cron_text(self.expression, self.timezone)

    def schedule_json(self) -> dict[str, Any]:
        """Return ``{"kind": "cron", "expression": ...}``, with ``"timezone"`` if there is one."""
        own_zone = {} if self.timezone is None else {"timezone": self.timezone}
        return {"kind": "cron", "expression": self.expression, **own_zone}

    def asset_names(self) -> Iterator[str]:
        """Return no names, because the term is a time."""
        yield from ()


@dataclass(frozen=True)
class Every(Schedulable):
    """A tick after each span of time, as a term of a schedule.

    The span is a positive number of whole seconds, counted from 1970-01-01T00:00Z; if the term is
    the whole schedule, from ``start_date`` if there is one. Raises DefinitionError.
    """

    span: timedelta

    def __post_init__(self) -> None:
        span: object = self.span
        if not isinstance(span, timedelta):
            hint = _term_hint(span) or "; write Every(timedelta(hours=6)), for example"
            if type(span) is int:
                hint = f"; write Every(timedelta(seconds={span}))"
            raise DefinitionError(f"Every takes a timedelta, not {span!r}{hint}")
        try:
            read_cadence(self.span)
        except DefinitionError as error:
            raise DefinitionError(f"{self!r}: {error}") from None

    def __repr__(self) -> str:
        return _every(self.span)

    def schedule_json(self) -> dict[str, Any]:
        """Return ``{"kind": "timedelta", "seconds": ...}``."""
        return {"kind": "timedelta", "seconds": self.span // timedelta(seconds=1)}

    def asset_names(self) -> Iterator[str]:
        """Return no names, because the term is a time."""
        yield from ()


@dataclass(frozen=True)
class ScheduleExpression(Schedulable):
    """Several assets and times, any or all of which must be met before the schedule is met."""

    kind: Literal["any", "all"]
    operands: tuple[Schedulable, ...]

    def __repr__(self) -> str:
        texts = (
            f"({term!r})" if isinstance(term, ScheduleExpression) else repr(term)
            for term in self.operands
        )
        return (" | " if self.kind == "any" else " & ").join(texts)

    def schedule_json(self) -> dict[str, Any]:
        """Return ``{"kind": "any" | "all", "of": [...]}``."""
        return {"kind": self.kind, "of": [term.schedule_json() for term in self.operands]}

    def asset_names(self) -> Iterator[str]:
        """Return the names of the assets in the expression, with repetitions."""
        for term in self.operands:
            yield from term.asset_names()


def _joined(kind: Literal["any", "all"], *joined_terms: object) -> Schedulable:
    flat: list[Schedulable] = []
    for term in joined_terms:
        if not isinstance(term, Schedulable):
            raise DefinitionError(
                f"a schedule joins assets, not {schedule_value_text(term)}{_term_hint(term)}"
            )
        is_same_kind = isinstance(term, ScheduleExpression) and term.kind == kind
        flat.extend(
            term.operands if is_same_kind and isinstance(term, ScheduleExpression) else [term]
        )
    # A repeated term changes nothing.
    term_by_json: dict[str, Schedulable] = {}
    for term in flat:
        term_by_json.setdefault(json.dumps(term.schedule_json(), sort_keys=True), term)
    distinct = tuple(term_by_json.values())
    return distinct[0] if len(distinct) == 1 else ScheduleExpression(kind, distinct)


def _term_hint(value: object) -> str:
    """Return a hint with the term for a time that is combined with assets; else an empty text."""
    if not _is_time(value):
        return ""
    return f"; write {Cron(value)!r}" if isinstance(value, str) else f"; write {_every(value)}"


def cron_text(expression: str, timezone: str | None) -> str:
    """Return a cron term as people write it."""
    timezone_text = "" if timezone is None else f", timezone={timezone!r}"
    return f"Cron({expression!r}{timezone_text})"


def _every(span: object) -> str:
    return f"Every({span!r})".replace("datetime.", "")


def _is_time(value: object) -> bool:
    if not isinstance(value, str | timedelta):
        return False
    try:
        read_cadence(value)
    except DefinitionError:
        return False
    return True


def schedule_value_text(value: object) -> str:
    """Return the text by which an error names a value that cannot be in a schedule."""
    if _is_time(value):
        return f"the time {value!r}"
    if isinstance(value, str):
        return f"the text {value!r}; write Asset.ref({value!r})"
    outlets = getattr(value, "outlets", None)
    if outlets:
        return f"a multi-asset; write one of its outlets, such as {outlets[0]!r}"
    if isinstance(value, type) and issubclass(value, Schedulable):
        return f"the class {value.__name__}; write {value.__name__}(...)"
    return type(value).__name__
