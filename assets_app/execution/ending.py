"""How an attempt at a run ends: well, or with another one to come, or for good."""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from assets_app.catalogue.texts import storable
from assets_app.execution.hooks import leave_hook
from assets_app.execution.leases import end_lease, still_held
from assets_app.execution.messages import nudge_dispatch
from assets_app.execution.outputs import Found, add_found
from assets_app.execution.settling import (
    published_keys,
    record_partly,
    record_success,
    release_canceled,
    release_failed,
)
from assets_app.execution.transitions import move
from assets_app.models import (
    AttemptOutcome,
    FailureKind,
    HookOption,
    Run,
    RunAttempt,
    RunState,
)
from assets_app.queries.clock import database_now
from slicewise.option_checks import LONGEST_RETRY_DELAY

# A run that finds others in its way looks again after as long as it has been at it, within these.
_STEP_BACK, _STEP_BACK_LONGEST = timedelta(seconds=5), timedelta(minutes=10)
# No run of another is waited for any longer.
_PATIENCE = timedelta(hours=6)
# So long after an attempt has come to nothing a worker looks whether something of it is left.
CLEAR_AFTER = timedelta(minutes=2)
_COUNTERS = {
    FailureKind.CODE: "code_failures",
    FailureKind.PLATFORM: "platform_failures",
    FailureKind.DATA: "code_failures",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an attempt failed: a line for people, the traceback, and whose fault it was."""

    error: str
    traceback: str = ""
    kind: FailureKind = FailureKind.CODE
    # Its process was killed: by the kernel for want of memory, which may happen each time.
    is_loss: bool = False

    def __post_init__(self) -> None:
        for name in ("error", "traceback"):
            object.__setattr__(self, name, storable(getattr(self, name)))


@transaction.atomic
def succeed(attempt: RunAttempt) -> bool:
    """Record that the data is published; False if somebody else has done so or holds the run."""
    if not still_held(attempt):
        return False
    if not move(
        attempt.run_id, RunState.PUBLISHING, RunState.SUCCEEDED, ended_at=database_now(), error=""
    ):
        return False
    record_success(attempt.run_id, attempt.pk)
    add_found(_found_by(attempt), attempt.run_id)
    _end(attempt, AttemptOutcome.SUCCEEDED)
    leave_hook(attempt, HookOption.ON_SUCCESS)
    nudge_dispatch()
    return True


@transaction.atomic
def fail_publishing(
    attempt: RunAttempt, failure: Failure, published: Mapping[int, Collection[str]]
) -> bool:
    """Give up a publication that cannot go on.

    What is in place by then is recorded, by the id of its asset and its folders, the rest has
    failed. Of keys that the run has found those are added of which data is in place.
    """
    if not still_held(attempt):
        return False
    counter = _COUNTERS[failure.kind]
    said = {"error": failure.error, "error_kind": failure.kind, counter: F(counter) + 1}
    if not move(
        attempt.run_id, RunState.PUBLISHING, RunState.FAILED, ended_at=database_now(), **said
    ):
        return False
    record_partly(attempt.run_id, attempt.pk, published)
    add_found(_found_by(attempt), attempt.run_id, only=published_keys(attempt.run_id))
    _end(attempt, AttemptOutcome.FAILED, failure)
    leave_hook(attempt, HookOption.ON_FAILURE)
    nudge_dispatch()
    return True


@transaction.atomic
def fail(attempt: RunAttempt, failure: Failure) -> bool:
    """End a running attempt: another one where retries are left, else the run has failed."""
    if not still_held(attempt):
        return False
    run = Run.objects.select_related("producer_version").get(pk=attempt.run_id)
    counter = _COUNTERS[failure.kind]
    said = {"error": failure.error, "error_kind": failure.kind, counter: F(counter) + 1}
    if failure.is_loss:
        said["lost_attempts"] = F("lost_attempts") + 1
    delay = retry_delay(run, failure.kind, is_loss=failure.is_loss)
    now = database_now()
    if delay is not None:
        moved = move(
            run.pk, RunState.RUNNING, RunState.QUEUED, not_before=now + delay, queued_at=now, **said
        )
    else:
        moved = move(run.pk, RunState.RUNNING, RunState.FAILED, ended_at=now, **said)
        if moved:
            release_failed([run.pk])
            leave_hook(attempt, HookOption.ON_FAILURE)
    if moved:
        _end(attempt, AttemptOutcome.FAILED, failure)
        nudge_dispatch()
    return moved


@transaction.atomic
def step_back(attempt: RunAttempt, reason: str) -> bool:
    """Queue the run again for when others in its way may have ended, which is no failure of its
    own; one that has been at it for hours fails. False if it is not this attempt's to say.
    """
    if not still_held(attempt):
        return False
    now, failure = database_now(), Failure(error=reason, kind=FailureKind.PLATFORM)
    begun = Run.objects.values_list("started_at", flat=True).get(pk=attempt.run_id) or now
    if now - begun > _PATIENCE:
        return fail(attempt, failure)
    moved = move(
        attempt.run_id,
        RunState.RUNNING,
        RunState.QUEUED,
        queued_at=now,
        not_before=now + max(_STEP_BACK, min(now - begun, _STEP_BACK_LONGEST)),
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
    """End a run that was canceled in the queue, once none of its attempts goes on."""
    # By its id alone: whoever cancels it now holds it, and its state is read afterwards.
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
def hand_back(
    attempt: RunAttempt, reason: str, *, counts: bool = False, is_cleared: bool = False
) -> bool:
    """Put the run back in the queue: its worker goes down in good order, or was lost, which counts
    as a failure. Unless ``is_cleared``, its work on Spark may go on.

    A run that was lost more than once comes back after a pause of random length, so that those
    which were lost together come back apart.
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


def _found_by(attempt: RunAttempt) -> Found:
    found: Found = RunAttempt.objects.values_list("found", flat=True).get(pk=attempt.pk)
    return found


def _end(attempt: RunAttempt, outcome: AttemptOutcome, failure: Failure | None = None) -> None:
    # Who publishes removes what it has staged, unless another worker may still write to it.
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
    """Return how long to wait for the next attempt, doubling each time; None when no retry is left,
    or none would help.

    Failures of the platform do not count against the retries of the asset: they are retried until
    their pauses add up to PLATFORM_RETRY_HOURS, and losses of a process or a worker, each of which
    the run itself may have caused, until the loss that is number LOST_ATTEMPTS_LIMIT.
    """
    if kind is FailureKind.DATA:
        return None
    if kind is FailureKind.PLATFORM:
        return _platform_delay(run, is_loss=is_loss)
    definition = run.producer_version.definition
    if run.code_failures >= (definition.get("retries") or 0):
        return None
    # A version that was stored before declarations were bounded may ask for any number.
    seconds = min(definition.get("retry_delay") or 0, LONGEST_RETRY_DELAY.total_seconds())
    return _doubled(timedelta(seconds=seconds), run.code_failures, LONGEST_RETRY_DELAY)


def is_lost_too_often(run: Run) -> bool:
    """Return whether the present loss of its process or worker is the last that a run may have."""
    allowed: int = settings.LOST_ATTEMPTS_LIMIT
    return run.lost_attempts + 1 >= allowed


def platform_pause(failures: int) -> timedelta:
    """Return the pause after a failure of the platform, given how many came before it."""
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
    """Return the span, doubled so many times, but no longer than the longest."""
    delay: timedelta = min(first, longest) * 2 ** min(times, 30)
    return min(delay, longest)
