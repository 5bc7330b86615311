"""Celery tasks of the tick: due partitions are queued, and queued runs are sent to workers."""

import logging
from collections.abc import Callable
from datetime import datetime
from functools import wraps

from celery import shared_task

from assets_app.execution.gateway import recovery
from assets_app.execution.gateway.clearing import ask_to_clear
from assets_app.execution.queue.coalescing import Coalesced
from assets_app.execution.queue.dispatch import dispatch, resend_dispatched
from assets_app.execution.queue.hooks import resend_hooks
from assets_app.execution.queue.queue_heads import check_heads
from assets_app.execution.queue.waiting import wake_waiting
from assets_app.queries.clock import database_now
from assets_app.scheduling.outbox import process_outbox
from assets_app.scheduling.recording import forget_ticks
from assets_app.scheduling.requeue_due import requeue_due
from assets_app.scheduling.ticking import handle_ticks

log = logging.getLogger(__name__)


def _step(function: Callable[..., object]) -> Coalesced:
    """Return the function as a step of a tick; an error in one step keeps no other from its
    turn.
    """

    @wraps(function)
    def logged(*arguments: datetime) -> None:
        try:
            function(*arguments)
        except Exception:
            log.exception("part of a tick failed", extra={"step": function.__name__})

    return Coalesced(logged)


def _judge_and_send(now: datetime) -> None:
    if process_outbox(now):
        _dispatch.request()


_handle_ticks, _process_outbox = _step(handle_ticks), _step(_judge_and_send)
_requeue_due, _wake_waiting = _step(requeue_due), _step(wake_waiting)
_recover, _resend_hooks = _step(recovery.recover), _step(resend_hooks)
_ask_to_clear = _step(ask_to_clear)
_resend_unheard, _dispatch = _step(resend_dispatched), _step(dispatch)
_forget_ticks, _check_heads = _step(forget_ticks), _step(check_heads)


@shared_task(name="assets_app.scheduling.tasks.tick")
def tick() -> None:
    """Request the steps of a tick: queue due partitions, recover lost runs, repeat messages without
    an answer, dispatch queued runs.
    """
    now = database_now()
    for step in (_handle_ticks, _process_outbox, _requeue_due, _wake_waiting):
        step.request(now)
    for step in (_recover, _resend_unheard, _resend_hooks, _ask_to_clear, _dispatch):
        step.request()


@shared_task(name="assets_app.scheduling.tasks.send_queued")
def send_queued() -> None:
    """Send queued runs, and queue waiting partitions, after a run was queued or has ended."""
    now = database_now()
    _requeue_due.request(now)
    _wake_waiting.request(now)
    _dispatch.request()


@shared_task(name="assets_app.scheduling.tasks.judge")
def judge() -> None:
    """Queue the partitions that a recorded run has made due, and send their runs."""
    _process_outbox.request(database_now())


@shared_task(name="assets_app.scheduling.tasks.check_queues")
def check_queues() -> None:
    """Compare the heads of the queues with the queued runs; the next dispatch repairs the heads."""
    _check_heads.request()


@shared_task(name="assets_app.scheduling.tasks.forget")
def forget() -> None:
    """Delete the records of ticks whose time to be kept has passed."""
    _forget_ticks.request(database_now())
