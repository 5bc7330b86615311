"""The ends of attempts at runs: success, failure, cancellation, or a requeue of the run."""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from assets_app.catalogue.texts import storable
from assets_app.execution.attempt.leases import end_lease, still_held
from assets_app.execution.attempt.outputs import DiscoveredKeys, add_discovered_keys
from assets_app.execution.queue.hooks import leave_hook
from assets_app.execution.queue.messages import nudge_dispatch
from assets_app.execution.queue.settling import (
    published_keys,
    record_partial_success,
    record_success,
    release_canceled,
    release_failed,
)
from assets_app.execution.queue.transitions import move
from assets_app.models import (
    AttemptOutcome,
    FailureKind,
    HookOption,
    Run,
    RunAttempt,
    RunState,
)
from assets_app.queries.clock import database_now
from slicewise.declaring import LONGEST_RETRY_DELAY

# The pause of a run with other runs in its way: as long as the run has been tried, within bounds.
_STEP_BACK, _STEP_BACK_LONGEST = timedelta(seconds=5), timedelta(minutes=10)
# No run waits longer than this for other runs in its way.
_LONGEST_CONFLICT = timedelta(hours=6)
# The time after an unsuccessful attempt at which a worker looks for remaining work and data.
CLEAR_AFTER = timedelta(minutes=2)
_COUNTERS = {
    FailureKind.CODE: "code_failures",
    FailureKind.PLATFORM: "platform_failures",
    FailureKind.DATA: "code_failures",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The reason why an attempt failed: a line for people, the traceback, and the kind."""

    error: str
    traceback: str = ""
    kind: FailureKind = FailureKind.CODE
    # The process was killed: by the kernel for want of memory, say, which may happen each time.
    is_loss: bool = False

    def __post_init__(self) -> None:
        for name in ("error", "traceback"):
            object.__setattr__(self, name, storable(getattr(self, name)))


@transaction.atomic
def succeed(attempt: RunAttempt) -> bool:
    """Record that the data is published; return False if another worker has done so or holds the
    run.
    """
    if not still_held(attempt):
        return False
    if not move(
        attempt.run_id, RunState.PUBLISHING, RunState.SUCCEEDED, ended_at=database_now(), error=""
    ):
        return False
    record_success(attempt.run_id, attempt.pk)
    add_discovered_keys(_discovered_keys(attempt), attempt.run_id)
    _end(attempt, AttemptOutcome.SUCCEEDED)
    leave_hook(attempt, HookOption.ON_SUCCESS)
    nudge_dispatch()
    return True


@transaction.atomic
def fail_publishing(
    attempt: RunAttempt, failure: Failure, published: Mapping[int, Collection[str]]
) -> bool:
    """Fail a run whose publication cannot go on, and record the partitions that are published.

    ``published`` has the paths of these partitions by the id of their asset. All other partitions
    have failed, and only discovered keys with data in place are added. Returns False if the run no
    longer belongs to this attempt.
    """
    if not still_held(attempt):
        return False
    counter = _COUNTERS[failure.kind]
    failure_fields = {"error": failure.error, "error_kind": failure.kind, counter: F(counter) + 1}
    if not move(
        attempt.run_id,
        RunState.PUBLISHING,
        RunState.FAILED,
        ended_at=database_now(),
        **failure_fields,
    ):
        return False
    record_partial_success(attempt.run_id, attempt.pk, published)
    new_keys = _discovered_keys(attempt)
    add_discovered_keys(new_keys, attempt.run_id, only=published_keys(attempt.run_id))
    _end(attempt, AttemptOutcome.FAILED, failure)
    leave_hook(attempt, HookOption.ON_FAILURE)
    nudge_dispatch()
    return True


@transaction.atomic
def fail(attempt: RunAttempt, failure: Failure) -> bool:
    """End a running attempt: queue another attempt if a retry is left, otherwise fail the run."""
    if not still_held(attempt):
        return False
    run = Run.objects.select_related("producer_version").get(pk=attempt.run_id)
    counter = _COUNTERS[failure.kind]
    failure_fields = {"error": failure.error, "error_kind": failure.kind, counter: F(counter) + 1}
    if failure.is_loss:
        failure_fields["lost_attempts"] = F("lost_attempts") + 1
    delay = retry_delay(run, failure.kind, is_loss=failure.is_loss)
    now = database_now()
    if delay is not None:
        moved = move(
            run.pk,
            RunState.RUNNING,
            RunState.QUEUED,
            not_before=now + delay,
            queued_at=now,
            **failure_fields,
        )
    else:
        moved = move(run.pk, RunState.RUNNING, RunState.FAILED, ended_at=now, **failure_fields)
        if moved:
            release_failed([run.pk])
            leave_hook(attempt, HookOption.ON_FAILURE)
    if moved:
        _end(attempt, AttemptOutcome.FAILED, failure)
        nudge_dispatch()
    return moved


@transaction.atomic
def requeue_conflicted(attempt: RunAttempt, reason: str) -> bool:
    """Requeue a run until other runs in its way may have ended; this is no failure of the run.

    A run that has been tried for hours fails. Returns False if the run no longer belongs to this
    attempt.
    """
    if not still_held(attempt):
        return False
    now, failure = database_now(), Failure(error=reason, kind=FailureKind.PLATFORM)
    started_at = Run.objects.values_list("started_at", flat=True).get(pk=attempt.run_id) or now
    if now - started_at > _LONGEST_CONFLICT:
        return fail(attempt, failure)
    moved = move(
        attempt.run_id,
        RunState.RUNNING,
        RunState.QUEUED,
        queued_at=now,
        not_before=now + max(_STEP_BACK, min(now - started_at, _STEP_BACK_LONGEST)),
        error=failure.error,
        error_kind=failure.kind,
    )
    if moved:
        _end(attempt, AttemptOutcome.FAILED, failure)
        nudge_dispatch()
    return moved


@transaction.atomic
def cancel(attempt: RunAttempt) -> bool:
    """End a run as canceled, after its work has been stopped."""
    if not still_held(attempt):
        return False
    if not move(attempt.run_id, RunState.CANCELING, RunState.CANCELED, ended_at=database_now()):
        return False
    release_canceled([attempt.run_id])
    _end(attempt, AttemptOutcome.CANCELED)
    nudge_dispatch()
    return True


@transaction.atomic
def cancel_cleared(run_id: int) -> bool:
    """End a run that was canceled in the queue, once no attempt at the run goes on."""
    # By its id alone: a transaction that cancels the run holds the row; the state is read
    # afterwards.
    run = Run.objects.select_for_update().filter(pk=run_id).first()
    attempts = RunAttempt.objects.filter(run=run_id)
    if run is None or attempts.filter(Q(ended_at__isnull=True) | Q(may_go_on=True)).exists():
        return False
    if not move(run_id, RunState.CANCELING, RunState.CANCELED, ended_at=database_now()):
        return False
    release_canceled([run_id])
    nudge_dispatch()
    return True


@transaction.atomic
def requeue_lost(
    attempt: RunAttempt, reason: str, *, counts: bool = False, is_cleared: bool = False
) -> bool:
    """Requeue a run whose worker goes down in good order or, with ``counts``, was lost.

    A loss counts as a failure. Unless ``is_cleared``, the attempt's work on Spark may go on. A run
    that was lost more than once gets a pause of random length, so that runs that were lost together
    come back apart.
    """
    if not still_held(attempt):
        return False
    now, lost_before = database_now(), attempt.run.lost_attempts
    pause = None
    if counts and lost_before:
        pause = random.uniform(0.5, 1.5) * platform_pause(lost_before - 1)  # noqa: S311
    moved = move(
        attempt.run_id,
        RunState.RUNNING,
        RunState.QUEUED,
        queued_at=now,
        not_before=pause and now + pause,
        platform_failures=F("platform_failures") + int(counts),
        lost_attempts=F("lost_attempts") + int(counts),
    )
    if moved:
        _end(attempt, AttemptOutcome.LOST, Failure(error=reason, kind=FailureKind.PLATFORM))
        if not is_cleared:
            RunAttempt.objects.filter(pk=attempt.pk).update(may_go_on=True)
        nudge_dispatch()
    return moved


def _discovered_keys(attempt: RunAttempt) -> DiscoveredKeys:
    found_keys: DiscoveredKeys = RunAttempt.objects.values_list("found", flat=True).get(
        pk=attempt.pk
    )
    return found_keys


def _end(attempt: RunAttempt, outcome: AttemptOutcome, failure: Failure | None = None) -> None:
    # A worker that publishes removes its staging, unless an earlier worker may still write there.
    is_clean = outcome == AttemptOutcome.SUCCEEDED and attempt.fence == 1
    RunAttempt.objects.filter(pk=attempt.pk).update(
        outcome=outcome,
        ended_at=database_now(),
        clear_at=None if is_clean else database_now() + CLEAR_AFTER,
        error=failure.error if failure else "",
        traceback=failure.traceback if failure else "",
    )
    end_lease(attempt)


def retry_delay(run: Run, kind: FailureKind, *, is_loss: bool = False) -> timedelta | None:
    """Return the pause before the next attempt, doubled each time; None if no retry follows.

    Failures of the platform do not count against the retries of the asset: such failures are
    retried until the pauses add up to PLATFORM_RETRY_HOURS. Losses of a process or a worker, each
    of which the run itself may have caused, are retried until loss number LOST_ATTEMPTS_LIMIT.
    """
    if kind is FailureKind.DATA:
        return None
    if kind is FailureKind.PLATFORM:
        return _platform_delay(run, is_loss=is_loss)
    spec = run.producer_version.spec
    if run.code_failures >= spec.retries:
        return None
    # A version that was stored before declarations had bounds may ask for any number.
    seconds = min(spec.retry_delay, LONGEST_RETRY_DELAY.total_seconds())
    return _doubled(timedelta(seconds=seconds), run.code_failures, LONGEST_RETRY_DELAY)


def is_lost_too_often(run: Run) -> bool:
    """Return whether the present loss of a process or worker is the last that the run may have."""
    allowed: int = settings.LOST_ATTEMPTS_LIMIT
    return run.lost_attempts + 1 >= allowed


def platform_pause(failures: int) -> timedelta:
    """Return the pause after a failure of the platform, given the number of failures before."""
    first = timedelta(seconds=settings.PLATFORM_RETRY_PAUSE_SECONDS)
    longest = timedelta(seconds=settings.PLATFORM_RETRY_LONGEST_PAUSE_SECONDS)
    return _doubled(first, failures, longest)


def _platform_delay(run: Run, *, is_loss: bool) -> timedelta | None:
    if is_loss:
        return None if is_lost_too_often(run) else platform_pause(run.lost_attempts)
    waited = sum(map(platform_pause, range(run.platform_failures)), timedelta())
    if waited >= timedelta(hours=settings.PLATFORM_RETRY_HOURS):
        return None
    return platform_pause(run.platform_failures)


def _doubled(first: timedelta, times: int, longest: timedelta) -> timedelta:
    """Return ``first``, doubled so many ``times``, but no longer than ``longest``."""
    delay: timedelta = min(first, longest) * 2 ** min(times, 30)
    return min(delay, longest)
