"""Statements that PostgreSQL parses and plans once for many executions.

The statements that each run executes are large: to parse and plan such a statement takes several
times as long as to execute the plan. The cursors of Django write the values into the statement, so
that PostgreSQL parses and plans each execution. `prepared_cursor` is for these statements alone.
"""

from time import monotonic
from typing import Any, cast
from weakref import WeakKeyDictionary

from django.db import connection
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.backends.utils import CursorDebugWrapper, CursorWrapper

# A plan that was made while a table was small reads the whole table. PostgreSQL plans anew after it
# has analyzed the table, which may come a minute after a backfill has filled the table.
_PLANNED_ANEW_AFTER = 10.0  # seconds
# When the plans of a connection were last dropped, on the monotonic clock.
_dropped_at: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


def prepared_cursor() -> CursorWrapper:
    """Return a cursor like that of `connection.cursor()`, whose statements are prepared.

    PostgreSQL finds the type of each value from its place in the statement, and from the type in
    Python: an integer, a list of integers, a time. A place that takes any type needs a cast.
    """
    # Opens the connection, or checks one that was left open.
    connection.cursor().close()
    opened = connection.connection
    now = monotonic()
    if now - _dropped_at.setdefault(opened, now) > _PLANNED_ANEW_AFTER:
        _dropped_at[opened] = now
        # psycopg drops the names of prepared statements only after a statement of a new text.
        with connection.wrap_database_errors:
            opened.execute(f"DEALLOCATE ALL -- {now}")
    # The types for Django have no arguments here.
    cursor: Any = cast("Any", ServerBindingCursor)(opened)
    wrapper = _LoggingWrapper if connection.queries_logged else CursorWrapper
    return wrapper(cursor, connection)


class _LoggingWrapper(CursorDebugWrapper):
    """A wrapper that logs statements with their values, as they would be without preparation.

    Django asks the cursor for the text, and a cursor with prepared statements has none.
    """

    def execute(self, sql: Any, params: Any = None) -> Any:
        """Execute and log a statement."""
        with self.debug_sql(cast("Any", self.db.ops).compose_sql(sql, params)):
            return CursorWrapper.execute(self, sql, params)
