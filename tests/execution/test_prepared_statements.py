"""Cursors whose statements PostgreSQL prepares: `pg_prepared_statements` is the witness."""

from datetime import UTC, datetime
from time import monotonic
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from assets_app.queries import prepared_statements
from assets_app.queries.prepared_statements import prepared_cursor

pytestmark = pytest.mark.django_db

STATEMENT = """
SELECT number + %(more)s FROM unnest(%(numbers)s::bigint[]) AS number
WHERE %(name)s <> 'nobody' AND %(at)s <= now() ORDER BY number
"""


VALUES: dict[str, Any] = {"more": 1, "name": "somebody", "at": datetime(2013, 1, 1, tzinfo=UTC)}


def executed(numbers: list[int], *, name: str = "somebody") -> list[int]:
    """Execute the statement of the tests with these values."""
    with prepared_cursor() as cursor:
        cursor.execute(STATEMENT, VALUES | {"numbers": numbers, "name": name})
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
    assert executed([7], name="nobody") == []
    assert prepared() == []
    for number in range(4):
        assert executed([number]) == [number + 1]
    (row,) = prepared()
    assert row["executions"] == 4


def test_a_statement_about_many_rows_is_planned_for_these_rows() -> None:
    for _ in range(4):
        with prepared_cursor(11) as cursor:
            cursor.execute(STATEMENT, VALUES | {"numbers": [1] * 11})
    assert prepared() == []


def test_other_cursors_prepare_nothing_and_leave_what_is_prepared() -> None:
    for _ in range(4):
        executed([1])
    with transaction.atomic(), connection.cursor() as cursor:
        for _ in range(4):
            cursor.execute(STATEMENT, VALUES | {"numbers": [1]})
        cursor.execute(f"ROLLBACK TO SAVEPOINT {connection.savepoint_ids[-1]}")
    assert connection.connection.prepare_threshold is None
    assert executed([1]) == [2]
    assert [row["executions"] for row in prepared()] == [3]


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
        for _ in range(3):
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


def test_a_statement_works_after_what_was_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(4):
        executed([1])
    with pytest.raises(DatabaseError), transaction.atomic(), prepared_cursor() as cursor:
        cursor.execute("SELECT 1 / %(number)s", {"number": 0})
    assert executed([1]) == [2]
    monkeypatch.setattr(prepared_statements, "monotonic", lambda: monotonic() + 100)
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            executed([1])
    assert executed([1]) == [2]


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_was_lost_is_opened_again() -> None:
    for _ in range(4):
        assert executed([1]) == [2]
    connection.close()
    for _ in range(4):
        assert executed([1]) == [2]
    assert prepared()
