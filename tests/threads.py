"""Work on other threads, each with its own connection to the database."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, connections, transaction

from assets_app.models import Asset, AssetPartition
from tests.waiting import wait_until

# The wait for a row names no database, and another lock of the same transaction does.
_IS_WAITED_FOR_A_LOCK = """
SELECT EXISTS (
    SELECT FROM pg_locks AS waiting_lock JOIN pg_locks AS held_lock USING (pid)
    WHERE NOT waiting_lock.granted AND held_lock.database = (
        SELECT oid FROM pg_database WHERE datname = current_database()
    )
)
"""


def elsewhere(work: Callable[[], Any]) -> threading.Thread:
    """Start the work on a thread with its own connection."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def wait_for_end_or_lock(thread: threading.Thread) -> None:
    """Wait until the thread has ended, or a transaction of this database waits for a lock."""

    def is_over() -> bool:
        if not thread.is_alive():
            return True
        with connection.cursor() as cursor:
            cursor.execute(_IS_WAITED_FOR_A_LOCK)
            return bool(cursor.fetchone()[0])

    assert wait_until(is_over, 120)


@contextmanager
def repeated(work: Callable[[], Any], every: float) -> Iterator[None]:
    """Do the work within the block on another thread, again and again, so many seconds apart."""
    may_end = threading.Event()

    def go_on() -> None:
        while not may_end.wait(every):
            work()

    thread = elsewhere(go_on)
    try:
        yield
    finally:
        may_end.set()
        thread.join()


def locked_partitions(of: Asset, may_end: threading.Event) -> threading.Thread:
    """Lock the partitions of an asset in another transaction, as a run that records many does."""
    are_locked = threading.Event()

    def hold() -> None:
        with transaction.atomic():
            assert list(AssetPartition.objects.filter(asset=of).select_for_update())
            are_locked.set()
            may_end.wait(120)

    thread = elsewhere(hold)
    assert are_locked.wait(120)
    return thread
