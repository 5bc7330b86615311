"""Cancellation of runs: queued runs end at once, running runs once all work on Spark has ended.

A queued run whose lost attempt may still work on Spark is canceled like a running run.
"""

from django.db import transaction

from accounts_app import audit, policy
from accounts_app.models import User
from assets_app.execution.queue.settling import release_canceled
from assets_app.execution.queue.transitions import is_terminal, move_all
from assets_app.models import Run, RunAttempt, RunGroup, RunState
from assets_app.queries.clock import database_now
from slicewise_server.web.request_errors import ConflictingRequest

CANCELABLE_STATES = (
    RunState.WAITING,
    RunState.QUEUED,
    RunState.DISPATCHED,
    RunState.RUNNING,
)


def cancel_run(run: Run, *, user: User) -> Run:
    """Cancel a run; raise ConflictingRequest if the run has ended or is publishing data."""
    policy.require(user, policy.Action.CANCEL)
    with transaction.atomic():
        if not _cancel([run.pk]):
            run.refresh_from_db()
            raise ConflictingRequest({"": _too_late(run)})
        audit.record(user, "cancel", "run", str(run.pk), {"asset": run.asset.name})
    run.refresh_from_db()
    return run


def cancel_group(group: RunGroup, *, user: User) -> int:
    """Cancel all runs of a group that can still be canceled; return the number of these runs."""
    policy.require(user, policy.Action.CANCEL)
    with transaction.atomic():
        canceled = cancel_runs_of(group)
        audit.record(user, "cancel", "request", str(group.pk), {"runs": canceled})
    return canceled


def cancel_some_runs_of(group: RunGroup, most: int) -> int:
    """Cancel runs of a group, of some ``most`` partitions and one run at least; return their
    number.

    A run that another transaction is just moving or recording is not waited for: the next call sees
    the run.
    """
    unfinished = Run.objects.filter(group=group, state__in=CANCELABLE_STATES).order_by("id")
    chosen, partitions = [], 0
    for run_id, number in unfinished.values_list("id", "partition_count"):
        if partitions >= most:
            break
        chosen.append(run_id)
        partitions += number
    free = Run.objects.filter(pk__in=chosen).order_by("id").select_for_update(skip_locked=True)
    return len(_cancel(list(free.values_list("id", flat=True))))


def cancel_runs_of(group: RunGroup) -> int:
    """Cancel all runs of a group; the calling service checks the policy and writes the
    audit entry.
    """
    unfinished = Run.objects.filter(group=group, state__in=CANCELABLE_STATES)
    return len(_cancel(list(unfinished.order_by("id").values_list("id", flat=True))))


def _cancel(run_ids: list[int]) -> list[int]:
    now = database_now()
    # Rows are locked first: a run that is requeued meanwhile would slip between two statements.
    locked = Run.objects.select_for_update().filter(pk__in=run_ids).order_by("id")
    run_ids = list(locked.values_list("id", flat=True))
    at_work = RunAttempt.objects.filter(run__in=run_ids, may_go_on=True)
    lost = set(at_work.values_list("run", flat=True))
    stopping = move_all(run_ids, RunState.RUNNING, RunState.CANCELING)
    for state in (RunState.QUEUED, RunState.DISPATCHED):
        stopping += move_all(lost, state, RunState.CANCELING)
    if lost:
        at_work.filter(ended_at__isnull=False).update(clear_at=database_now())
    ended: list[int] = []
    for state in (RunState.WAITING, RunState.QUEUED, RunState.DISPATCHED):
        ended += move_all(run_ids, state, RunState.CANCELED, ended_at=now)
    release_canceled(ended)
    return ended + stopping


def _too_late(run: Run) -> str:
    if is_terminal(run.state):
        return f"Run {run.pk} has ended already: {run.get_state_display().lower()}."
    return f"Run {run.pk} is {run.get_state_display().lower()}: it can no longer be canceled."
