"""Signal receivers that start and stop the gateway of a Celery worker process."""

import logging
from typing import Any

from celery.signals import celeryd_after_setup, worker_shutdown, worker_shutting_down

from assets_app.execution.database import check_pool, release_connection
from assets_app.execution.gateway import worker
from assets_app.models import Queue

log = logging.getLogger(__name__)


@celeryd_after_setup.connect
def start_gateway(sender: str, instance: Any, **_: Any) -> None:
    """Start the gateway of a worker with a queue of runs, before the first message.

    Runs in the main thread.
    """
    queues = sorted(set(instance.app.amqp.queues.consume_from) & set(Queue.values))
    if queues:
        # A worker serves one queue of runs, and all its slots belong to that queue.
        try:
            check_pool(instance.concurrency)
            worker.start(sender, queues[0], instance.concurrency)
            release_connection()
        except Exception as error:
            # Celery would log the error and go on, with a worker that takes messages and executes
            # no run.
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
