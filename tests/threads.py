"""Work on other threads, each with its own connection to the database."""

import threading
from collections.abc import Callable
from typing import Any

from django.db import connections, transaction

from assets_app.models import Asset, AssetPartition


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


def locked_slices(of: Asset, may_end: threading.Event) -> threading.Thread:
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
