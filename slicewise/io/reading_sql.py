"""The statements by which Spark reads tables of PostgreSQL. JDBC takes each as one text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Texts = Mapping[str, str]
"""The texts of the dimensions' columns in one partition."""


@dataclass(frozen=True)
class Part:
    """Those rows of a table that are in one of some partitions."""

    table: str
    """As SQL names it."""
    columns: Mapping[str, str]
    """The names of the table's columns, and their types."""
    within: Sequence[Texts]


def select_within(table: str, partitions: Sequence[Texts]) -> str:
    """Return all columns of a table's rows in these partitions."""
    return f"SELECT * FROM {table}{_condition(partitions)}"  # noqa: S608 -- all of it is quoted


def select_together(parts: Sequence[Part]) -> str:
    """Return the rows of several tables, each value in the column of its name.

    What a table has no column for is null, as it is where all of them are moved into one.
    """
    columns: dict[str, str] = {}
    for part in parts:
        for name, kind in part.columns.items():
            columns.setdefault(name, kind)
    return " UNION ALL ".join(_select(part, columns) for part in parts)


def _select(part: Part, columns: Mapping[str, str]) -> str:
    named = ", ".join(
        quoted(name) if name in part.columns else f"NULL::{kind} AS {quoted(name)}"
        for name, kind in columns.items()
    )
    return f"SELECT {named} FROM {part.table}{_condition(part.within)}"  # noqa: S608 -- as above


def _condition(partitions: Sequence[Texts]) -> str:
    """Empty for what is not partitioned."""
    names = ", ".join(map(quoted, partitions[0]))
    if not names:
        return ""
    rows = ", ".join(f"({', '.join(map(literal, texts.values()))})" for texts in partitions)
    return f" WHERE ({names}) IN (VALUES {rows})"


def quoted(name: str) -> str:
    """Return an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text of SQL."""
    return "'" + text.replace("'", "''") + "'"
