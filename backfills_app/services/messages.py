"""Nudges to the worker of the queue `bulk` about backfills."""

from django.db import transaction

from assets_app.execution.messages import send

ADVANCE = "backfills_app.tasks.advance"


def nudge_advance() -> None:
    """Once the present transaction is committed, have backfills looked at without waiting for the
    beat.
    """
    transaction.on_commit(lambda: send(ADVANCE, queue="bulk"), robust=True)
