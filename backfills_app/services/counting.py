"""Keeps the counts of a backfill's partitions, and derives its state from them.

Nothing else sets the state.
"""

from collections.abc import Iterable, Mapping

from django.db import connection, transaction
from django.db.models import F, Min
from django.utils import timezone

from assets_app.models import NOTHING_LACKS, RunGroup
from backfills_app.models import (
    ENDED_STATES,
    Backfill,
    BackfillAsset,
    BackfillPartition,
    BackfillState,
    PendingControl,
)

State = BackfillPartition.State
# Of fewer partitions the commit takes no time that anybody would notice.
_MANY = 1_000


def check_references(partitions: int) -> None:
    """Have the foreign keys of what a transaction has written for so many partitions checked now.

    Else the commit checks them, row by row, for a minute where a run has a million partitions, and
    keeps the rows of assets and backfills meanwhile, which requests and the ends of other runs
    need: it comes before these are taken.
    """
    if partitions >= _MANY:
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def shift_counts(backfill_asset_id: int, changes: Mapping[str, int]) -> None:
    """Add to the counts per state; the same transaction has moved the partitions."""
    moved = {state: by for state, by in changes.items() if by}
    if moved:
        BackfillAsset.objects.filter(pk=backfill_asset_id).update(
            **{state: F(state) + by for state, by in moved.items()}
        )


def derive_states(backfill_ids: Iterable[int]) -> None:
    """Bring the states of these backfills in line with their counts, under their row locks."""
    # Its group is read under the lock, not with it: it may have been paused while that was awaited.
    rows = Backfill.objects.filter(pk__in=backfill_ids).order_by("pk")
    # Not against whoever inserts a row that refers to one of them.
    for backfill in rows.select_for_update(no_key=True):
        _derive(backfill)


def note_start(backfill_id: int) -> None:
    """Say when the first run of a backfill began, if one has: that moves no count."""
    with transaction.atomic():
        derive_states([backfill_id])


def reopen(backfill_ids: Iterable[int]) -> None:
    """Take the end back of those that have ended: something of them is to be made again.

    The caller derives their states once the counts say so.
    """
    ended = Backfill.objects.filter(pk__in=sorted(backfill_ids), state__in=ENDED_STATES)
    ended.update(state=BackfillState.SCHEDULED, run_end_date=None, updated_at=timezone.now())


def _derive(backfill: Backfill) -> None:
    if backfill.state in ENDED_STATES:
        return
    state = _state_of(backfill, list(BackfillAsset.objects.filter(backfill=backfill)))
    changed = []
    if state != backfill.state:
        backfill.state = state
        changed.append("state")
    if state != BackfillState.CREATING and backfill.run_start_date is None:
        started = backfill.group.runs.aggregate(first=Min("started_at"))["first"]
        if started is not None:
            backfill.run_start_date = started
            changed.append("run_start_date")
    if state in ENDED_STATES:
        backfill.run_end_date = timezone.now()
        changed.append("run_end_date")
        # Nothing is left to hold back: what is retried later starts at once.
        RunGroup.objects.filter(pk=backfill.group_id, paused=True).update(paused=False)
    if changed:
        backfill.save(update_fields=[*changed, "updated_at"])


def _state_of(backfill: Backfill, assets: list[BackfillAsset]) -> str:
    waiting = sum(asset.waiting for asset in assets)
    active = sum(asset.active for asset in assets)
    expanded = all(asset.expanded == asset.total for asset in assets)
    going_on = waiting or active or not expanded or _is_retry_pending(backfill)
    if backfill.state == BackfillState.CANCELING:
        return BackfillState.CANCELING if going_on else BackfillState.CANCELED
    if going_on and backfill.group.paused:
        return BackfillState.PAUSED
    if not expanded:
        return BackfillState.CREATING
    if going_on:
        begun = active or any(asset.succeeded or asset.failed for asset in assets)
        return BackfillState.RUNNING if begun else BackfillState.SCHEDULED
    return _ended_state_of(backfill, assets)


def _is_retry_pending(backfill: Backfill) -> bool:
    if backfill.state == BackfillState.CANCELING:
        return False
    return backfill.pending.filter(verb=PendingControl.Verb.RETRY).exists()


def _ended_state_of(backfill: Backfill, assets: list[BackfillAsset]) -> str:
    succeeded = any(asset.succeeded for asset in assets)
    failed = any(asset.failed for asset in assets) or _lacks(assets)
    canceled = any(asset.canceled for asset in assets)
    if backfill.error:
        return BackfillState.FAILED
    if canceled and not failed:
        return BackfillState.CANCELED
    if failed:
        return BackfillState.PARTIALLY_FAILED if succeeded else BackfillState.FAILED
    return BackfillState.SUCCEEDED


def _lacks(assets: list[BackfillAsset]) -> bool:
    """Whether something was skipped that is not there: for want of what it needs, or of itself.

    Looked for once, when all has ended.
    """
    skipping = [asset.pk for asset in assets if asset.skipped]
    skipped = BackfillPartition.objects.filter(backfill_asset__in=skipping, state=State.SKIPPED)
    return skipped.exclude(reason__in=NOTHING_LACKS).exists()
