"""Celery tasks of schedules: due partitions, and the tick with the steps of execution."""

from datetime import datetime

from celery import shared_task

from assets_app.execution import tick_steps
from assets_app.execution.queue.coalescing import tick_step
from assets_app.queries.clock import database_now
from assets_app.scheduling import outbox
from assets_app.scheduling.freshness import watch_freshness
from assets_app.scheduling.recording import forget_ticks
from assets_app.scheduling.requeue_due import requeue_due
from assets_app.scheduling.ticking import handle_ticks


def _process_and_dispatch(now: datetime) -> None:
    if outbox.process_outbox(now):
        tick_steps.request_dispatch()


_handle_ticks, _process_outbox = tick_step(handle_ticks), tick_step(_process_and_dispatch)
_requeue_due, _watch_freshness = tick_step(requeue_due), tick_step(watch_freshness)
_forget_ticks = tick_step(forget_ticks)


@shared_task(name="assets_app.scheduling.tasks.tick")
def tick() -> None:
    """Request the steps of a tick: queue due partitions, recover lost runs, repeat messages without
    an answer, dispatch queued runs.
    """
    now = database_now()
    for step in (_handle_ticks, _process_outbox, _requeue_due):
        step.request(now)
    tick_steps.request_steps(now)


@shared_task(name="assets_app.scheduling.tasks.send_queued")
def send_queued() -> None:
    """Send queued runs, and queue waiting partitions, after a run was queued or has ended."""
    now = database_now()
    _requeue_due.request(now)
    tick_steps.request_waiting_and_dispatch(now)


# The name under which messages are sent is older than the name of the function.
@shared_task(name="assets_app.scheduling.tasks.judge")
def process_outbox() -> None:
    """Queue the partitions that a recorded run has made due, and send their runs."""
    _process_outbox.request(database_now())


@shared_task(name="assets_app.scheduling.tasks.forget")
def forget() -> None:
    """Delete the records of ticks whose time to be kept has passed."""
    _forget_ticks.request(database_now())


@shared_task(name="assets_app.scheduling.tasks.watch")
def watch() -> None:
    """Note the partitions that are late by the freshness of their assets, and announce the overdue
    ones.
    """
    _watch_freshness.request(database_now())
