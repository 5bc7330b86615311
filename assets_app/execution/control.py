"""Stopping what was asked for: queued runs end at once, running ones are told to, and end when they
have.
"""

from django.db import transaction
from django.utils import timezone

from accounts_app import audit, policy
from accounts_app.errors import ConflictingRequest
from accounts_app.models import User
from assets_app.execution.settling import release_canceled
from assets_app.execution.transitions import is_terminal, move_all
from assets_app.models import TERMINAL_STATES, Run, RunGroup, RunState


def cancel_run(run: Run, *, user: User) -> Run:
    """Cancel one run; ConflictingRequest if it has ended or its data is being published."""
    policy.require(user, policy.Action.CANCEL)
    with transaction.atomic():
        if not _cancel([run.pk]):
            run.refresh_from_db()
            raise ConflictingRequest({"": _too_late(run)})
        audit.record(user, "cancel", "run", str(run.pk), {"asset": run.asset.name})
    run.refresh_from_db()
    return run


def cancel_group(group: RunGroup, *, user: User) -> int:
    """Cancel all runs of a group that can still be canceled; how many that were."""
    policy.require(user, policy.Action.CANCEL)
    with transaction.atomic():
        canceled = cancel_runs_of(group)
        audit.record(user, "cancel", "request", str(group.pk), {"runs": canceled})
    return canceled


def hold_runs_of(group: RunGroup) -> None:
    """Keep all runs of a group that have not ended as they are, for the caller's transaction."""
    going_on = Run.objects.exclude(state__in=TERMINAL_STATES).filter(group=group)
    list(going_on.select_for_update().order_by("id").values_list("id", flat=True))


def cancel_runs_of(group: RunGroup) -> int:
    """The same for services that have asked the policy and leave an entry of their own."""
    unfinished = Run.objects.filter(
        group=group,
        state__in=(RunState.WAITING, RunState.QUEUED, RunState.DISPATCHED, RunState.RUNNING),
    )
    return len(_cancel(list(unfinished.order_by("id").values_list("id", flat=True))))


def _cancel(run_ids: list[int]) -> list[int]:
    now = timezone.now()
    # Held still first: a run that goes back to the queue meanwhile would slip between two looks.
    held = Run.objects.select_for_update().filter(pk__in=run_ids).order_by("id")
    run_ids = list(held.values_list("id", flat=True))
    ended: list[int] = []
    for state in (RunState.WAITING, RunState.QUEUED, RunState.DISPATCHED):
        ended += move_all(run_ids, state, RunState.CANCELED, ended_at=now)
    stopping = move_all(run_ids, RunState.RUNNING, RunState.CANCELING)
    release_canceled(ended)
    return ended + stopping


def _too_late(run: Run) -> str:
    if is_terminal(run.state):
        return f"Run {run.pk} has ended already: {run.get_state_display().lower()}."
    return f"Run {run.pk} is {run.get_state_display().lower()}: it can no longer be canceled."
