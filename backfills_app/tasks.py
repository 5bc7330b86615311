"""Tasks of the control worker."""

from celery import shared_task

from backfills_app.services.advancing import advance as advance_backfills


@shared_task(name="backfills_app.tasks.advance")
def advance() -> None:
    """Move every unfinished backfill on."""
    advance_backfills()
