"""Messages that wake the bulk worker to advance backfills."""

from django.db import transaction

from assets_app.execution.queue.messages import send

ADVANCE = "backfills_app.tasks.advance"


def nudge_advance() -> None:
    """Send a message after the commit, so that backfills are advanced before the next beat."""
    transaction.on_commit(lambda: send(ADVANCE, queue="bulk"), robust=True)
