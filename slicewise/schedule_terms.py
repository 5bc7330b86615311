"""What schedules are joined of by ``|`` and ``&``: assets and times (AIP-75)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, NoReturn

from slicewise.cadence import read_cadence
from slicewise.errors import DefinitionError
from slicewise.zones import zone


class Schedulable:
    """What can stand in a schedule expression: joined by ``|`` (any of) and ``&`` (all of)."""

    def __or__(self, other: "Schedulable") -> "Schedulable":
        return _joined("any", self, other)

    def __ror__(self, other: object) -> "Schedulable":
        return _joined("any", other, self)

    def __and__(self, other: "Schedulable") -> "Schedulable":
        return _joined("all", self, other)

    def __rand__(self, other: object) -> "Schedulable":
        return _joined("all", other, self)

    def __bool__(self) -> NoReturn:
        # `a and b` would be b, and `a or b` would be a: nobody hears of the other one.
        raise DefinitionError(
            f"{type(self).__name__} is neither true nor false; in a schedule write & for 'and' and"
            " | for 'or'"
        )

    def schedule_json(self) -> dict[str, Any]:
        """Return the expression as JSON."""
        raise TypeError(f"{type(self).__name__} cannot stand in a schedule")

    def asset_names(self) -> Iterator[str]:
        """Return the names of the assets in the expression, as often as they stand there."""
        raise TypeError(f"{type(self).__name__} cannot stand in a schedule")


@dataclass(frozen=True)
class Cron(Schedulable):
    """The ticks of a preset or a five-field cron expression, as a term of a schedule.

    Assets and other terms are joined to it by ``|`` and ``&``: a partition is due at the first tick
    after its window for which the rest of the expression holds. The expression is read on the clock
    of ``timezone``; without one, on that of the asset's ``timezone=``, else of its partition, else
    of UTC. Raises DefinitionError.
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
        """``{"kind": "cron", "expression": ...}``, with ``"timezone"`` where there is one."""
        own_zone = {} if self.timezone is None else {"timezone": self.timezone}
        return {"kind": "cron", "expression": self.expression, **own_zone}

    def asset_names(self) -> Iterator[str]:
        """None: it is a time."""
        yield from ()


@dataclass(frozen=True)
class Every(Schedulable):
    """A tick whenever so much time has passed, as a term of a schedule.

    The span is a positive number of whole seconds, counted from 1970-01-01T00:00Z; where the term
    is the whole schedule, from ``start_date`` if there is one. Raises DefinitionError.
    """

    span: timedelta

    def __post_init__(self) -> None:
        span: object = self.span
        if not isinstance(span, timedelta):
            hint = _term(span) or "; write Every(timedelta(hours=6)), for example"
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
        """``{"kind": "timedelta", "seconds": ...}``."""
        return {"kind": "timedelta", "seconds": self.span // timedelta(seconds=1)}

    def asset_names(self) -> Iterator[str]:
        """None: it is a time."""
        yield from ()


@dataclass(frozen=True)
class ScheduleExpression(Schedulable):
    """Several assets and times, any or all of which must be met before the schedule is."""

    kind: Literal["any", "all"]
    parts: tuple[Schedulable, ...]

    def __repr__(self) -> str:
        texts = (
            f"({part!r})" if isinstance(part, ScheduleExpression) else repr(part)
            for part in self.parts
        )
        return (" | " if self.kind == "any" else " & ").join(texts)

    def schedule_json(self) -> dict[str, Any]:
        """``{"kind": "any" | "all", "of": [...]}``."""
        return {"kind": self.kind, "of": [part.schedule_json() for part in self.parts]}

    def asset_names(self) -> Iterator[str]:
        """Return the names of the assets in the expression, as often as they stand there."""
        for part in self.parts:
            yield from part.asset_names()


def _joined(kind: Literal["any", "all"], *parts: object) -> Schedulable:
    flat: list[Schedulable] = []
    for part in parts:
        if not isinstance(part, Schedulable):
            raise DefinitionError(f"a schedule joins assets, not {shown(part)}{_term(part)}")
        same = isinstance(part, ScheduleExpression) and part.kind == kind
        flat.extend(part.parts if same and isinstance(part, ScheduleExpression) else [part])
    # Said twice it is met no later.
    once: dict[str, Schedulable] = {}
    for part in flat:
        once.setdefault(json.dumps(part.schedule_json(), sort_keys=True), part)
    distinct = tuple(once.values())
    return distinct[0] if len(distinct) == 1 else ScheduleExpression(kind, distinct)


def _term(part: object) -> str:
    """What to write in place of a time that is joined with assets; empty for no time."""
    if not _is_time(part):
        return ""
    return f"; write {Cron(part)!r}" if isinstance(part, str) else f"; write {_every(part)}"


def cron_text(expression: str, timezone: str | None) -> str:
    """Return a term of cron as people write it."""
    written = "" if timezone is None else f", timezone={timezone!r}"
    return f"Cron({expression!r}{written})"


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


def shown(value: object) -> str:
    """Return how an error names what cannot stand in a schedule."""
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
