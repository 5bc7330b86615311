"""What every rule of a validation can do, and what it can ask of the frame."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from typing import Any, ClassVar

from slicewise import spark
from slicewise.errors import DefinitionError

__all__ = ["CannotEvaluateError", "Facts", "Found", "Rule", "Verdict", "count", "names_text"]

Column = Any  # of pyspark, which is not imported for the sake of a type
Frame = Any

_SHOWN_COLUMNS = 20


class CannotEvaluateError(Exception):
    """A frame of which a rule cannot be asked; the text is a sentence for people."""


@dataclass(frozen=True)
class Found:
    """A column of the frame: the expression, and its type as a DataType."""

    column: Column
    type: Any


@dataclass(frozen=True)
class Verdict:
    """What a rule says of a frame."""

    passed: bool
    message: str
    observed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Facts:
    """The frame, and the moments against which freshness is judged."""

    frame: Frame
    now: datetime
    materialized_at: datetime | None

    @cached_property
    def fields(self) -> list[Any]:
        """The frame's columns, as StructFields."""
        return list(self.frame.schema.fields)

    def check_frame(self) -> None:
        """Raise CannotEvaluateError for what is no frame of Spark."""
        if not spark.is_frame(self.frame):
            raise CannotEvaluateError(
                f"it needs a DataFrame of Spark, not {type(self.frame).__name__}"
            )

    def find(self, name: str) -> Found | None:
        """Return a column, or a field inside structs (``"address.city"``); None where there
        is none.
        """
        same = [found for found in self.fields if found.name == name]
        if len(same) > 1:
            raise CannotEvaluateError(f"the frame has {len(same)} columns {name!r}")
        functions = spark.functions()
        if same:
            quoted = name.replace("`", "``")
            return Found(functions.col(f"`{quoted}`"), same[0].dataType)
        first, dot, rest = name.partition(".")
        outer = self.find(first) if dot else None
        return None if outer is None else _inside(outer, rest.split("."))

    def get(self, name: str) -> Found:
        """The column; raises CannotEvaluateError, naming what is there, where there is none."""
        found = self.find(name)
        if found is None:
            raise CannotEvaluateError(f"there is no column {name!r}{self._hint(name)}")
        return found

    def _hint(self, name: str) -> str:
        names = [found.name for found in self.fields]
        near = get_close_matches(name, names, n=1)
        if near:
            return f"; did you mean {near[0]!r}?"
        more = ", …" if len(names) > _SHOWN_COLUMNS else ""
        return f"; there are {names_text(names[:_SHOWN_COLUMNS])}{more}" if names else ""


def _inside(outer: Found, path: list[str]) -> Found | None:
    found = outer
    for name in path:
        same = [f for f in getattr(found.type, "fields", []) if f.name == name]
        if len(same) != 1:
            return None
        found = Found(found.column.getField(name), same[0].dataType)
    return found


@dataclass(frozen=True)
class Rule:
    """One thing that data can be asked. Rules are compared by what they say."""

    kind: ClassVar[str]

    @property
    def needs_spark(self) -> bool:
        """Whether it asks a DataFrame of Spark; else the frame may be whatever stands in for it."""
        return self.needs_data

    @property
    def needs_data(self) -> bool:
        """Whether it asks the data; else what is known of the data is enough."""
        return True

    def name(self) -> str:
        """What the validation is called unless people name it."""
        return self.kind

    def description(self) -> str:
        """Return a sentence of what is expected."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Return the rule's arguments, as JSON."""
        raise NotImplementedError

    def source(self, facts: Facts) -> Frame:
        """What `measures` are taken of: the frame itself, or one derived from it."""
        return facts.frame

    def measures(self, facts: Facts) -> dict[str, Column]:
        """Return aggregates that `judge` needs, by name; none for what the schema says."""
        return {}

    def judge(self, seen: Mapping[str, Any], facts: Facts) -> Verdict:
        """Return the verdict on the measured values."""
        raise NotImplementedError


def count(number: int, noun: str = "row") -> str:
    """``"1 row"``, ``"1,200 rows"``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def names_text(names: Any) -> str:
    """``"'a', 'b'"``."""
    return ", ".join(repr(name) for name in names)


def column_names(kind: str, columns: tuple[object, ...]) -> tuple[str, ...]:
    """Return the names of columns, given as texts or as an asset's columns.

    Raises DefinitionError when there is none, or one is given twice or is neither.
    """
    if not columns:
        raise DefinitionError(f"{kind} names at least one column")
    names = tuple(column_name(kind, column) for column in columns)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DefinitionError(f"{kind} names the column {names_text(twice)} twice")
    return names


def column_name(kind: str, column: object) -> str:
    """Return the name of one column; as `column_names`."""
    name = column if isinstance(column, str) else getattr(column, "name", None)
    if isinstance(name, str) and name.strip():
        return name
    if isinstance(column, list | tuple | set | frozenset):
        raise DefinitionError(f"{kind} takes columns one by one: {kind}({names_text(column)})")
    raise DefinitionError(f"{kind} takes names of columns, not {column!r}")
