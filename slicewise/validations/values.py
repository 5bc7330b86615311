"""Rules on the values of columns. All rules but `NotNull` ignore nulls."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import Any, ClassVar

from slicewise import spark
from slicewise.validations.rule import (
    CannotEvaluateError,
    Column,
    Evaluation,
    Frame,
    FrameFacts,
    Rule,
    count,
    names_text,
)

__all__ = ["AcceptedValues", "Matches", "NotNull", "Unique", "family"]

_EXAMPLES = 5
_EXAMPLE_LENGTH = 100
# Examples are the least value of each of these groups: few distinct values by one pass over data.
_EXAMPLE_GROUPS = 8

_NUMBERS = {"byte", "short", "integer", "long", "float", "double", "decimal"}
_TEXTS = {"string", "varchar", "char"}
_TYPES = {
    "truth value": {"boolean"},
    "number": _NUMBERS,
    "text": _TEXTS,
    "datetime with a time zone": {"timestamp"},
    "datetime without a time zone": {"timestamp_ntz"},
    "date": {"date"},
}


def family(value: object) -> str | None:
    """Return the kind of a value, for the comparison with a column; None for other types."""
    if isinstance(value, bool):
        return "truth value"
    if isinstance(value, int | float | Decimal):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, datetime):
        return f"datetime {'without' if value.tzinfo is None else 'with'} a time zone"
    return "date" if isinstance(value, date) else None


@dataclass(frozen=True)
class NotNull(Rule):
    """A rule that columns always hold a value. NaN is a value."""

    columns: tuple[str, ...]
    kind: ClassVar[str] = "not_null"

    def name(self) -> str:
        return f"{self.kind}({', '.join(self.columns)})"

    def description(self) -> str:
        return f"No row has a null in {names_text(self.columns)}."

    def to_json(self) -> dict[str, Any]:
        return {"columns": list(self.columns)}

    def measures(self, facts: FrameFacts) -> dict[str, Column]:
        functions = spark.functions()
        nulls = [facts.get(name).column.isNull() for name in self.columns]
        nulls_by_position = {
            str(position): functions.count_if(null) for position, null in enumerate(nulls)
        }
        return {**_rows(), "failing": functions.count_if(reduce(or_, nulls)), **nulls_by_position}

    def evaluate(self, seen: Mapping[str, Any], facts: FrameFacts) -> Evaluation:
        nulls = {name: seen[str(position)] for position, name in enumerate(self.columns)}
        observed = {"rows": seen["rows"], "failing": seen["failing"], "nulls": nulls}
        if not seen["failing"]:
            return Evaluation(True, f"{count(seen['rows'])}, no null.", observed)
        where = ", ".join(f"{number:,} in {name!r}" for name, number in nulls.items() if number)
        return Evaluation(False, f"{_failing_share(seen)} hold a null: {where}.", observed)


@dataclass(frozen=True)
class Unique(Rule):
    """A rule that the values of columns, taken together, occur once. Rows with a null are not
    compared.
    """

    columns: tuple[str, ...]
    kind: ClassVar[str] = "unique"

    def name(self) -> str:
        return f"{self.kind}({', '.join(self.columns)})"

    def description(self) -> str:
        return f"No two rows are equal in {names_text(self.columns)}."

    def to_json(self) -> dict[str, Any]:
        return {"columns": list(self.columns)}

    def source(self, facts: FrameFacts) -> Frame:
        """Return the values that occur more than once, and the number of rows of each."""
        functions = spark.functions()
        columns = [facts.get(name).column for name in self.columns]
        # `dropna` would take NaN for a null.
        complete_rows = facts.frame.where(reduce(and_, (column.isNotNull() for column in columns)))
        keys = [column.alias(f"c{position}") for position, column in enumerate(columns)]
        grouped = complete_rows.groupBy(*keys).agg(functions.count("*").alias("times"))
        return grouped.where("times > 1")

    def measures(self, facts: FrameFacts) -> dict[str, Column]:
        functions = spark.functions()
        key_texts = [functions.col(f"c{i}").cast("string") for i in range(len(self.columns))]
        text = functions.substring(functions.concat_ws(", ", *key_texts), 1, _EXAMPLE_LENGTH)
        examples = functions.max_by(text, functions.col("times"), _EXAMPLES)
        return {
            "values": functions.count("*"),
            "failing": functions.coalesce(functions.sum("times"), functions.lit(0)),
            "examples": examples,
        }

    def evaluate(self, seen: Mapping[str, Any], facts: FrameFacts) -> Evaluation:
        examples = sorted(seen["examples"] or [])
        observed = {"failing": seen["failing"], "values": seen["values"], "examples": examples}
        if not seen["failing"]:
            return Evaluation(True, "No value occurs twice.", observed)
        shown = f"{count(seen['failing'])} share {count(seen['values'], 'value')}"
        message = f"{shown} of {names_text(self.columns)}, such as {names_text(examples)}."
        return Evaluation(False, message, observed)


@dataclass(frozen=True)
class AcceptedValues(Rule):
    """A rule that a column holds no other values than the given values."""

    column: str
    values: tuple[Any, ...]
    kind: ClassVar[str] = "accepted_values"

    def name(self) -> str:
        return f"{self.kind}({self.column})"

    def description(self) -> str:
        shown = ", ".join(str(value) for value in self.to_json()["values"])
        return f"The column {self.column!r} holds one of: {shown}."

    def to_json(self) -> dict[str, Any]:
        plain = [v if isinstance(v, str | int | float) else str(v) for v in self.values]
        return {"column": self.column, "values": plain}

    def measures(self, facts: FrameFacts) -> dict[str, Column]:
        column, kind = facts.get(self.column), family(self.values[0])
        # Without this check Spark would cast the column, and fail at a text that is no number.
        if kind is None or column.type.typeName() not in _TYPES[kind]:
            raise CannotEvaluateError(
                f"{self.column!r} is of type {column.type.simpleString()}, which is compared with"
                f" no {kind}"
            )
        return _failing(column.column, ~column.column.isin(*map(_literal, self.values)))

    def evaluate(self, seen: Mapping[str, Any], facts: FrameFacts) -> Evaluation:
        return _evaluation(seen, f"another value in {self.column!r}")


@dataclass(frozen=True)
class Matches(Rule):
    """A rule that each text of a column matches a Java regular expression from end to end."""

    column: str
    regex: str
    kind: ClassVar[str] = "matches"

    def name(self) -> str:
        return f"{self.kind}({self.column})"

    def description(self) -> str:
        return f"Every {self.column!r} matches {json.dumps(self.regex, ensure_ascii=False)}."

    def to_json(self) -> dict[str, Any]:
        return {"column": self.column, "regex": self.regex}

    def measures(self, facts: FrameFacts) -> dict[str, Column]:
        column = facts.get(self.column)
        if column.type.typeName() not in _TEXTS:
            raise CannotEvaluateError(
                f"{self.column!r} is of type {column.type.simpleString()}; matches needs texts"
            )
        # Not "^" and "$", which also match at the end of a line.
        return _failing(column.column, ~column.column.rlike(rf"\A(?:{self.regex})\z"))

    def evaluate(self, seen: Mapping[str, Any], facts: FrameFacts) -> Evaluation:
        return _evaluation(seen, f"a text in {self.column!r} that does not match")


def _literal(value: object) -> object:
    """Return the value for Spark, which would read a datetime without zone in a session's zone."""
    if not isinstance(value, datetime) or value.tzinfo is not None:
        return value
    return spark.functions().lit(value.isoformat(" ")).cast("timestamp_ntz")


def _rows() -> dict[str, Column]:
    return {"rows": spark.functions().count(spark.functions().lit(1))}


def _failing(column: Column, fails: Column) -> dict[str, Column]:
    functions = spark.functions()
    text = functions.substring(column.cast("string"), 1, _EXAMPLE_LENGTH)
    group = functions.pmod(functions.xxhash64(text), functions.lit(_EXAMPLE_GROUPS))
    examples = {
        f"example{number}": functions.min(functions.when(fails & (group == number), text))
        for number in range(_EXAMPLE_GROUPS)
    }
    return {**_rows(), "failing": functions.count_if(fails), **examples}


def _evaluation(measured_values: Mapping[str, Any], problem: str) -> Evaluation:
    examples = _sorted(measured_values[f"example{number}"] for number in range(_EXAMPLE_GROUPS))[
        :_EXAMPLES
    ]
    observed = {
        "rows": measured_values["rows"],
        "failing": measured_values["failing"],
        "examples": examples,
    }
    if not measured_values["failing"]:
        return Evaluation(True, f"{count(measured_values['rows'])}, all as expected.", observed)
    message = f"{_failing_share(measured_values)} hold {problem}, such as {names_text(examples)}."
    return Evaluation(False, message, observed)


def _sorted(examples: Iterable[str | None]) -> list[str]:
    return sorted(example for example in examples if example is not None)


def _failing_share(measured_values: Mapping[str, Any]) -> str:
    return f"{measured_values['failing']:,} of {count(measured_values['rows'])}"
