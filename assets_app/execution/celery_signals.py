"""Ties a Celery worker process to its gateway."""

import logging
from typing import Any

from celery.signals import celeryd_after_setup, worker_shutdown, worker_shutting_down

from assets_app.execution import worker
from assets_app.execution.database import check_pool, release_connection
from assets_app.models import Queue

log = logging.getLogger(__name__)


@celeryd_after_setup.connect
def start_gateway(sender: str, instance: Any, **_: Any) -> None:
    """Make a worker of a queue of runs a gateway, before the first message.

    Runs in the main thread.
    """
    queues = sorted(set(instance.app.amqp.queues.consume_from) & set(Queue.values))
    if queues:
        # A worker serves one queue of runs: its slots are promised to that one.
        try:
            check_pool(instance.concurrency)
            worker.start(sender, queues[0], instance.concurrency)
            release_connection()
        except Exception as error:
            # Celery would log it and go on, with a worker that takes messages and makes no run.
            log.exception("the gateway could not be started", extra={"queue": queues[0]})
            raise SystemExit(1) from error


@worker_shutting_down.connect
def drain(**_: Any) -> None:
    """Requeue running runs, since the worker was asked to end."""
    worker.drain()


@worker_shutdown.connect
def stop(**_: Any) -> None:
    """Sign the gateway off, since all tasks have ended."""
    worker.stop()
