"""Cursors whose statements PostgreSQL prepares: `pg_prepared_statements` is the witness."""

from datetime import UTC, datetime
from time import monotonic
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from assets_app.queries import prepared_statements
from assets_app.queries.prepared_statements import prepared_cursor

pytestmark = pytest.mark.django_db

STATEMENT = """
SELECT number + %(more)s FROM unnest(%(numbers)s::bigint[]) AS number
WHERE %(name)s <> 'nobody' AND %(at)s <= now() ORDER BY number
"""


def executed(numbers: list[int], *, name: str = "somebody") -> list[int]:
    """Execute the statement of the tests with these values."""
    values: dict[str, Any] = {
        "more": 1,
        "numbers": numbers,
        "name": name,
        "at": datetime(2013, 1, 1, tzinfo=UTC),
    }
    with prepared_cursor() as cursor:
        cursor.execute(STATEMENT, values)
        return [row[0] for row in cursor.fetchall()]


def prepared() -> list[dict[str, Any]]:
    """Return what PostgreSQL knows of the statement on this connection."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT prepare_time, generic_plans + custom_plans FROM pg_prepared_statements"
            " WHERE statement LIKE '%%unnest($2::bigint[])%%' ORDER BY prepare_time"
        )
        return [dict(zip(("at", "executions"), row, strict=True)) for row in cursor.fetchall()]


def test_one_statement_is_prepared_once_for_all_values() -> None:
    assert executed([5, 4]) == [5, 6]
    assert executed([]) == []
    assert executed([7, 70_000], name="nobody") == []
    assert executed([2]) == [3]
    # PostgreSQL sees lists of small, of no, and of larger numbers, each with a type of its own.
    assert sum(row["executions"] for row in prepared()) == 4
    assert max(row["executions"] for row in prepared()) == 2


def test_statements_are_logged_as_those_of_other_cursors() -> None:
    with CaptureQueriesContext(connection) as captured:
        executed([5])
    (query,) = captured.captured_queries
    assert "'{5}'" in query["sql"]
    assert "somebody" in query["sql"]


def test_plans_are_made_anew_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    then = monotonic() + 1_000

    def executed_after(seconds: int) -> None:
        monkeypatch.setattr(prepared_statements, "monotonic", lambda: then + seconds)
        executed([1])

    executed_after(0)
    (before,) = prepared()
    executed_after(9)
    assert [row["at"] for row in prepared()] == [before["at"]]
    for seconds in (11, 22, 33):
        executed_after(seconds)
        (after,) = prepared()
        assert after["at"] > before["at"]
        assert after["executions"] == 1
        before = after


def test_a_statement_works_after_what_was_rolled_back() -> None:
    executed([1])
    with pytest.raises(DatabaseError), transaction.atomic(), prepared_cursor() as cursor:
        cursor.execute("SELECT 1 / %(number)s", {"number": 0})
    assert executed([1]) == [2]


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_was_lost_is_opened_again() -> None:
    assert executed([1]) == [2]
    connection.close()
    assert executed([1]) == [2]
    assert len(prepared()) == 1
