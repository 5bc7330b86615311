"""Advisory locks of backfills: one transaction at a time changes the intent of a backfill.

Expansion, admission and control take the lock first. The end of a run does not: it changes only
active partitions, which the other three leave alone, so that no two transactions wait for each
other.
"""

from slicewise_server.web.advisory_locks import (
    AdvisoryLock,
    lock_until_commit,
    try_lock_until_commit,
)


def lock(backfill_id: int) -> None:
    """Wait for the lock of a backfill, which is held until the transaction ends."""
    lock_until_commit(AdvisoryLock.BACKFILL, backfill_id)


def try_lock(backfill_id: int) -> bool:
    """Take the lock of a backfill until the transaction ends; return False if the lock
    is not free.
    """
    return try_lock_until_commit(AdvisoryLock.BACKFILL, backfill_id)
