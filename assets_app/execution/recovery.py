"""Notices workers that are gone: their runs are begun again, finished, or seen to be stopped."""

import threading
import time
from collections.abc import Mapping
from copy import copy
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from assets_app.execution import attempts, ending, messages
from assets_app.execution.clearing import clear_away
from assets_app.execution.ending import Failure
from assets_app.execution.engines import MayGoOn
from assets_app.execution.worker import current
from assets_app.models import FailureKind, RunAttempt, RunState
from assets_app.queries.clock import database_now

log = structlog.get_logger(__name__)

# Until then the message about it may be lost; afterwards it is sent again. Of an attempt that has
# lasted for long it is later, so that no great number waits where a worker has no slot free.
_HELP_DUE, _HELP_DUE_LATEST = timedelta(seconds=10), timedelta(minutes=1)
_HELP_DUE_BY_AGE = 0.1
# So long nobody may have renewed a lease before it is believed to have run out. Where the clock was
# set, all have, or are not going to for hours: whoever still holds one renews it in a second.
DOUBT_SECONDS = 3.0

# Attempts in doubt: the lease as it was first seen, and when that was, by a clock that nobody sets.
_doubted: dict[int, tuple[datetime, float]] = {}
_doubting = threading.Lock()


def recover() -> int:
    """See to every open attempt whose lease has run out; how many there were."""
    expired = RunAttempt.objects.filter(_has_run_out(database_now()), ended_at__isnull=True)
    leases = dict(expired.order_by("pk").values_list("pk", "lease_until")[:500])
    lost = _beyond_doubt(leases)
    for attempt_id in lost:
        try:
            _recover(attempt_id, leases[attempt_id])
        except Exception:  # one that cannot be seen to keeps no other waiting, nor the queue
            log.exception("attempt not recovered", attempt=attempt_id)
    return len(lost)


def _has_run_out(now: datetime) -> Q:
    """Over, or longer than any lease that was given since the clock was last set."""
    longest = max(timedelta(seconds=settings.LEASE_SECONDS), _HELP_DUE_LATEST)
    return Q(lease_until__lt=now) | Q(lease_until__gt=now + 2 * longest)


def _beyond_doubt(leases: Mapping[int, datetime]) -> list[int]:
    """Those that have not been renewed for as long as they are doubted."""
    now = time.monotonic()
    with _doubting:
        before = dict(_doubted)
        _doubted.clear()
        for pk, lease in leases.items():
            seen = before.get(pk)
            _doubted[pk] = seen if seen is not None and seen[0] == lease else (lease, now)
        return [pk for pk, (_, since) in _doubted.items() if now - since >= DOUBT_SECONDS]


@transaction.atomic
def _recover(attempt_id: int, lease: datetime) -> None:
    attempt = (
        RunAttempt.objects.select_for_update(skip_locked=True, of=("self",))
        .select_related("run")
        .filter(pk=attempt_id, ended_at__isnull=True, lease_until=lease)
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
    if attempt.run.platform_failures < ending.PLATFORM_RETRIES:
        ending.hand_back(attempt, reason, counts=True)
    elif ending.fail(attempt, Failure(error=reason, kind=FailureKind.PLATFORM)):
        queue = attempt.run.queue
        transaction.on_commit(
            lambda: messages.send(messages.CLEAR_LOST_ATTEMPT, attempt.pk, queue=queue)
        )


def _ask_for_help(attempt: RunAttempt, task: str) -> None:
    """A gateway is needed, for its disk or its way to Spark: any worker of the run's queue.

    A message does not expire: it may stand behind runs that last for hours. Who comes second finds
    another token, and leaves it.
    """
    now = database_now()
    due = max(_HELP_DUE, min((now - attempt.started_at) * _HELP_DUE_BY_AGE, _HELP_DUE_LATEST))
    RunAttempt.objects.filter(pk=attempt.pk).update(lease_until=now + due)
    token, queue = str(attempt.token), attempt.run.queue
    transaction.on_commit(lambda: messages.send(task, attempt.pk, token, queue=queue))


def stop_lost_attempt(attempt_id: int, token: str) -> None:
    """The run was being canceled when its worker was lost: stop its Spark work from here, then say
    so. Where that cannot be seen to, somebody is asked again.
    """
    attempt = attempts.take_over(attempt_id, token, RunState.CANCELING)
    if attempt is None:
        return
    lost = copy(attempt)
    lost.token = UUID(token)  # by which it has named what it keeps on a host
    with current().watching(attempt):
        if _clear_away(lost):
            ending.cancel(attempt)


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
