"""The tick: whatever is due is queued, and what is queued is sent."""

from celery import shared_task
from django.utils import timezone

from assets_app.execution import recovery
from assets_app.execution.dispatch import dispatch, resend_unheard
from assets_app.scheduling.again import queue_again
from assets_app.scheduling.judging import judge_outbox
from assets_app.scheduling.recording import forget_ticks
from assets_app.scheduling.ticking import handle_ticks


@shared_task(name="assets_app.scheduling.tasks.tick")
def tick() -> None:
    """Look at the schedules, at the queue, and at what has not been heard of."""
    now = timezone.now()
    handle_ticks(now)
    judge_outbox(now)
    queue_again(now)
    recovery.recover()
    resend_unheard()
    dispatch()


@shared_task(name="assets_app.scheduling.tasks.judge")
def judge() -> None:
    """A run was recorded: queue what it has made due, and send it."""
    if judge_outbox(timezone.now()):
        dispatch()


@shared_task(name="assets_app.scheduling.tasks.forget")
def forget() -> None:
    """Delete the records of ticks that nobody is to look at any more."""
    forget_ticks(timezone.now())
