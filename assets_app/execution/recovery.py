"""Notices workers that are gone: their runs are begun again, finished, or seen to be stopped."""

from datetime import timedelta

import structlog
from django.db import transaction
from django.utils import timezone

from assets_app.execution import attempts, messages
from assets_app.execution.attempts import Failure
from assets_app.execution.clearing import clear_away
from assets_app.execution.engines import MayGoOn
from assets_app.execution.worker import current
from assets_app.models import FailureKind, RunAttempt, RunState

log = structlog.get_logger(__name__)

# Until then the message about it may be lost; afterwards it is sent again.
_HELP_DUE = timedelta(seconds=10)


def recover() -> int:
    """See to every open attempt whose lease has run out; how many there were."""
    expired = RunAttempt.objects.filter(ended_at__isnull=True, lease_until__lt=timezone.now())
    ids = list(expired.order_by("pk").values_list("pk", flat=True)[:500])
    for attempt_id in ids:
        try:
            _recover(attempt_id)
        except Exception:  # one that cannot be seen to keeps no other waiting, nor the queue
            log.exception("attempt not recovered", attempt=attempt_id)
    return len(ids)


@transaction.atomic
def _recover(attempt_id: int) -> None:
    attempt = (
        RunAttempt.objects.select_for_update(skip_locked=True, of=("self",))
        .select_related("run")
        .filter(pk=attempt_id, ended_at__isnull=True, lease_until__lt=timezone.now())
        .first()
    )
    if attempt is None:
        return
    run = attempt.run
    log.warning("worker lost", run=run.pk, attempt=attempt.number, state=run.state)
    match run.state:
        case RunState.RUNNING:
            _begin_again(attempt)
        case RunState.PUBLISHING:
            _ask_for_help(attempt, messages.FINISH_PUBLISHING)
        case RunState.CANCELING:
            _ask_for_help(attempt, messages.STOP_LOST_ATTEMPT)


def _begin_again(attempt: RunAttempt) -> None:
    reason = "The worker of this attempt was lost: nothing was heard of it any more."
    if attempt.run.platform_failures < attempts.PLATFORM_RETRIES:
        attempts.hand_back(attempt, reason, counts=True)
    elif attempts.fail(attempt, Failure(error=reason, kind=FailureKind.PLATFORM)):
        queue = attempt.run.queue
        transaction.on_commit(
            lambda: messages.send(messages.CLEAR_LOST_ATTEMPT, attempt.pk, queue=queue)
        )


def _ask_for_help(attempt: RunAttempt, task: str) -> None:
    """A gateway is needed, for its disk or its way to Spark: any worker of the run's queue."""
    RunAttempt.objects.filter(pk=attempt.pk).update(lease_until=timezone.now() + _HELP_DUE)
    token, queue = str(attempt.token), attempt.run.queue
    transaction.on_commit(
        lambda: messages.send(task, attempt.pk, token, queue=queue, expires=_HELP_DUE.seconds)
    )


def stop_lost_attempt(attempt_id: int, token: str) -> None:
    """The run was being canceled when its worker was lost: stop its Spark work from here, then say
    so. Where that cannot be seen to, somebody is asked again.
    """
    attempt = RunAttempt.objects.filter(
        pk=attempt_id, token=token, ended_at__isnull=True, run__state=RunState.CANCELING
    ).first()
    if attempt is not None and _clear_away(attempt):
        attempts.cancel(attempt)


def clear_lost_attempt(attempt_id: int) -> None:
    """The run failed since it lost its worker too often: no further attempt comes that would stop
    its Spark work.
    """
    attempt = RunAttempt.objects.filter(pk=attempt_id, ended_at__isnull=False).first()
    if attempt is not None:
        _clear_away(attempt)


def _clear_away(lost: RunAttempt) -> bool:
    """Whether nothing of the attempt goes on, nor of those that it had not cleared away yet."""
    version = lost.run.producer_version
    parent = current().parent
    try:
        for attempt in (lost, *attempts.unstopped_before(lost)):
            clear_away(parent, attempt, version)
    except MayGoOn as error:
        log.warning("work on Spark not stopped", run=lost.run_id, error=str(error))
        return False
    return True
