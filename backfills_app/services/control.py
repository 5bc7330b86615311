"""Pausing, resuming, canceling and deleting a backfill.

A request is recorded and waits for nothing that takes long; `carrying` carries it out.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.utils import timezone

from accounts_app import audit, policy
from accounts_app.errors import ConflictingRequest
from accounts_app.models import User
from accounts_app.policy import Action
from assets_app.execution.messages import nudge_dispatch
from assets_app.models import RunGroup
from backfills_app.models import Backfill, BackfillState, PendingControl
from backfills_app.services.carrying import carry_out_now, leave
from backfills_app.services.counting import derive_states
from backfills_app.services.messages import nudge_advance
from backfills_app.services.outlets import assets_made

Verb = PendingControl.Verb


def require_control(backfill: Backfill, action: Action, user: User) -> None:
    """Raise PermissionDenied unless the user may do this to all that the backfill makes."""
    policy.require_for_assets(user, action, assets_made(backfill))


@contextmanager
def asked_of(backfill: Backfill, action: Action, user: User) -> Iterator[Backfill]:
    """Open a short transaction for a request about a backfill, and lock and yield its present row.
    All that count its partitions lock that row last, so that none keeps it for long.

    Raises PermissionDenied unless the user may do this to all that it makes, and
    ConflictingRequest if it was deleted.
    """
    require_control(backfill, action, user)
    with transaction.atomic():
        rows = Backfill.objects.select_related("group", "asset", "submitted_by")
        present = rows.select_for_update(of=("self",), no_key=True).get(pk=backfill.pk)
        if present.deleted:
            raise ConflictingRequest({"": f"{present.name} was deleted."})
        yield present


def pause_backfill(backfill: Backfill, *, user: User) -> Backfill:
    """Start nothing more of it; what runs goes on to its end, and it goes on being written down.

    Runs that have not begun give their partitions back, so that others can make them.
    Raises ConflictingRequest unless it is on its way.
    """
    with asked_of(backfill, Action.BACKFILL, user) as present:
        require_unfinished(present, "pause")
        if present.group.paused:
            raise ConflictingRequest({"": f"{present.name} is paused already."})
        _set_paused(present, True)
        leave(present, Verb.WITHDRAW)
        audit.record(user, "pause", "backfill", present.name)
    carry_out_now(backfill.pk)
    return _fresh(backfill)


def resume_backfill(backfill: Backfill, *, user: User) -> Backfill:
    """Let it go on, at once. Raises ConflictingRequest if it is not paused."""
    with asked_of(backfill, Action.BACKFILL, user) as present:
        if present.ended or not present.paused:
            raise ConflictingRequest({"": _why_not_resumed(present)})
        _set_paused(present, False)
        audit.record(user, "resume", "backfill", present.name)
        nudge_advance()
        nudge_dispatch()
    return _fresh(backfill)


def _why_not_resumed(backfill: Backfill) -> str:
    message = f"{backfill.name} is not paused: {standing(backfill)}"
    if backfill.state == BackfillState.CANCELED:
        return f"{message} To go on after all, retry it with its canceled partitions."
    return message


def cancel_backfill(backfill: Backfill, *, user: User) -> Backfill:
    """End what waits or is queued, and stop what runs: it is canceled only when all has ended.

    Nothing of it starts from now on. Raises ConflictingRequest if it has ended or is being canceled
    already.
    """
    with asked_of(backfill, Action.CANCEL, user) as present:
        require_unfinished(present, "cancel")
        Backfill.objects.filter(pk=present.pk).update(
            state=BackfillState.CANCELING, updated_at=timezone.now()
        )
        RunGroup.objects.filter(pk=present.group_id).update(paused=True)
        nudge_advance()
        audit.record(user, "cancel", "backfill", present.name)
    carry_out_now(backfill.pk)
    return _fresh(backfill)


def delete_backfill(backfill: Backfill, *, user: User) -> Backfill:
    """Take it off the lists; its record stays. Raises ConflictingRequest unless it has ended."""
    with asked_of(backfill, Action.BACKFILL, user) as present:
        if not present.ended:
            only = "Only a backfill that has ended can be deleted: cancel it first."
            raise ConflictingRequest({"": f"{standing(present)} {only}"})
        now = timezone.now()
        Backfill.objects.filter(pk=present.pk).update(deleted=True, delete_date=now, updated_at=now)
        audit.record(user, "delete", "backfill", present.name)
    return _fresh(backfill)


def require_unfinished(backfill: Backfill, verb: str) -> None:
    """Raise ConflictingRequest unless something of it is still to come."""
    if backfill.ended or backfill.state == BackfillState.CANCELING:
        state = backfill.get_state_display().lower()
        more = "" if verb == "cancel" else f" There is nothing left to {verb}."
        raise ConflictingRequest({"": f"{backfill.name} is {state} already.{more}"})


def standing(backfill: Backfill) -> str:
    """Return a sentence with the state of a backfill."""
    return f"{backfill.name} is {backfill.get_state_display().lower()}."


def _set_paused(backfill: Backfill, paused: bool) -> None:
    # Its row is locked before its group's, as at the end of its last run.
    RunGroup.objects.filter(pk=backfill.group_id).update(paused=paused)
    derive_states([backfill.pk])


def _fresh(backfill: Backfill) -> Backfill:
    backfill.refresh_from_db()
    return backfill
