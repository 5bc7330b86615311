"""The tick: whatever is due is queued, and what is queued is sent."""

from collections.abc import Callable
from functools import partial

import structlog
from celery import shared_task

from assets_app.execution import recovery
from assets_app.execution.dispatch import dispatch, resend_unheard
from assets_app.execution.hooks import resend_hooks
from assets_app.execution.waiting import wake_waiting
from assets_app.queries.clock import database_now
from assets_app.scheduling.again import queue_again
from assets_app.scheduling.judging import judge_outbox
from assets_app.scheduling.recording import forget_ticks
from assets_app.scheduling.ticking import handle_ticks

log = structlog.get_logger(__name__)


@shared_task(name="assets_app.scheduling.tasks.tick")
def tick() -> None:
    """Look at the schedules, at the queue, and at what has not been heard of."""
    now = database_now()
    _each(
        *(partial(look, now) for look in (handle_ticks, judge_outbox, queue_again, wake_waiting)),
        *(recovery.recover, resend_unheard, resend_hooks, dispatch),
    )


@shared_task(name="assets_app.scheduling.tasks.send_queued")
def send_queued() -> None:
    """A run was queued or has ended: send what there is room for now, and what waited for it."""
    now = database_now()
    _each(partial(queue_again, now), partial(wake_waiting, now), dispatch)


@shared_task(name="assets_app.scheduling.tasks.judge")
def judge() -> None:
    """A run was recorded: queue what it has made due, and send it."""
    if judge_outbox(database_now()):
        dispatch()


@shared_task(name="assets_app.scheduling.tasks.forget")
def forget() -> None:
    """Delete the records of ticks that nobody is to look at any more."""
    forget_ticks(database_now())


def _each(*steps: Callable[[], object]) -> None:
    for step in steps:
        try:
            step()
        except Exception:  # whatever is wrong with one keeps the others, and all runs, from nothing
            log.exception("part of a tick failed")
