"""Work on threads of its own, each with a connection to the database."""

import threading
from collections.abc import Callable
from typing import Any

from django.db import connections, transaction

from assets_app.models import Asset, AssetPartition


def elsewhere(work: Callable[[], Any]) -> threading.Thread:
    """The work, begun on a connection of its own."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def locked_slices(of: Asset, may_end: threading.Event) -> threading.Thread:
    """Another transaction locks the slices of an asset, as a run does that records many."""
    are_locked = threading.Event()

    def hold() -> None:
        with transaction.atomic():
            assert list(AssetPartition.objects.filter(asset=of).select_for_update())
            are_locked.set()
            may_end.wait(120)

    thread = elsewhere(hold)
    assert are_locked.wait(120)
    return thread
