"""How an attempt at a run ends: well, or with another one to come, or for good."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from assets_app.catalogue.texts import storable
from assets_app.execution.attempts import still_held
from assets_app.execution.hooks import leave_hook
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

# Failures of the platform are retried beside what the asset says of its own: for some two minutes,
# so that a Spark server has time to come back.
PLATFORM_RETRIES = 7
_PLATFORM_RETRY_DELAY = timedelta(seconds=1)
# A run that finds others in its way looks again after as long as it has been at it, within these.
_STEP_BACK, _STEP_BACK_LONGEST = timedelta(seconds=5), timedelta(minutes=10)
# No run of another is waited for any longer.
_PATIENCE = timedelta(hours=6)
_COUNTERS = {FailureKind.CODE: "code_failures", FailureKind.PLATFORM: "platform_failures"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an attempt failed: a line for people, the traceback, and whose fault it was."""

    error: str
    traceback: str = ""
    kind: FailureKind = FailureKind.CODE

    def __post_init__(self) -> None:
        for name in ("error", "traceback"):
            object.__setattr__(self, name, storable(getattr(self, name)))


@transaction.atomic
def succeed(attempt: RunAttempt) -> bool:
    """Record that the data is published; False if somebody else has done so or holds the run."""
    if not still_held(attempt):
        return False
    if not move(
        attempt.run_id, RunState.PUBLISHING, RunState.SUCCEEDED, ended_at=timezone.now(), error=""
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
        attempt.run_id, RunState.PUBLISHING, RunState.FAILED, ended_at=timezone.now(), **said
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
    delay = retry_delay(run, failure.kind)
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
    """Its work has been stopped: only now the run is canceled."""
    if not still_held(attempt):
        return False
    if not move(attempt.run_id, RunState.CANCELING, RunState.CANCELED, ended_at=timezone.now()):
        return False
    release_canceled([attempt.run_id])
    _end(attempt, AttemptOutcome.CANCELED)
    nudge_dispatch()
    return True


@transaction.atomic
def hand_back(attempt: RunAttempt, reason: str, *, counts: bool = False) -> bool:
    """Put the run back in the queue: its worker goes down in good order, or was lost, which counts
    as a failure.
    """
    if not still_held(attempt):
        return False
    moved = move(
        attempt.run_id,
        RunState.RUNNING,
        RunState.QUEUED,
        queued_at=timezone.now(),
        not_before=None,
        platform_failures=F("platform_failures") + int(counts),
    )
    if moved:
        _end(attempt, AttemptOutcome.LOST, Failure(error=reason, kind=FailureKind.PLATFORM))
        nudge_dispatch()
    return moved


def _found_by(attempt: RunAttempt) -> Found:
    found: Found = RunAttempt.objects.values_list("found", flat=True).get(pk=attempt.pk)
    return found


def _end(attempt: RunAttempt, outcome: AttemptOutcome, failure: Failure | None = None) -> None:
    RunAttempt.objects.filter(pk=attempt.pk).update(
        outcome=outcome,
        ended_at=timezone.now(),
        error=failure.error if failure else "",
        traceback=failure.traceback if failure else "",
    )


def retry_delay(run: Run, kind: FailureKind) -> timedelta | None:
    """How long to wait for the next attempt, doubling each time; None when no retry is left."""
    if kind is FailureKind.PLATFORM:
        failures, allowed, first = run.platform_failures, PLATFORM_RETRIES, _PLATFORM_RETRY_DELAY
    else:
        definition = run.producer_version.definition
        failures, allowed = run.code_failures, definition.get("retries") or 0
        first = timedelta(seconds=definition.get("retry_delay") or 0)
    if failures >= allowed:
        return None
    delay: timedelta = min(first * 2**failures, timedelta(hours=1))
    return delay
