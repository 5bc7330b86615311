"""Recovery from lost workers: runs are begun again, finished, or confirmed as stopped."""

import logging
import threading
import time
from collections.abc import Mapping
from copy import copy
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.engines import WorkMayContinueError
from assets_app.execution.attempt.retry_pauses import is_lost_too_often
from assets_app.execution.gateway.clearing import clear_away, clear_ended
from assets_app.execution.gateway.worker import current
from assets_app.execution.queue import messages
from assets_app.models import FailureKind, Lease, RunAttempt, RunState
from assets_app.queries.clock import database_now

log = logging.getLogger(__name__)

# Until this time the message about a lost attempt may be lost; afterwards the message is sent
# again. An attempt that has lasted for long gets a later time, so that no great number of messages
# waits where a worker has no slot free.
_HELP_DUE, _HELP_DUE_LATEST = timedelta(seconds=10), timedelta(minutes=1)
_HELP_DUE_BY_AGE = 0.1
# An expired lease counts as expired once no worker has renewed the lease for so long. After the
# clock was set, all leases seem to have expired, or are not going to for hours: a worker that still
# holds a lease renews the lease within a second.
DOUBT_SECONDS = 3.0

_LOST = "The worker of this attempt was lost: its heartbeat stopped."

# Leases in doubt by attempt: the lease as first seen, and the time of that on a clock that is never
# set.
_doubted: dict[int, tuple[datetime, float]] = {}
_doubting = threading.Lock()

# Attempts whose recovery failed, and the time of the failure on the same clock. Such attempts are
# left alone for a while, so that any number of them lets other attempts have their turn.
_PAUSE_SECONDS = 30.0
_AT_ONCE = 500
_failed: dict[int, float] = {}


def recover() -> int:
    """Recover every attempt under way whose lease has run out; return the number of attempts."""
    expired = Lease.objects.filter(_has_run_out(database_now()))
    rows = expired.exclude(pk__in=_paused_attempts()).order_by("pk")
    leases = dict(rows.values_list("pk", "until")[:_AT_ONCE])
    lost = _surely_expired(leases)
    for attempt_id in lost:
        try:
            _recover(attempt_id, leases[attempt_id])
        except Exception:  # a failed recovery keeps no other attempt waiting, nor the queue
            log.exception("attempt not recovered", extra={"attempt": attempt_id})
            _failed[attempt_id] = time.monotonic()
    return len(lost)


def _paused_attempts() -> list[int]:
    """Return the attempts whose recovery has failed lately."""
    now = time.monotonic()
    for attempt_id, failed_at in list(_failed.items()):
        if now - failed_at >= _PAUSE_SECONDS:
            _failed.pop(attempt_id, None)
    return list(_failed)


def _has_run_out(now: datetime) -> Q:
    """Return the condition of leases that are over, or longer than any since the clock was set."""
    longest = max(timedelta(seconds=settings.LEASE_SECONDS), _HELP_DUE_LATEST)
    return Q(until__lt=now) | Q(until__gt=now + 2 * longest)


def _surely_expired(leases: Mapping[int, datetime]) -> list[int]:
    """Return the attempts whose leases have not been renewed for DOUBT_SECONDS."""
    now = time.monotonic()
    with _doubting:
        before = dict(_doubted)
        _doubted.clear()
        for pk, lease in leases.items():
            doubt = before.get(pk)
            _doubted[pk] = doubt if doubt is not None and doubt[0] == lease else (lease, now)
        return [pk for pk, (_, since) in _doubted.items() if now - since >= DOUBT_SECONDS]


@transaction.atomic
def _recover(attempt_id: int, until: datetime) -> None:
    # An attempt that is being ended or taken over is left alone, and so is an attempt with a new
    # lease.
    lease = (
        Lease.objects.select_for_update(skip_locked=True, of=("self", "attempt"))
        .select_related("attempt__run")
        .filter(pk=attempt_id, until=until)
        .first()
    )
    if lease is None:
        return
    attempt, run = lease.attempt, lease.attempt.run
    log.warning("worker lost", extra={"run": run.pk, "attempt": attempt.number, "state": run.state})
    match run.state:
        case RunState.RUNNING:
            _requeue_or_fail(attempt)
        case RunState.PUBLISHING:
            _ask_for_help(attempt, messages.FINISH_PUBLISHING)
        case RunState.CANCELING:
            _ask_for_help(attempt, messages.STOP_LOST_ATTEMPT)


def _requeue_or_fail(attempt: RunAttempt) -> None:
    if not is_lost_too_often(attempt.run):
        ending.requeue_lost(attempt, _LOST, counts=True)
        return
    error = f"{_LOST} {_losses(attempt)}"
    if ending.fail(attempt, Failure(error=error, kind=FailureKind.PLATFORM, is_loss=True)):
        queue = attempt.run.queue
        # No further attempt follows that would stop the work on Spark.
        due = database_now() + _HELP_DUE_LATEST
        RunAttempt.objects.filter(pk=attempt.pk).update(may_go_on=True, clear_at=due)
        transaction.on_commit(
            lambda: messages.send(messages.CLEAR_LOST_ATTEMPT, attempt.pk, queue=queue)
        )


def _losses(attempt: RunAttempt) -> str:
    """Return a text about the losses of a run whose last attempt this is."""
    loss_count = attempt.run.lost_attempts + 1
    # A retry counts losses anew, while attempts go on being numbered.
    latest = attempt.run.attempts.filter(number__gt=attempt.number - loss_count)
    alone = latest.filter(Q(pk=attempt.pk) | Q(error=_LOST), was_alone=True)
    alone_count = alone.count()
    intro = f"The run has lost its worker or its process {loss_count} times"
    if not alone_count:
        return f"{intro}."
    return (
        f"{intro}, {alone_count} of them without another run on the worker: the run seems to end"
        " the worker, for example by taking all memory of the host."
    )


def _ask_for_help(attempt: RunAttempt, task: str) -> None:
    """Ask any worker of the run's queue to end the attempt.

    That takes the disk of a gateway, or its connection to Spark. A message does not expire: the
    message may stand behind runs that last for hours. A worker that comes second finds another
    token, and leaves the attempt alone.
    """
    now = database_now()
    due = max(_HELP_DUE, min((now - attempt.started_at) * _HELP_DUE_BY_AGE, _HELP_DUE_LATEST))
    Lease.objects.filter(attempt=attempt.pk).update(until=now + due)
    token, queue = str(attempt.token), attempt.run.queue
    transaction.on_commit(lambda: messages.send(task, attempt.pk, token, queue=queue))


def stop_lost_attempt(attempt_id: int, token: str) -> None:
    """Stop the Spark work of a run whose worker was lost during a cancellation, and end the run.

    If the end of the work cannot be confirmed, the tick asks again.
    """
    attempt = attempts.take_over(attempt_id, token, RunState.CANCELING)
    if attempt is None:
        return
    lost = copy(attempt)
    lost.token = UUID(token)  # the token names the attempt's files on a host
    with current().watching(attempt):
        if _clear_away(lost):
            ending.cancel(attempt)


def clear_lost_attempt(attempt_id: int) -> None:
    """Stop the Spark work of an ended attempt, if some may go on, and remove the attempt's data."""
    attempt = RunAttempt.objects.filter(pk=attempt_id, clear_at__isnull=False).first()
    if attempt is not None:
        clear_ended(current().parent, attempt)


def _clear_away(lost: RunAttempt) -> bool:
    """Clear away a lost attempt, and the unstopped attempts before; return whether no work
    goes on.
    """
    version = lost.run.producer_version
    parent = current().parent
    try:
        for attempt in (lost, *attempts.unstopped_before(lost)):
            clear_away(parent, attempt, version)
    except WorkMayContinueError as error:
        log.warning("work on Spark not stopped", extra={"run": lost.run_id, "error": str(error)})
        return False
    return True
