"""Statements by which Spark reads tables of PostgreSQL. JDBC takes each as one text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Texts = Mapping[str, str]
"""The texts of the dimensions' columns in one partition."""


@dataclass(frozen=True)
class TablePartitions:
    """The rows of a table that are in one of some partitions."""

    table: str
    """The name of the table in SQL."""
    columns: Mapping[str, str]
    """The names of the table's columns, and their types."""
    within: Sequence[Texts]


def select_within(table: str, partitions: Sequence[Texts]) -> str:
    """Return the statement that selects a table's rows in these partitions."""
    return f"SELECT * FROM {table}{_condition(partitions)}"  # noqa: S608 -- all of it is quoted


def select_from_tables(tables: Sequence[TablePartitions]) -> str:
    """Return the statement that selects the rows of several tables, each value
    in the column of its name.

    A column that a table lacks is null, as it is when all rows are moved into one table.
    """
    columns: dict[str, str] = {}
    for table_partitions in tables:
        for name, kind in table_partitions.columns.items():
            columns.setdefault(name, kind)
    return " UNION ALL ".join(_select(table_partitions, columns) for table_partitions in tables)


def _select(table_partitions: TablePartitions, columns: Mapping[str, str]) -> str:
    named = ", ".join(
        quoted(name) if name in table_partitions.columns else f"NULL::{kind} AS {quoted(name)}"
        for name, kind in columns.items()
    )
    return f"SELECT {named} FROM {table_partitions.table}{_condition(table_partitions.within)}"  # noqa: S608 -- as above


def _condition(partitions: Sequence[Texts]) -> str:
    """Return the WHERE clause for these partitions; empty for data without partitions."""
    names = ", ".join(map(quoted, partitions[0]))
    if not names:
        return ""
    rows = ", ".join(f"({', '.join(map(literal, texts.values()))})" for texts in partitions)
    return f" WHERE ({names}) IN (VALUES {rows})"


def quoted(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
