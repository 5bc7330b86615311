"""The removal of all rows between tests that commit: by DELETE as long as tables are small.

Django truncates all tables. PostgreSQL then creates the files of 72 tables and 283 indexes anew,
which takes longer than most of these tests.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from django.db import transaction
from django.db.backends.base.operations import BaseDatabaseOperations
from django.db.backends.utils import CursorWrapper

# What `migrate` writes, and no test changes.
_KEPT = ("django_migrations", "django_content_type", "auth_permission")
# A table keeps the pages of deleted rows; a truncation ends the growth.
LARGEST_BYTES = 512 * 1024
_TABLES = """
SELECT oid::regclass::text, pg_relation_size(oid) > 0, pg_table_size(oid) > %s,
       EXISTS (SELECT FROM pg_trigger WHERE tgrelid = pg_class.oid AND NOT tgisinternal)
FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL(%s)
ORDER BY oid
"""
_TRUNCATE = BaseDatabaseOperations.execute_sql_flush


class _Table(NamedTuple):
    name: str
    is_filled: bool
    is_large: bool
    has_triggers: bool


def flush(operations: BaseDatabaseOperations, truncations: Sequence[str]) -> None:
    """Remove all rows, as the owner of the tables, whatever their triggers refuse."""
    connection = operations.connection
    with connection.cursor() as cursor:
        cursor.execute(_TABLES, [LARGEST_BYTES, list(_KEPT)])
        tables = [_Table(*row) for row in cursor.fetchall()]
        if any(table.is_large for table in tables):
            with _without_triggers(cursor, tables):
                _TRUNCATE(operations, truncations)
            return
        filled = [table for table in tables if table.is_filled]
        with _without_triggers(cursor, filled), transaction.atomic(using=connection.alias):
            # All foreign keys are deferrable: the order of the tables is free.
            deletions = [f"DELETE FROM {table.name};" for table in filled]
            cursor.execute("SET CONSTRAINTS ALL DEFERRED;" + "".join(deletions))


@contextmanager
def _without_triggers(cursor: CursorWrapper, tables: Iterable[_Table]) -> Iterator[None]:
    """Disable the triggers of tables: audit entries may not be deleted, and counts need not be."""
    names = [table.name for table in tables if table.has_triggers]
    _alter(cursor, names, "DISABLE")
    try:
        yield
    finally:
        _alter(cursor, names, "ENABLE")


def _alter(cursor: CursorWrapper, names: Sequence[str], verb: str) -> None:
    if names:
        cursor.execute("".join(f"ALTER TABLE {name} {verb} TRIGGER USER;" for name in names))
