"""Holding a backfill back, letting it go on, stopping it, and putting it away."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from accounts_app import audit, policy
from accounts_app.errors import ConflictingRequest
from accounts_app.models import User
from accounts_app.policy import Action
from assets_app.catalogue.texts import storable
from assets_app.execution.control import cancel_runs_of, hold_runs_of
from assets_app.execution.messages import nudge_dispatch
from assets_app.models import RunGroup
from backfills_app.models import (
    ENDED_STATES,
    Backfill,
    BackfillAsset,
    BackfillPartition,
    BackfillState,
)
from backfills_app.services.counting import derive_states, shift_counts
from backfills_app.services.layers import assets_made
from backfills_app.services.locks import lock, try_lock
from backfills_app.services.messages import nudge_advance
from backfills_app.services.withdrawing import take_back

State = BackfillPartition.State
# Of more that waits the control worker cancels the rest, so that nobody waits for a million.
CANCELED_AT_ONCE = 50_000


@contextmanager
def held(backfill: Backfill, action: Action, user: User) -> Iterator[Backfill]:
    """A transaction in which nobody else changes what this backfill intends; its present row.

    Raises PermissionDenied unless the user may do this to all that it makes, and
    ConflictingRequest if it was deleted.
    """
    with transaction.atomic():
        lock(backfill.pk)
        present = (
            Backfill.objects.select_related("group", "asset", "submitted_by")
            .prefetch_related("assets__asset")
            .get(pk=backfill.pk)
        )
        policy.require_for_assets(user, action, assets_made(present))
        if present.deleted:
            raise ConflictingRequest({"": f"{present.name} was deleted."})
        yield present


def pause_backfill(backfill: Backfill, *, user: User) -> Backfill:
    """Start nothing more of it; what runs goes on to its end, and it goes on being written down.

    Runs that have not begun give their partitions back, so that others can make them.
    Raises ConflictingRequest unless it is on its way.
    """
    with held(backfill, Action.BACKFILL, user) as present:
        require_unfinished(present, "pause")
        if present.group.paused:
            raise ConflictingRequest({"": f"{present.name} is paused already."})
        take_back(present)
        _set_paused(present, True, "pause")
        audit.record(user, "pause", "backfill", present.name)
    return _fresh(backfill)


def resume_backfill(backfill: Backfill, *, user: User) -> Backfill:
    """Let it go on, at once. Raises ConflictingRequest if it is not paused."""
    with held(backfill, Action.BACKFILL, user) as present:
        if present.state != BackfillState.PAUSED:
            raise ConflictingRequest({"": f"{present.name} is not paused: {standing(present)}"})
        _set_paused(present, False, "resume")
        audit.record(user, "resume", "backfill", present.name)
        nudge_advance()
        nudge_dispatch()
    return _fresh(backfill)


def cancel_backfill(backfill: Backfill, *, user: User) -> Backfill:
    """End what waits or is queued at once, and stop what runs: it is canceled only when all has
    ended.

    Raises ConflictingRequest if it has ended or is being canceled already.
    """
    with held(backfill, Action.CANCEL, user) as present:
        # Runs first, then the backfill's own rows: the order in which the end of a run takes them.
        hold_runs_of(present.group)
        present.refresh_from_db(fields=("state",))
        require_unfinished(present, "cancel")
        cancel_runs_of(present.group)
        # Where all of its runs were in the queue, their end has ended the backfill as well.
        Backfill.objects.filter(pk=present.pk).update(
            state=BackfillState.CANCELING, run_end_date=None
        )
        _forget_unwritten(present.pk)
        if _cancel_some(present.assets.all()):
            nudge_advance()
        audit.record(user, "cancel", "backfill", present.name)
        derive_states([present.pk])
    return _fresh(backfill)


def go_on_canceling(backfill_id: int) -> bool:
    """Cancel more of what waits in a backfill that is being canceled; whether more is left."""
    with transaction.atomic():
        if not try_lock(backfill_id):
            return False
        canceling = {"backfill": backfill_id, "backfill__state": BackfillState.CANCELING}
        pieces = BackfillAsset.objects.filter(**canceling, waiting__gt=0)
        is_more_left = _cancel_some(pieces.order_by("pk"))
        derive_states([backfill_id])
        return is_more_left


def delete_backfill(backfill: Backfill, *, user: User) -> Backfill:
    """Take it off the lists; its record stays. Raises ConflictingRequest unless it has ended."""
    with held(backfill, Action.BACKFILL, user) as present:
        if not present.ended:
            only = "Only a backfill that has ended can be deleted: cancel it first."
            raise ConflictingRequest({"": f"{standing(present)} {only}"})
        now = timezone.now()
        # One of its runs may have been retried meanwhile: that takes another lock.
        ended = Backfill.objects.filter(pk=present.pk, state__in=ENDED_STATES)
        if not ended.update(deleted=True, delete_date=now, updated_at=now):
            raise ConflictingRequest({"": f"{present.name} goes on: a run of it was retried."})
        audit.record(user, "delete", "backfill", present.name)
    return _fresh(backfill)


def give_up(backfill_id: int, error: str) -> None:
    """End a backfill that cannot go on as failed: what waits is canceled, what runs goes on to its
    end. Where nothing is left to give up, it stays as it is.
    """
    with transaction.atomic():
        lock(backfill_id)
        still_to_come = Q(assets__expanded__lt=F("assets__total")) | Q(assets__waiting__gt=0)
        going_on = Backfill.objects.exclude(state=BackfillState.CANCELING)
        if not going_on.filter(still_to_come, pk=backfill_id).exists():
            return
        # Its assets before itself, each in turn: as the end of a run takes them.
        _forget_unwritten(backfill_id)
        for piece in BackfillAsset.objects.filter(backfill=backfill_id).order_by("pk"):
            _cancel_waiting(piece, piece.expanded)
        Backfill.objects.filter(pk=backfill_id).update(error=storable(error))
        derive_states([backfill_id])


def require_unfinished(backfill: Backfill, verb: str) -> None:
    """Raise ConflictingRequest unless something of it is still to come."""
    if backfill.ended or backfill.state == BackfillState.CANCELING:
        state = backfill.get_state_display().lower()
        more = "" if verb == "cancel" else f" There is nothing left to {verb}."
        raise ConflictingRequest({"": f"{backfill.name} is {state} already.{more}"})


def standing(backfill: Backfill) -> str:
    """A sentence on how it stands."""
    return f"{backfill.name} is {backfill.get_state_display().lower()}."


def _set_paused(backfill: Backfill, paused: bool, verb: str) -> None:
    # Its row before its group's, as at the end of its last run, which may have come meanwhile.
    require_unfinished(Backfill.objects.select_for_update().get(pk=backfill.pk), verb)
    RunGroup.objects.filter(pk=backfill.group_id).update(paused=paused)
    derive_states([backfill.pk])


def _forget_unwritten(backfill_id: int) -> None:
    """What was not even written down yet is not going to be: the request ends with what it has."""
    unwritten = BackfillAsset.objects.filter(backfill=backfill_id, expanded__lt=F("total"))
    unwritten.update(total=F("expanded"))


def _cancel_some(pieces: Iterable[BackfillAsset]) -> bool:
    """Cancel what waits of these assets, CANCELED_AT_ONCE at most; whether some may be left."""
    room = CANCELED_AT_ONCE
    for piece in pieces:
        room -= _cancel_waiting(piece, room)
    return room == 0


def _cancel_waiting(piece: BackfillAsset, most: int) -> int:
    waiting = BackfillPartition.objects.filter(backfill_asset=piece, state=State.WAITING)
    some = BackfillPartition.objects.filter(pk__in=waiting.values("pk")[:most])
    canceled = some.update(state=State.CANCELED)
    shift_counts(piece.pk, {"waiting": -canceled, "canceled": canceled})
    return canceled


def _fresh(backfill: Backfill) -> Backfill:
    backfill.refresh_from_db()
    return backfill
