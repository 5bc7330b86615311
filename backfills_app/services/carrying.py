"""Carries out what was asked of backfills, in steps that are each a transaction: in the bulk
worker, or in the request itself where that is little and nobody is in the way.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, Q, Sum

from assets_app.catalogue.texts import storable
from assets_app.execution.control import cancel_some_runs_of
from assets_app.execution.database import is_passing, limit_lock_waits
from assets_app.models import TERMINAL_STATES, Run
from backfills_app.models import (
    Backfill,
    BackfillAsset,
    BackfillOrder,
    BackfillPartition,
    BackfillState,
    PendingControl,
)
from backfills_app.services.counting import derive_states, shift_counts
from backfills_app.services.locks import lock, try_lock
from backfills_app.services.messages import nudge_advance
from backfills_app.services.reopening import retry_pending
from backfills_app.services.waiting import look_again
from backfills_app.services.withdrawing import take_back

log = logging.getLogger(__name__)

State = BackfillPartition.State
Verb = PendingControl.Verb
# How the error of a backfill begins of which a retry has changed nothing: another one may.
COULD_NOT_BE_RETRIED = "It could not be retried: "
# Partitions that one step deals with.
AT_A_TIME = 50_000
# A request does more than write down what is asked only where no more partitions are concerned,
# and gives up as soon as it has waited so long for a row.
MOST_AT_ONCE = 5_000
_LONGEST_WAIT = "200ms"


def leave(backfill: Backfill, verb: PendingControl.Verb, **how: bool) -> None:
    """Have something carried out: the row is the truth, the message a nudge."""
    PendingControl.objects.create(backfill=backfill, verb=verb, **how)
    nudge_advance()


def carry_out_now(backfill_id: int) -> None:
    """Carry out what was asked, where that is little; the bulk worker does the rest."""
    try:
        if _partitions_concerned(backfill_id) <= MOST_AT_ONCE:
            carry_out(backfill_id, longest_wait=_LONGEST_WAIT)
    except (OperationalError, InterfaceError) as error:
        # Somebody has a row that is needed, or the database has gone. What was asked is written
        # down, and the nudge is on its way.
        log.info("left to the bulk worker", extra={"backfill": backfill_id, "error": str(error)})


def carry_out(backfill_id: int, *, longest_wait: str | None = None) -> bool:
    """Take the next steps of what was asked of a backfill; whether there is more to do at once.

    Raises OperationalError where a step would wait for a row longer than ``longest_wait``, an
    interval as PostgreSQL reads it.
    """
    backfill = Backfill.objects.filter(pk=backfill_id).first()
    if backfill is None:
        return False
    if backfill.state == BackfillState.CANCELING:
        steps: Sequence[Callable[[Backfill], bool]] = (_cancel_runs, _cancel_waiting_ones)
    elif backfill.pending.exists():
        steps = (_retry, _look_again, _withdraw)
    else:
        return False
    more = [_in_a_step(backfill_id, step, longest_wait) for step in steps]
    return any(more)


def _in_a_step(
    backfill_id: int, step: Callable[[Backfill], bool], longest_wait: str | None
) -> bool:
    """One transaction, in which nobody else changes what the backfill intends."""
    with transaction.atomic():
        if longest_wait is not None:
            limit_lock_waits(longest_wait)
        if not try_lock(backfill_id):
            return False
        more = step(Backfill.objects.select_related("group").get(pk=backfill_id))
        derive_states([backfill_id])
        return more


def _cancel_runs(backfill: Backfill) -> bool:
    # Of its own: the end of runs takes the rows of assets before that of the backfill, and what
    # waits is canceled in the same order.
    if backfill.state != BackfillState.CANCELING:
        return False
    return cancel_some_runs_of(backfill.group, AT_A_TIME) > 0


def _cancel_waiting_ones(backfill: Backfill) -> bool:
    if backfill.state != BackfillState.CANCELING:
        return False
    backfill.pending.all().delete()
    _forget_unwritten(backfill.pk)
    return _cancel_some(backfill.assets.order_by("pk"))


def _retry(backfill: Backfill) -> bool:
    asked = list(backfill.pending.filter(verb=Verb.RETRY))
    if asked:
        try:
            with transaction.atomic():
                retry_pending(backfill, asked)
        except Exception as error:
            if is_passing(error):
                raise
            # Looked at when it was asked for, and otherwise by now; or this worker lacks a plug-in.
            log.exception("backfill not retried", extra={"backfill": backfill.pk})
            backfill.pending.filter(pk__in=[row.pk for row in asked]).delete()
            said = f"{COULD_NOT_BE_RETRIED}{type(error).__name__}: {error}"
            Backfill.objects.filter(pk=backfill.pk).update(error=storable(said))
    return False


def _look_again(backfill: Backfill) -> bool:
    asked = backfill.pending.filter(verb=Verb.LOOK_AGAIN)
    if asked.exists():
        try:
            with transaction.atomic():
                look_again(backfill)
        except Exception as error:
            if is_passing(error):
                raise
            # The next admission meets the same, and gives the backfill up.
            log.exception("backfill not looked at again", extra={"backfill": backfill.pk})
        asked.delete()
    return False


def _withdraw(backfill: Backfill) -> bool:
    asked = backfill.pending.filter(verb=Verb.WITHDRAW)
    if not asked.exists():
        return False
    untried = Run.objects.filter(group=backfill.group).count
    before = untried()
    if take_back(backfill, AT_A_TIME):
        # What others are just changing is looked at by the beat.
        return untried() < before
    if backfill.order != BackfillOrder.LISTED:
        # By their ranks they would still come in the order of the selection, if that has several
        # terms.
        for piece in backfill.assets.filter(selection__contains=";").order_by("pk"):
            piece.partitions.filter(rank__gt=0).update(rank=0)
    asked.delete()
    return True


def _partitions_concerned(backfill_id: int) -> int:
    backfill = Backfill.objects.get(pk=backfill_id)
    unfinished = Run.objects.filter(group=backfill.group_id).exclude(state__in=TERMINAL_STATES)
    number = unfinished.aggregate(number=Sum("partition_count"))["number"] or 0
    verbs = set(backfill.pending.values_list("verb", flat=True))
    if backfill.state == BackfillState.CANCELING or verbs - {Verb.WITHDRAW}:
        number += sum(piece.expanded - piece.succeeded for piece in backfill.assets.all())
    return int(number)


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


def _forget_unwritten(backfill_id: int) -> None:
    """What was not even written down yet is not going to be: the request ends with what it has."""
    for piece in BackfillAsset.objects.filter(backfill=backfill_id).order_by("pk"):
        unwritten = BackfillAsset.objects.filter(pk=piece.pk, expanded__lt=F("total"))
        unwritten.update(total=F("expanded"))


def _cancel_some(pieces: Iterable[BackfillAsset]) -> bool:
    """Cancel what waits of these assets, AT_A_TIME at most; whether some may be left."""
    room = AT_A_TIME
    for piece in pieces:
        room -= _cancel_waiting(piece, room)
    return room == 0


def _cancel_waiting(piece: BackfillAsset, most: int) -> int:
    waiting = BackfillPartition.objects.filter(backfill_asset=piece, state=State.WAITING)
    some = BackfillPartition.objects.filter(pk__in=waiting.values("pk")[:most])
    canceled = some.update(state=State.CANCELED)
    shift_counts(piece.pk, {"waiting": -canceled, "canceled": canceled})
    return canceled
