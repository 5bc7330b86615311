"""Rows that PostgreSQL reads for a statement."""

import json
import re
from collections.abc import Iterator
from typing import Any

from django.db import connection


def rows_read(statement: str, parameters: Any = None) -> int:
    """Count the rows that the scans of a statement went through, with the rows filtered out.

    The statistics of each table that the statement names are brought up to date before: rows that
    an earlier test left would decide the plan. A table is read as a whole only where no index
    serves.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {', '.join(_tables(statement))}")
        cursor.execute("SET enable_seqscan = off")
        try:
            nodes = nodes_of(statement, parameters)
        finally:
            cursor.execute("RESET enable_seqscan")
    return sum(
        int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
        for node in nodes
        if node.get("Relation Name")
    )


def nodes_of(statement: str, parameters: Any = None) -> list[dict[str, Any]]:
    """Return the steps of a statement's execution, as PostgreSQL explains the steps."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)
        answer = cursor.fetchone()[0]
    plan = json.loads(answer) if isinstance(answer, str) else answer
    return list(_nodes(plan[0]["Plan"]))


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
