"""Pause, resume, cancel and delete of a backfill.

A request is recorded without long waits; `carrying` carries it out.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from accounts_app import audit, policy
from accounts_app.models import User
from accounts_app.policy import Action
from assets_app.execution.queue.messages import nudge_dispatch
from assets_app.models import RunGroup
from assets_app.queries.clock import database_now
from backfills_app.models import Backfill, BackfillState, PendingControl
from backfills_app.services.advance.carrying import carry_out_now, record_request
from backfills_app.services.bookkeeping.counting import derive_states
from backfills_app.services.bookkeeping.messages import nudge_advance
from backfills_app.services.partitions.outlets import assets_made
from slicewise_server.web.request_errors import ConflictingRequest

Verb = PendingControl.Verb


def require_control(backfill: Backfill, action: Action, user: User) -> None:
    """Raise PermissionDenied unless the user may do this to all assets that the backfill writes."""
    policy.require_for_assets(user, action, assets_made(backfill))


@contextmanager
def locked_for_request(backfill: Backfill, action: Action, user: User) -> Iterator[Backfill]:
    """Open a short transaction for a request about a backfill; lock and yield the backfill's row.

    Transactions that count partitions lock that row last, so that none of them keeps the lock for
    long. Raises PermissionDenied unless the user may do this to all assets that the backfill
    writes, and ConflictingRequest if the backfill was deleted.
    """
    require_control(backfill, action, user)
    with transaction.atomic():
        # The group is read under the lock, not in the locking query: another request may have
        # changed the group while the query waited for the lock.
        rows = Backfill.objects.select_related("asset", "submitted_by")
        locked_backfill = rows.select_for_update(of=("self",), no_key=True).get(pk=backfill.pk)
        if locked_backfill.deleted:
            raise ConflictingRequest({"": f"{locked_backfill.name} was deleted."})
        yield locked_backfill


def pause_backfill(backfill: Backfill, *, user: User) -> Backfill:
    """Pause a backfill: no more runs start, active runs go on to their end, and expansion
    continues.

    Runs that have not begun are withdrawn, so that other runs can claim their partitions. Raises
    ConflictingRequest unless the backfill is unfinished.
    """
    with locked_for_request(backfill, Action.BACKFILL, user) as locked_backfill:
        require_unfinished(locked_backfill, "pause")
        if locked_backfill.group.paused:
            raise ConflictingRequest({"": f"{locked_backfill.name} is paused already."})
        _set_paused(locked_backfill, True)
        record_request(locked_backfill, Verb.WITHDRAW)
        audit.record(user, "pause", "backfill", locked_backfill.name)
    carry_out_now(backfill.pk)
    return _refreshed(backfill)


def resume_backfill(backfill: Backfill, *, user: User) -> Backfill:
    """Resume a backfill at once. Raises ConflictingRequest if the backfill is not paused."""
    with locked_for_request(backfill, Action.BACKFILL, user) as locked_backfill:
        if locked_backfill.ended or not locked_backfill.paused:
            raise ConflictingRequest({"": _why_not_resumed(locked_backfill)})
        _set_paused(locked_backfill, False)
        audit.record(user, "resume", "backfill", locked_backfill.name)
        nudge_advance()
        nudge_dispatch()
    return _refreshed(backfill)


def _why_not_resumed(backfill: Backfill) -> str:
    message = f"{backfill.name} is not paused: {state_sentence(backfill)}"
    if backfill.state == BackfillState.CANCELED:
        return (
            f"{message} To continue, retry the backfill with canceled partitions. For partitions"
            " that were not created before the cancellation, clone the backfill."
        )
    return message


def cancel_backfill(backfill: Backfill, *, user: User) -> Backfill:
    """Cancel a backfill: end waiting and queued partitions, and stop active runs.

    No run starts from now on, and the state is canceled only when all runs have ended. Raises
    ConflictingRequest if the backfill has ended or is being canceled already.
    """
    with locked_for_request(backfill, Action.CANCEL, user) as locked_backfill:
        require_unfinished(locked_backfill, "cancel")
        Backfill.objects.filter(pk=locked_backfill.pk).update(
            state=BackfillState.CANCELING, updated_at=database_now()
        )
        RunGroup.objects.filter(pk=locked_backfill.group_id).update(paused=True)
        nudge_advance()
        audit.record(user, "cancel", "backfill", locked_backfill.name)
    carry_out_now(backfill.pk)
    return _refreshed(backfill)


def delete_backfill(backfill: Backfill, *, user: User) -> Backfill:
    """Remove a backfill from the lists; its record stays. Raises ConflictingRequest unless it has
    ended.
    """
    with locked_for_request(backfill, Action.BACKFILL, user) as locked_backfill:
        if not locked_backfill.ended:
            hint = "Only a backfill that has ended can be deleted: cancel the backfill first."
            raise ConflictingRequest({"": f"{state_sentence(locked_backfill)} {hint}"})
        now = database_now()
        Backfill.objects.filter(pk=locked_backfill.pk).update(
            deleted=True, delete_date=now, updated_at=now
        )
        audit.record(user, "delete", "backfill", locked_backfill.name)
    return _refreshed(backfill)


def require_unfinished(backfill: Backfill, verb: str) -> None:
    """Raise ConflictingRequest if the backfill has ended or is being canceled."""
    if backfill.ended or backfill.state == BackfillState.CANCELING:
        state = backfill.get_state_display().lower()
        hint = "" if verb == "cancel" else f" Nothing is left to {verb}."
        raise ConflictingRequest({"": f"{backfill.name} is {state} already.{hint}"})


def state_sentence(backfill: Backfill) -> str:
    """Return a sentence with the state of a backfill."""
    return f"{backfill.name} is {backfill.get_state_display().lower()}."


def _set_paused(backfill: Backfill, paused: bool) -> None:
    # The backfill's row is locked before its group's row, as at the end of the last run.
    RunGroup.objects.filter(pk=backfill.group_id).update(paused=paused)
    derive_states([backfill.pk])


def _refreshed(backfill: Backfill) -> Backfill:
    backfill.refresh_from_db()
    return backfill
