"""Nudges to workers, by task name.

A message may be lost, late or doubled: the row is the truth and sweeps send again.
"""

import structlog
from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)

SEND_QUEUED = "assets_app.scheduling.tasks.send_queued"
JUDGE = "assets_app.scheduling.tasks.judge"
EXECUTE = "assets_app.execution.tasks.execute"
FINISH_PUBLISHING = "assets_app.execution.tasks.finish_publishing"
STOP_LOST_ATTEMPT = "assets_app.execution.tasks.stop_lost_attempt"
CALL_HOOK = "assets_app.execution.tasks.call_hook"
CLEAR_LOST_ATTEMPT = "assets_app.execution.tasks.clear_lost_attempt"


def send(task: str, *args: int | str, queue: str, expires: float | None = None) -> bool:
    """Send a message; whether the broker took it. One that is down is logged, not raised."""
    try:
        current_app.send_task(task, args=args, queue=queue, expires=expires)
    except (OperationalError, OSError) as error:
        log.warning("message not sent", task=task, error=str(error))
        return False
    return True


def nudge_judge() -> None:
    """Once the present transaction is committed, have what depends on it looked at."""
    transaction.on_commit(lambda: send(JUDGE, queue="control", expires=1), robust=True)


def nudge_dispatch() -> None:
    """Once the present transaction is committed, have the queue looked at without waiting for the
    next tick.
    """
    transaction.on_commit(lambda: send(SEND_QUEUED, queue="control", expires=1), robust=True)
