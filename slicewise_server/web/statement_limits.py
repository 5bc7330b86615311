"""A limit of time for statements that may take long."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def statement_limit(milliseconds: int) -> Iterator[None]:
    """Let PostgreSQL cancel each statement of the block that takes longer.

    Raises django.db.OperationalError, caused by psycopg's QueryCanceled, for such a statement.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = {milliseconds}")
        yield
        # A transaction around this one goes on without the limit.
        cursor.execute("SET LOCAL statement_timeout TO DEFAULT")
