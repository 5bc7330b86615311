"""The base class of the rules of validations, and the facts about a frame that rules read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from typing import Any, ClassVar

from slicewise import spark
from slicewise.errors import DefinitionError

__all__ = [
    "CannotEvaluateError",
    "Evaluation",
    "FrameColumn",
    "FrameFacts",
    "Rule",
    "count",
    "names_text",
]

Column = Any  # of pyspark, which is not imported only for a type
Frame = Any

_SHOWN_COLUMNS = 20


class CannotEvaluateError(Exception):
    """A rule cannot be evaluated for a frame; the text is a sentence for people."""


@dataclass(frozen=True)
class FrameColumn:
    """A column of the frame: the expression, and its type as a DataType."""

    column: Column
    type: Any


@dataclass(frozen=True)
class Evaluation:
    """The result of evaluating a rule for a frame."""

    passed: bool
    message: str
    observed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FrameFacts:
    """The frame, and the times against which freshness is evaluated."""

    frame: Frame
    now: datetime
    materialized_at: datetime | None

    @cached_property
    def fields(self) -> list[Any]:
        """The columns of the frame, as StructFields."""
        return list(self.frame.schema.fields)

    def check_frame(self) -> None:
        """Raise CannotEvaluateError if the frame is not a Spark DataFrame."""
        if not spark.is_frame(self.frame):
            raise CannotEvaluateError(
                f"a validation needs a DataFrame of Spark, not {type(self.frame).__name__}"
            )

    def find(self, name: str) -> FrameColumn | None:
        """Return a column, or a field inside structs (``"address.city"``); None if not found."""
        matching_fields = [field for field in self.fields if field.name == name]
        if len(matching_fields) > 1:
            raise CannotEvaluateError(f"the frame has {len(matching_fields)} columns {name!r}")
        functions = spark.functions()
        if matching_fields:
            quoted = name.replace("`", "``")
            return FrameColumn(functions.col(f"`{quoted}`"), matching_fields[0].dataType)
        first, dot, rest = name.partition(".")
        outer = self.find(first) if dot else None
        return None if outer is None else _inside(outer, rest.split("."))

    def get(self, name: str) -> FrameColumn:
        """Return the column; raise CannotEvaluateError with the existing names if there is none."""
        column = self.find(name)
        if column is None:
            raise CannotEvaluateError(f"the data has no column {name!r}{self._hint(name)}")
        return column

    def _hint(self, name: str) -> str:
        names = [field.name for field in self.fields]
        near = get_close_matches(name, names, n=1)
        if near:
            return f"; did you mean {near[0]!r}?"
        more = ", …" if len(names) > _SHOWN_COLUMNS else ""
        return f"; the columns are {names_text(names[:_SHOWN_COLUMNS])}{more}" if names else ""


def _inside(outer: FrameColumn, path: list[str]) -> FrameColumn | None:
    column = outer
    for name in path:
        matching_fields = [f for f in getattr(column.type, "fields", []) if f.name == name]
        if len(matching_fields) != 1:
            return None
        column = FrameColumn(column.column.getField(name), matching_fields[0].dataType)
    return column


@dataclass(frozen=True)
class Rule:
    """A condition on data. Rules are compared by their arguments."""

    kind: ClassVar[str]

    @property
    def needs_spark(self) -> bool:
        """Whether the rule needs a Spark DataFrame; else the frame may be any stand-in."""
        return self.needs_data

    @property
    def needs_data(self) -> bool:
        """Whether the rule reads the data; else the known facts about the data are enough."""
        return True

    def name(self) -> str:
        """Return the name of the validation unless people give another name."""
        return self.kind

    def description(self) -> str:
        """Return a sentence that describes the condition."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Return the rule's arguments, as JSON."""
        raise NotImplementedError

    def source(self, facts: FrameFacts) -> Frame:
        """Return the source of `measures`: the frame itself, or a frame derived from it."""
        return facts.frame

    def measures(self, facts: FrameFacts) -> dict[str, Column]:
        """Return the aggregates that `evaluate` needs, by name; none if the schema is enough."""
        return {}

    def evaluate(self, seen: Mapping[str, Any], facts: FrameFacts) -> Evaluation:
        """Return the evaluation of the measured values."""
        raise NotImplementedError


def count(number: int, noun: str = "row") -> str:
    """Return a number with a noun: ``"1 row"``, ``"1,200 rows"``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def names_text(names: Any) -> str:
    """Return quoted names, joined by commas: ``"'a', 'b'"``."""
    return ", ".join(repr(name) for name in names)


def column_names(kind: str, columns: tuple[object, ...]) -> tuple[str, ...]:
    """Return the names of columns, given as texts or as an asset's columns.

    Raises DefinitionError when there is no column, a column is given twice, or an argument is
    neither.
    """
    if not columns:
        raise DefinitionError(f"{kind} names at least one column")
    names = tuple(column_name(kind, column) for column in columns)
    repeated_names = sorted({name for name in names if names.count(name) > 1})
    if repeated_names:
        raise DefinitionError(f"{kind} names the column {names_text(repeated_names)} twice")
    return names


def column_name(kind: str, column: object) -> str:
    """Return the name of one column; like `column_names`."""
    name = column if isinstance(column, str) else getattr(column, "name", None)
    if isinstance(name, str) and name.strip():
        return name
    if isinstance(column, list | tuple | set | frozenset):
        raise DefinitionError(f"{kind} takes columns one by one: {kind}({names_text(column)})")
    raise DefinitionError(f"{kind} takes names of columns, not {column!r}")
