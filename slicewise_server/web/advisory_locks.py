"""All advisory locks of PostgreSQL that the server takes, so that no two uses share a number."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from django.db import connection


class AdvisoryLock(IntEnum):
    """The number of each lock; the number never changes, since older servers may hold the lock."""

    DISPATCH = 7_301
    # One lock for each backfill: the id of the backfill is the second number.
    BACKFILL = 7_302
    SYNC = 7_303
    TICK = 7_304
    EVENTS = 7_305
    DECLARED_ALERTS = 7_306
    # One lock for each asset that another tool has written: the id of the asset.
    LINEAGE = 7_310
    METRICS = 7_311


def lock_until_commit(lock: AdvisoryLock, row_id: int | None = None) -> None:
    """Wait for the lock, and hold the lock until the transaction ends.

    With `row_id` the lock is of one row, else of all work of the kind.
    """
    _take("pg_advisory_xact_lock", lock, row_id)


def try_lock_until_commit(lock: AdvisoryLock, row_id: int | None = None) -> bool:
    """Take the lock until the transaction ends; return False if another transaction holds it.

    With `row_id` the lock is of one row, else of all work of the kind.
    """
    return bool(_take("pg_try_advisory_xact_lock", lock, row_id))


@contextmanager
def connection_lock(lock: AdvisoryLock) -> Iterator[bool]:
    """Yield whether this connection has taken the lock, which is given back afterwards.

    The lock belongs to the connection, not to a transaction, for work that takes minutes.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [lock])
        has_lock = bool(cursor.fetchone()[0])
    try:
        yield has_lock
    finally:
        if has_lock:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [lock])


def _take(function: str, lock: AdvisoryLock, row_id: int | None) -> object:
    """Call a function of PostgreSQL with the numbers of a lock, and return the result."""
    numbers: list[int] = [lock] if row_id is None else [lock, _second_number(row_id)]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}({', '.join(['%s'] * len(numbers))})", numbers)
        return cursor.fetchone()[0]


def _second_number(row_id: int) -> int:
    """Return a number of 32 bits, as the form of the lock with two numbers wants."""
    return row_id % 2**31
