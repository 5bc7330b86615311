"""Who may change what a backfill intends: one at a time, by an advisory lock.

Expansion, admission and control take it first. The end of a run does not: it changes only
partitions that are active, which these three leave alone, so that no two wait for each other.
"""

from django.db import connection

_SPACE = 7_302


def lock(backfill_id: int) -> None:
    """Wait for the lock; it is held until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_SPACE, backfill_id % 2**31])


def try_lock(backfill_id: int) -> bool:
    """Take the lock if it is free, until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_SPACE, backfill_id % 2**31])
        return bool(cursor.fetchone()[0])
