"""Messages that nudge workers, by task name.

A message may be lost, late or doubled: the row is the truth, and sweeps send messages again.
"""

import logging
from importlib import import_module

from django.conf import settings
from django.db import transaction

log = logging.getLogger(__name__)

SEND_QUEUED = "assets_app.scheduling.tasks.send_queued"
PROCESS_OUTBOX = "assets_app.scheduling.tasks.judge"
EXECUTE = "assets_app.execution.tasks.execute"
FINISH_PUBLISHING = "assets_app.execution.tasks.finish_publishing"
STOP_LOST_ATTEMPT = "assets_app.execution.tasks.stop_lost_attempt"
CALL_HOOK = "assets_app.execution.tasks.call_hook"
CLEAR_LOST_ATTEMPT = "assets_app.execution.tasks.clear_lost_attempt"


def send(task: str, *args: int | str, queue: str) -> bool:
    """Send a message; return whether the broker took the message.

    A broker that is down is logged, not raised. No message expires: Celery would compare the
    sender's clock with the receiver's.
    """
    # A command that sends no message imports neither module.
    import_module(settings.CELERY_APP_MODULE)
    from celery import current_app
    from kombu.exceptions import OperationalError

    try:
        current_app.send_task(task, args=args, queue=queue)
    except (OperationalError, OSError) as error:
        log.warning("message not sent", extra={"task": task, "error": str(error)})
        return False
    return True


def nudge_process_outbox() -> None:
    """Send a message after the commit, so that downstream partitions are evaluated."""
    transaction.on_commit(lambda: send(PROCESS_OUTBOX, queue="control"), robust=True)


def nudge_dispatch() -> None:
    """Send a message after the commit, so that the queue is dispatched before the next tick."""
    transaction.on_commit(lambda: send(SEND_QUEUED, queue="control"), robust=True)
