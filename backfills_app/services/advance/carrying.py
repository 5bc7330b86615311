"""Steps that carry out requests about backfills, each in a transaction: in the bulk worker, or
within the request itself if few partitions are concerned and no other transaction is in the way.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F, Q, Sum

from assets_app.catalogue.texts import storable
from assets_app.execution.database import (
    is_passing,
    lift_limit_of_lock_waits,
    limit_lock_waits,
)
from assets_app.execution.queue.control import cancel_some_runs_of
from assets_app.models import TERMINAL_STATES, Run
from backfills_app.models import (
    Backfill,
    BackfillAsset,
    BackfillOrder,
    BackfillPartition,
    BackfillState,
    PendingControl,
)
from backfills_app.services.advance.reopening import retry_pending
from backfills_app.services.advance.waiting import recheck
from backfills_app.services.advance.withdrawing import withdraw_untried_runs
from backfills_app.services.bookkeeping.counting import derive_states, shift_counts
from backfills_app.services.bookkeeping.locks import lock, try_lock
from backfills_app.services.bookkeeping.messages import nudge_advance

log = logging.getLogger(__name__)

State = BackfillPartition.State
Verb = PendingControl.Verb
# The beginning of a backfill's error after a retry that changed nothing; another retry may work.
COULD_NOT_BE_RETRIED = "It could not be retried: "

# The number of partitions per step.
AT_A_TIME = 50_000
# A request carries itself out only up to so many partitions, and otherwise only records its row. It
# gives up after waiting so long for a locked row.
MOST_AT_ONCE = 5_000
_LONGEST_WAIT = "200ms"


def is_given_up(backfill: Backfill) -> bool:
    """Return whether the backfill was given up, so that a retry would be given up too. A retry that
    could not be carried out leaves an error as well, and can be requested again.
    """
    return bool(backfill.error) and not backfill.error.startswith(COULD_NOT_BE_RETRIED)


def record_request(backfill: Backfill, verb: PendingControl.Verb, **how: bool) -> None:
    """Record a request about a backfill for the bulk worker: the row is the truth, the message a
    nudge.
    """
    PendingControl.objects.create(backfill=backfill, verb=verb, **how)
    nudge_advance()


def carry_out_now(backfill_id: int) -> None:
    """Carry out the pending requests about a backfill if few partitions are concerned; the bulk
    worker does the rest.
    """
    try:
        if _partitions_concerned(backfill_id) <= MOST_AT_ONCE:
            carry_out(backfill_id, longest_wait=_LONGEST_WAIT)
    except (OperationalError, InterfaceError) as error:
        # Another transaction has locked a needed row, or the database is gone. The request is
        # recorded, and the message to the bulk worker is on its way.
        log.info(
            "request left to the bulk worker", extra={"backfill": backfill_id, "error": str(error)}
        )


def carry_out(backfill_id: int, *, longest_wait: str | None = None) -> bool:
    """Take the next steps of pending requests about a backfill; return whether more can be done at
    once.

    Raises OperationalError where a step would wait for a row longer than ``longest_wait``, an
    interval as PostgreSQL reads it.
    """
    backfill = Backfill.objects.filter(pk=backfill_id).first()
    if backfill is None:
        return False
    if backfill.state == BackfillState.CANCELING:
        steps: Sequence[Callable[[Backfill], bool]] = (_cancel_runs, _cancel_partitions)
    elif backfill.pending.exists():
        steps = (_retry, _recheck_waiting, _withdraw)
    else:
        return False
    results = [_run_step(backfill_id, step, longest_wait) for step in steps]
    return any(results)


def _run_step(backfill_id: int, step: Callable[[Backfill], bool], longest_wait: str | None) -> bool:
    """Run one step in a transaction that holds the backfill's lock; return whether more is left to
    do.
    """
    is_within_another = connection.in_atomic_block
    with transaction.atomic():
        if longest_wait is not None:
            limit_lock_waits(longest_wait)
        is_more_left = False
        if try_lock(backfill_id):
            is_more_left = step(Backfill.objects.select_related("group").get(pk=backfill_id))
            derive_states([backfill_id])
        if longest_wait is not None and is_within_another:
            # A request with an idempotency key is one transaction. Its other actions may wait.
            lift_limit_of_lock_waits()
        return is_more_left


def _cancel_runs(backfill: Backfill) -> bool:
    # This is a step of its own: the end of runs locks the rows of assets before the row of the
    # backfill, and waiting partitions are canceled in the same order.
    if backfill.state != BackfillState.CANCELING:
        return False
    return cancel_some_runs_of(backfill.group, AT_A_TIME) > 0


def _cancel_partitions(backfill: Backfill) -> bool:
    if backfill.state != BackfillState.CANCELING:
        return False
    backfill.pending.all().delete()
    _forget_unwritten(backfill.pk)
    return _cancel_some(backfill.assets.order_by("pk"))


def _retry(backfill: Backfill) -> bool:
    requests = list(backfill.pending.filter(verb=Verb.RETRY))
    if requests:
        try:
            with transaction.atomic():
                retry_pending(backfill, requests)
        except Exception as error:
            if is_passing(error):
                raise
            # The retry was checked at the request, and has become impossible since; or this worker
            # lacks a plug-in.
            log.exception("backfill not retried", extra={"backfill": backfill.pk})
            backfill.pending.filter(pk__in=[row.pk for row in requests]).delete()
            message = f"{COULD_NOT_BE_RETRIED}{type(error).__name__}: {error}"
            Backfill.objects.filter(pk=backfill.pk).update(error=storable(message))
    return False


def _recheck_waiting(backfill: Backfill) -> bool:
    requests = backfill.pending.filter(verb=Verb.LOOK_AGAIN)
    if requests.exists():
        try:
            with transaction.atomic():
                recheck(backfill)
        except Exception as error:
            if is_passing(error):
                raise
            # The next admission meets the same error, and the backfill is given up in the end.
            log.exception("waiting partitions not checked again", extra={"backfill": backfill.pk})
        requests.delete()
    return False


def _withdraw(backfill: Backfill) -> bool:
    requests = backfill.pending.filter(verb=Verb.WITHDRAW)
    if not requests.exists():
        return False
    run_count = Run.objects.filter(group=backfill.group).count
    count_before = run_count()
    if withdraw_untried_runs(backfill, AT_A_TIME):
        # Runs that other transactions are changing are left to the next beat.
        return run_count() < count_before
    if backfill.order != BackfillOrder.LISTED:
        # With ranks the partitions would keep the order of the selection, if it has several terms.
        for asset_row in backfill.assets.filter(selection__contains=";").order_by("pk"):
            asset_row.partitions.filter(rank__gt=0).update(rank=0)
    requests.delete()
    return True


def _partitions_concerned(backfill_id: int) -> int:
    backfill = Backfill.objects.get(pk=backfill_id)
    unfinished = Run.objects.filter(group=backfill.group_id).exclude(state__in=TERMINAL_STATES)
    number = unfinished.aggregate(number=Sum("partition_count"))["number"] or 0
    verbs = set(backfill.pending.values_list("verb", flat=True))
    if backfill.state == BackfillState.CANCELING or verbs - {Verb.WITHDRAW}:
        number += sum(
            asset_row.expanded - asset_row.succeeded for asset_row in backfill.assets.all()
        )
    return int(number)


def give_up(backfill_id: int, error: str) -> None:
    """End a backfill that cannot advance as failed: waiting partitions are canceled, active runs go
    on to their end. A backfill without partitions left to cancel stays unchanged.
    """
    with transaction.atomic():
        lock(backfill_id)
        still_to_come = Q(assets__expanded__lt=F("assets__total")) | Q(assets__waiting__gt=0)
        not_canceling = Backfill.objects.exclude(state=BackfillState.CANCELING)
        if not not_canceling.filter(still_to_come, pk=backfill_id).exists():
            return
        # Assets before the backfill, each in turn: the end of a run locks rows in this order.
        _forget_unwritten(backfill_id)
        for asset_row in BackfillAsset.objects.filter(backfill=backfill_id).order_by("pk"):
            _cancel_waiting(asset_row, asset_row.expanded)
        Backfill.objects.filter(pk=backfill_id).update(error=storable(error))
        derive_states([backfill_id])


def _forget_unwritten(backfill_id: int) -> None:
    """Reduce the totals of assets to the rows that are written: the rest will not be expanded."""
    for asset_row in BackfillAsset.objects.filter(backfill=backfill_id).order_by("pk"):
        unwritten = BackfillAsset.objects.filter(pk=asset_row.pk, expanded__lt=F("total"))
        unwritten.update(total=F("expanded"))


def _cancel_some(asset_rows: Iterable[BackfillAsset]) -> bool:
    """Cancel waiting partitions of these assets, AT_A_TIME at most; return whether some may be
    left.
    """
    room = AT_A_TIME
    for asset_row in asset_rows:
        room -= _cancel_waiting(asset_row, room)
    return room == 0


def _cancel_waiting(asset_row: BackfillAsset, most: int) -> int:
    waiting = BackfillPartition.objects.filter(backfill_asset=asset_row, state=State.WAITING)
    some = BackfillPartition.objects.filter(pk__in=waiting.values("pk")[:most])
    canceled = some.update(state=State.CANCELED)
    shift_counts(asset_row.pk, {"waiting": -canceled, "canceled": canceled})
    return canceled
