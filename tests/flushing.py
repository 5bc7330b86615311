"""The removal of all rows between tests that commit: by DELETE as long as tables are small.

Django truncates all tables. PostgreSQL then creates the files of 72 tables and 283 indexes anew,
which takes longer than most of these tests.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.db.backends.base.operations import BaseDatabaseOperations
from django.db.backends.utils import CursorWrapper

# What `migrate` writes, and no test changes.
_KEPT = ("django_migrations", "django_content_type", "auth_permission")
# A table keeps the pages of deleted rows; a truncation ends the growth.
_LARGEST_BYTES = 512 * 1024
_FILLED = """
SELECT oid::regclass::text, pg_table_size(oid) > %s,
       EXISTS (SELECT FROM pg_trigger WHERE tgrelid = pg_class.oid AND NOT tgisinternal)
FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 0
  AND relname <> ALL(%s)
ORDER BY oid
"""
_TRUNCATE = BaseDatabaseOperations.execute_sql_flush


def flush(operations: BaseDatabaseOperations, truncations: Sequence[str]) -> None:
    """Remove all rows, as the owner of the tables, whatever their triggers refuse."""
    connection = operations.connection
    with connection.cursor() as cursor:
        cursor.execute(_FILLED, [_LARGEST_BYTES, list(_KEPT)])
        tables = cursor.fetchall()
        guarded = [table for table, _, has_triggers in tables if has_triggers]
        with _without_triggers(cursor, guarded):
            if any(is_large for _, is_large, _ in tables):
                _TRUNCATE(operations, truncations)
                return
            with transaction.atomic(using=connection.alias):
                # All foreign keys are deferrable: the order of the tables is free.
                deletions = [f"DELETE FROM {table};" for table, *_ in tables]
                cursor.execute("SET CONSTRAINTS ALL DEFERRED;" + "".join(deletions))


@contextmanager
def _without_triggers(cursor: CursorWrapper, tables: Sequence[str]) -> Iterator[Any]:
    """Disable the triggers of tables: audit entries may not be deleted, and counts need not be."""
    _alter(cursor, tables, "DISABLE")
    try:
        yield
    finally:
        _alter(cursor, tables, "ENABLE")


def _alter(cursor: CursorWrapper, tables: Sequence[str], verb: str) -> None:
    if tables:
        cursor.execute("".join(f"ALTER TABLE {table} {verb} TRIGGER USER;" for table in tables))
