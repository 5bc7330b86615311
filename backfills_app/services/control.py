"""Stopping a backfill: what waits or is queued ends at once, what runs is stopped, and only then it
is canceled.
"""

from django.db import transaction
from django.db.models import F

from accounts_app import audit, policy
from accounts_app.errors import ConflictingRequest
from accounts_app.models import User
from assets_app.catalogue.texts import storable
from assets_app.execution.control import cancel_runs_of
from backfills_app.models import (
    Backfill,
    BackfillAsset,
    BackfillPartition,
    BackfillState,
)
from backfills_app.services.counting import derive_states, shift_counts
from backfills_app.services.locks import lock

State = BackfillPartition.State


def cancel_backfill(backfill: Backfill, *, user: User) -> Backfill:
    """Cancel it; ConflictingRequest if it has ended or is being canceled already."""
    policy.require(user, policy.Action.CANCEL)
    with transaction.atomic():
        lock(backfill.pk)
        backfill = Backfill.objects.select_related("group", "asset").get(pk=backfill.pk)
        if backfill.ended or backfill.state == BackfillState.CANCELING:
            raise ConflictingRequest(
                {"": f"{backfill.name} is {backfill.get_state_display().lower()} already."}
            )
        # Runs first, then the backfill's own rows: the order in which the end of a run takes them.
        cancel_runs_of(backfill.group)
        # Where all of its runs were in the queue, their end has ended the backfill as well.
        Backfill.objects.filter(pk=backfill.pk).update(
            state=BackfillState.CANCELING, run_end_date=None
        )
        for piece in backfill.assets.all():
            _cancel_waiting(piece)
        audit.record(user, "cancel", "backfill", backfill.name)
        derive_states([backfill.pk])
    backfill.refresh_from_db()
    return backfill


def give_up(backfill_id: int, error: str) -> None:
    """End a backfill that cannot be expanded as failed: what it has written down is canceled."""
    with transaction.atomic():
        lock(backfill_id)
        stuck = Backfill.objects.filter(pk=backfill_id, state=BackfillState.CREATING)
        if not stuck.update(error=storable(error)):
            return
        for piece in BackfillAsset.objects.filter(backfill=backfill_id):
            _cancel_waiting(piece)
        derive_states([backfill_id])


def _cancel_waiting(piece: BackfillAsset) -> None:
    waiting = BackfillPartition.objects.filter(backfill_asset=piece, state=State.WAITING)
    canceled = waiting.update(state=State.CANCELED)
    shift_counts(piece.pk, {"waiting": -canceled, "canceled": canceled})
    # What was not even written down yet is not going to be: the request ends with what it has.
    BackfillAsset.objects.filter(pk=piece.pk).update(total=F("expanded"))
