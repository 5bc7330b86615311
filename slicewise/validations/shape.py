"""Rules on a frame as a whole: columns, types, number of rows, and freshness."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from slicewise import spark
from slicewise.validations.rule import (
    CannotEvaluateError,
    Column,
    Evaluation,
    FrameFacts,
    Rule,
    count,
    names_text,
)

__all__ = ["FreshWithin", "HasColumns", "HasTypes", "RowCount"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class HasColumns(Rule):
    """A rule that the frame has some columns; other columns are allowed."""

    columns: tuple[str, ...]
    kind: ClassVar[str] = "has_columns"

    def name(self) -> str:
        return f"{self.kind}({', '.join(self.columns)})"

    def description(self) -> str:
        return f"The data has the columns {names_text(self.columns)}."

    def to_json(self) -> dict[str, Any]:
        return {"columns": list(self.columns)}

    def evaluate(self, seen: Mapping[str, Any], facts: FrameFacts) -> Evaluation:
        missing = [name for name in self.columns if facts.find(name) is None]
        if missing:
            message = f"The data does not have the columns {names_text(missing)}."
            return Evaluation(False, message, {"missing": missing})
        return Evaluation(True, "The data has all columns.", {"missing": []})


@dataclass(frozen=True)
class HasTypes(Rule):
    """A rule that columns have types, in Spark's spelling; nullability is not compared."""

    types: tuple[tuple[str, str], ...]
    kind: ClassVar[str] = "has_types"

    def name(self) -> str:
        return f"{self.kind}({', '.join(name for name, _ in self.types)})"

    def description(self) -> str:
        listed = ", ".join(f"{name!r} is of type {type_}" for name, type_ in self.types)
        return f"The column {listed}."

    def to_json(self) -> dict[str, Any]:
        return {"types": dict(self.types)}

    def evaluate(self, seen: Mapping[str, Any], facts: FrameFacts) -> Evaluation:
        columns = {name: facts.find(name) for name, _ in self.types}
        types = {name: column and column.type.simpleString() for name, column in columns.items()}
        wrong = {
            name: {"expected": type_, "found": types[name]}
            for name, type_ in self.types
            if types[name] != type_
        }
        if not wrong:
            return Evaluation(True, "All columns are of their types.", {"wrong": {}})
        sentences = [
            f"{name!r} is {problem['found'] or 'missing'} instead of {problem['expected']}"
            for name, problem in wrong.items()
        ]
        return Evaluation(False, f"The column {'; '.join(sentences)}.", {"wrong": wrong})


@dataclass(frozen=True)
class RowCount(Rule):
    """A rule on the number of rows, both bounds included."""

    least: int | None
    most: int | None
    kind: ClassVar[str] = "row_count"

    def description(self) -> str:
        return f"The data has {self._bounds()}."

    def to_json(self) -> dict[str, Any]:
        return {"min": self.least, "max": self.most}

    def measures(self, facts: FrameFacts) -> dict[str, Column]:
        return {"rows": spark.functions().count(spark.functions().lit(1))}

    def evaluate(self, seen: Mapping[str, Any], facts: FrameFacts) -> Evaluation:
        rows = seen["rows"]
        too_few = self.least is not None and rows < self.least
        too_many = self.most is not None and rows > self.most
        passed = not too_few and not too_many
        end = "." if passed else f" instead of {self._bounds()}."
        return Evaluation(passed, f"The data has {count(rows)}{end}", {"rows": rows})

    def _bounds(self) -> str:
        if self.most is None:
            return f"at least {count(self.least or 0)}"
        if self.least is None:
            return f"at most {count(self.most)}"
        is_exact = self.least == self.most
        return count(self.most) if is_exact else f"{self.least:,} to {count(self.most)}"


@dataclass(frozen=True)
class FreshWithin(Rule):
    """A rule on the age of the newest value of a column, or of the materialization of the data."""

    span: timedelta
    column: str | None
    kind: ClassVar[str] = "fresh_within"

    @property
    def needs_data(self) -> bool:
        """Whether the rule reads the newest value of a column."""
        return self.column is not None

    def name(self) -> str:
        return self.kind if self.column is None else f"{self.kind}({self.column})"

    def description(self) -> str:
        subject = (
            f"The newest {self.column!r}" if self.column else "The materialization of the data"
        )
        return f"{subject} is at most {self.span} ago."

    def to_json(self) -> dict[str, Any]:
        return {"seconds": self.span.total_seconds(), "column": self.column}

    def measures(self, facts: FrameFacts) -> dict[str, Column]:
        if self.column is None:
            return {}
        functions, column = spark.functions(), facts.get(self.column)
        newest, kind = functions.max(column.column), column.type.typeName()
        if kind == "timestamp":
            return {"micros": functions.unix_micros(newest)}
        if kind == "timestamp_ntz":
            # The difference of two timestamps without zone: a session's zone has no effect.
            start = functions.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
            return {"micros": functions.timestamp_diff("MICROSECOND", start, newest)}
        if kind == "date":
            return {"days": functions.unix_date(newest)}
        raise CannotEvaluateError(
            f"{self.column!r} is of type {column.type.simpleString()};"
            " fresh_within needs a timestamp or date"
        )

    def evaluate(self, seen: Mapping[str, Any], facts: FrameFacts) -> Evaluation:
        if self.column is None:
            if facts.materialized_at is None:
                raise CannotEvaluateError("the time of materialization is not known")
            return self._evaluation(
                "The data was materialized at", facts.materialized_at, facts.now
            )
        newest = _moment(seen)
        if newest is None:
            message = f"The column {self.column!r} has no value."
            return Evaluation(False, message, {"newest": None, "age_seconds": None})
        return self._evaluation(f"The newest {self.column!r} is", newest, facts.now)

    def _evaluation(self, subject: str, newest: datetime, now: datetime) -> Evaluation:
        age = now - newest
        passed = age <= self.span
        observed = {"newest": newest.isoformat(), "age_seconds": age.total_seconds()}
        shown = timedelta(seconds=round(age.total_seconds()))
        end = "." if passed else f", {shown} ago instead of at most {self.span}."
        return Evaluation(passed, f"{subject} {newest:%Y-%m-%d %H:%M:%S} UTC{end}", observed)


def _moment(seen: Mapping[str, Any]) -> datetime | None:
    if seen.get("days") is not None:
        return _EPOCH + timedelta(days=seen["days"])
    if seen.get("micros") is not None:
        return _EPOCH + timedelta(microseconds=seen["micros"])
    return None
