"""Advisory locks of backfills: one transaction at a time changes the intent of a backfill.

Expansion, admission and control take the lock first. The end of a run does not: it changes only
active partitions, which the other three leave alone, so that no two transactions wait for each
other.
"""

from django.db import connection

_SPACE = 7_302


def lock(backfill_id: int) -> None:
    """Wait for the lock of a backfill, which is held until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_SPACE, backfill_id % 2**31])


def try_lock(backfill_id: int) -> bool:
    """Take the lock of a backfill until the transaction ends; return False if the lock
    is not free.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_SPACE, backfill_id % 2**31])
        return bool(cursor.fetchone()[0])
