"""The ends of attempts at runs: success, failure, cancellation, or a requeue of the run."""

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F, Q

from assets_app.catalogue.texts import storable
from assets_app.execution.attempt.leases import end_lease, found_if_held, still_held
from assets_app.execution.attempt.outputs import add_discovered_keys
from assets_app.execution.attempt.phases import AttemptEnd, announce_end
from assets_app.execution.attempt.retry_pauses import platform_pause, retry_delay
from assets_app.execution.attempt.steps import settle_steps
from assets_app.execution.data.recorded import Totals, record_totals
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
from assets_app.queries.clock import database_now, database_time
from assets_app.queries.prepared_statements import prepared_cursor
from assets_app.signals import attempt_ended

# The pause of a run with other runs in its way: as long as the run has been tried, within bounds.
_STEP_BACK, _STEP_BACK_LONGEST = timedelta(seconds=5), timedelta(minutes=10)
# No run waits longer than this for other runs in its way.
_LONGEST_CONFLICT = timedelta(hours=6)
# The time after an attempt at which a worker looks for remaining work and data.
CLEAR_AFTER = timedelta(minutes=2)
# One statement: traces and others get the time without another one.
_RECORD_END = """
UPDATE assets_app_runattempt
SET outcome = %(outcome)s, ended_at = clock_timestamp(),
    clear_at = clock_timestamp() + %(clear_after)s::interval,
    error = %(error)s, traceback = %(traceback)s, may_go_on = may_go_on OR %(may_go_on)s,
    cpu_seconds = %(cpu_seconds)s, peak_memory = %(peak_memory)s
WHERE id = %(id)s RETURNING ended_at
"""
_REQUEUE = RunState.RUNNING, RunState.QUEUED
_CANCEL = RunState.CANCELING, RunState.CANCELED
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
def succeed(attempt: RunAttempt, totals: Totals | None = None, *, is_clean: bool = True) -> bool:
    """Record that the data is published; return False if another worker has done so or holds the
    run.

    ``totals`` are the measures of partitions that the run has appended to. Unless ``is_clean``,
    staged data is left, for a worker to remove later.
    """
    found_keys = found_if_held(attempt)
    if found_keys is None:
        return False

    def settle() -> None:
        record_success(attempt.run_id, attempt.pk)
        record_totals(attempt.run_id, totals or {})
        add_discovered_keys(found_keys, attempt.run_id)

    # A worker that publishes removes its staging, unless an earlier worker may still write there.
    end = _End(AttemptOutcome.SUCCEEDED, is_clean=is_clean and attempt.fence == 1)
    transition = RunState.PUBLISHING, RunState.SUCCEEDED
    return _conclude(
        attempt, transition, end, settle, HookOption.ON_SUCCESS, ended_at=database_time(), error=""
    )


@transaction.atomic
def fail_publishing(
    attempt: RunAttempt,
    failure: Failure,
    published: Mapping[int, Collection[str]],
    totals: Totals | None = None,
) -> bool:
    """Fail a run whose publication cannot go on, and record the partitions that are published.

    ``published`` has the paths of these partitions by the id of their asset; ``totals`` are as in
    `succeed`. All other partitions have failed, and only discovered keys with data in place are
    added. Returns False if the run no longer belongs to this attempt.
    """
    found_keys = found_if_held(attempt)
    if found_keys is None:
        return False

    def settle() -> None:
        record_partial_success(attempt.run_id, attempt.pk, published)
        record_totals(attempt.run_id, totals or {})
        add_discovered_keys(found_keys, attempt.run_id, only=published_keys(attempt.run_id))

    end = _End(AttemptOutcome.FAILED, failure)
    transition = RunState.PUBLISHING, RunState.FAILED
    changes = _failure_changes(failure) | {"ended_at": database_time()}
    return _conclude(attempt, transition, end, settle, HookOption.ON_FAILURE, **changes)


@transaction.atomic
def fail(attempt: RunAttempt, failure: Failure) -> bool:
    """End a running attempt: queue another attempt if a retry is left, otherwise fail the run."""
    if not still_held(attempt):
        return False
    run = Run.objects.select_related("producer_version").get(pk=attempt.run_id)
    end, changes = _End(AttemptOutcome.FAILED, failure), _failure_changes(failure)
    delay, now = retry_delay(run, failure.kind, is_loss=failure.is_loss), database_now()
    if delay is not None:
        return _conclude(attempt, _REQUEUE, end, queued_at=now, not_before=now + delay, **changes)
    return _conclude(
        attempt,
        (RunState.RUNNING, RunState.FAILED),
        end,
        partial(release_failed, [run.pk]),
        HookOption.ON_FAILURE,
        ended_at=now,
        **changes,
    )


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
    return _conclude(
        attempt,
        _REQUEUE,
        _End(AttemptOutcome.FAILED, failure),
        queued_at=now,
        not_before=now + max(_STEP_BACK, min(now - started_at, _STEP_BACK_LONGEST)),
        error=failure.error,
        error_kind=failure.kind,
    )


@transaction.atomic
def cancel(attempt: RunAttempt) -> bool:
    """End a run as canceled, after its work has been stopped."""
    if not still_held(attempt):
        return False
    return _conclude(
        attempt,
        _CANCEL,
        _End(AttemptOutcome.CANCELED),
        partial(release_canceled, [attempt.run_id]),
        ended_at=database_time(),
    )


@transaction.atomic
def cancel_cleared(run_id: int) -> bool:
    """End a run that was canceled in the queue, once no attempt at the run goes on."""
    # By its id alone: who cancels the run holds the row, and the state is read afterwards.
    run = Run.objects.select_for_update().filter(pk=run_id).first()
    attempts = RunAttempt.objects.filter(run=run_id)
    if run is None or attempts.filter(Q(ended_at__isnull=True) | Q(may_go_on=True)).exists():
        return False
    if not move(run_id, *_CANCEL, ended_at=database_time()):
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
    failure = Failure(error=reason, kind=FailureKind.PLATFORM)
    return _conclude(
        attempt,
        _REQUEUE,
        _End(AttemptOutcome.LOST, failure, may_go_on=not is_cleared),
        queued_at=now,
        not_before=pause and now + pause,
        platform_failures=F("platform_failures") + int(counts),
        lost_attempts=F("lost_attempts") + int(counts),
    )


@dataclass(frozen=True, slots=True)
class _End:
    """The facts that are recorded of an attempt that ends."""

    outcome: AttemptOutcome
    failure: Failure | None = None
    _: KW_ONLY
    # No staged data is left for a worker to remove later.
    is_clean: bool = False
    # The work on Spark may go on.
    may_go_on: bool = False


def _conclude(
    attempt: RunAttempt,
    transition: tuple[RunState, RunState],
    end: _End,
    settle: Callable[[], None] | None = None,
    hook: HookOption | None = None,
    **changes: Any,
) -> bool:
    """Move the run of an attempt that the caller has locked, and end the attempt; return False,
    with nothing changed, if the run is in another state.

    ``settle`` records the outcome of the run's partitions, ``changes`` are fields of the run.
    """
    if not move(attempt.run_id, *transition, **changes):
        return False
    if settle is not None:
        settle()
    _record_end(attempt, end, transition[1])
    if hook is not None:
        leave_hook(attempt, hook)
    nudge_dispatch()
    return True


def _failure_changes(failure: Failure) -> dict[str, Any]:
    """Return the fields of a run that count and describe a failure."""
    counter = _COUNTERS[failure.kind]
    changes = {"error": failure.error, "error_kind": failure.kind, counter: F(counter) + 1}
    if failure.is_loss:
        changes["lost_attempts"] = F("lost_attempts") + 1
    return changes


def _record_end(attempt: RunAttempt, end: _End, run_state: RunState) -> None:
    failure = end.failure or Failure(error="")
    values: dict[str, Any] = {
        "id": attempt.pk,
        "outcome": end.outcome,
        "clear_after": None if end.is_clean else CLEAR_AFTER,
        "error": failure.error,
        "traceback": failure.traceback,
        "cpu_seconds": attempt.cpu_seconds,
        "peak_memory": attempt.peak_memory,
        "may_go_on": end.may_go_on,
    }
    with prepared_cursor() as cursor:
        cursor.execute(_RECORD_END, values)
        ended_at: datetime = cursor.fetchone()[0]
    settle_steps(attempt, failure.error if end.outcome == AttemptOutcome.LOST else "")
    end_lease(attempt)
    attempt_ended.send(sender=None, attempt_id=attempt.pk)
    announce_end(attempt, AttemptEnd(end.outcome, ended_at, failure.error, run_state))
