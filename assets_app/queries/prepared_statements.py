"""Statements that PostgreSQL parses and plans once for many executions.

The statements that each run executes are large: to parse and plan such a statement takes several
times as long as to execute the plan. The cursors of Django write the values into the statement, so
that PostgreSQL parses and plans each execution. `prepared_cursor` is for these statements alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, cast
from weakref import WeakKeyDictionary

from django.db import connection
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper

# A plan that was made while a table was small reads the whole table. PostgreSQL plans anew after it
# has analyzed the table, which may come a minute after a backfill has filled the table.
_PLANNED_ANEW_AFTER = 10.0  # seconds
# Executions of a statement on a connection before the statement is prepared, which takes a message
# of its own: a connection that is used now and then prepares none.
_FIRST_EXECUTIONS = 2
# A plan for all values is made for lists of so many elements.
_MOST_ROWS = 10
# When the plans of a connection were last dropped, on the monotonic clock.
_dropped_at: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


def prepared_cursor(row_count: int = 1) -> CursorWrapper:
    """Return a cursor like that of `connection.cursor()`, whose statements are prepared.

    A statement about many rows, such as the ids of many runs, is planned for these rows instead.
    PostgreSQL finds the type of each value from its place in the statement, and from the type in
    Python: an integer, a time. Lists, and places that take any type, need a cast.
    """
    # Opens the connection, or checks one that was left open.
    plain_cursor = connection.cursor()
    if row_count > _MOST_ROWS:
        return plain_cursor
    plain_cursor.close()
    opened = connection.connection
    now = monotonic()
    is_old = now - _dropped_at.setdefault(opened, now) > _PLANNED_ANEW_AFTER
    # A transaction that has failed takes no statement.
    if is_old and not connection.needs_rollback:
        # psycopg drops the names of prepared statements only after a statement of a new text.
        with connection.wrap_database_errors, _preparation(opened):
            opened.execute(f"DEALLOCATE ALL -- {now}")
        _dropped_at[opened] = now
    # The types for Django have no arguments here.
    cursor: Any = cast("Any", ServerBindingCursor)(opened)
    wrapper = _LoggingWrapper if connection.queries_logged else _PreparingWrapper
    return wrapper(cursor, connection)


@contextmanager
def _preparation(opened: Any) -> Iterator[None]:
    """Let psycopg count and prepare statements. Of the statements of other cursors, which have the
    values in their text, psycopg would keep the last hundred texts.
    """
    opened.prepare_threshold = _FIRST_EXECUTIONS
    try:
        yield
    finally:
        opened.prepare_threshold = None


class _PreparingWrapper(CursorWrapper):
    """A wrapper that lets psycopg prepare statements."""

    def execute(self, sql: Any, params: Any = None) -> Any:
        """Execute a statement."""
        with _preparation(self.db.connection):
            return super().execute(sql, params)


class _LoggingWrapper(CursorDebugWrapper):
    """A wrapper that also logs statements with their values, as other cursors send them.

    Django asks the cursor for the text, and a cursor with prepared statements has none.
    """

    def execute(self, sql: Any, params: Any = None) -> Any:
        """Execute and log a statement."""
        text = cast("Any", self.db.ops).compose_sql(sql, params)
        with self.debug_sql(text), _preparation(self.db.connection):
            return CursorWrapper.execute(self, sql, params)
