"""Rows that PostgreSQL reads for a statement."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection

_PRIMARY_KEY = """
SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass AND indisprimary
"""


def rows_read(statement: str, parameters: Any = None, *, table: str = "") -> int:
    """Count the rows that the scans of a statement went through, with the rows filtered out: of all
    tables, or of one.

    Each table that the statement names is written anew, and its statistics are brought up to
    date: otherwise the pages of rows that an earlier test deleted would decide the plan. A table
    is read as a whole only where no index serves.
    """
    _write_anew(_tables(statement))
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        try:
            nodes = nodes_of(statement, parameters)
        finally:
            cursor.execute("RESET enable_seqscan")
    return sum(
        int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
        for node in nodes
        if "Relation Name" in node and table in ("", node["Relation Name"])
    )


def nodes_of(statement: str, parameters: Any = None) -> list[dict[str, Any]]:
    """Return the steps of a statement's execution, as PostgreSQL explains the steps."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)
        answer = cursor.fetchone()[0]
    plan = json.loads(answer) if isinstance(answer, str) else answer
    return list(_nodes(plan[0]["Plan"]))


def _write_anew(tables: Sequence[str]) -> None:
    """Leave no page of deleted rows in the tables and their indexes, as VACUUM FULL does, which no
    transaction may contain.
    """
    with connection.cursor() as cursor:
        # A table whose new rows await the check of a foreign key cannot be written anew.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in tables:
            cursor.execute(_PRIMARY_KEY, [table])
            cursor.execute(f"CLUSTER {table} USING {cursor.fetchone()[0]}")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        cursor.execute(f"ANALYZE {', '.join(tables)}")


def _tables(statement: str) -> list[str]:
    return sorted(
        table
        for table in connection.introspection.table_names()
        if re.search(rf"\b{table}\b", statement)
    )


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
