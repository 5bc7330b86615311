"""The counts of a backfill's partitions, and the state that is derived from the counts.

No other code sets the state.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db import connection, transaction
from django.db.models import F, Min

from assets_app.models import SKIPS_WITHOUT_FAILURE, RunGroup
from assets_app.queries.clock import database_now
from backfills_app.models import (
    ENDED_STATES,
    Backfill,
    BackfillAsset,
    BackfillPartition,
    BackfillState,
    PendingControl,
)
from backfills_app.signals import backfill_ended

State = BackfillPartition.State
# With fewer partitions the commit takes no noticeable time.
_MANY = 1_000


def check_references(partitions: int) -> None:
    """Check the foreign keys of rows written for so many partitions now instead of at commit.

    The commit would check row by row, for a minute if a run has a million partitions, and would
    keep the rows of assets and backfills locked meanwhile, which requests and the ends of other
    runs need. So the check comes before these rows are locked.
    """
    if partitions >= _MANY:
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def shift_counts(backfill_asset_id: int, changes: Mapping[str, int]) -> None:
    """Add changes to an asset's counts per state; the same transaction has changed the
    partitions.
    """
    differences = {state: difference for state, difference in changes.items() if difference}
    if differences:
        BackfillAsset.objects.filter(pk=backfill_asset_id).update(
            **{state: F(state) + difference for state, difference in differences.items()}
        )


def derive_states(backfill_ids: Iterable[int]) -> None:
    """Set the states of these backfills from the counts, under row locks."""
    # The group is read under the lock, not in the locking query: it may have been paused while the
    # query waited for the lock.
    rows = Backfill.objects.filter(pk__in=backfill_ids).order_by("pk")
    # FOR NO KEY UPDATE does not block inserts of rows that refer to a backfill.
    for backfill in rows.select_for_update(no_key=True):
        _derive(backfill)


def note_start(backfill_id: int) -> None:
    """Record when the first run of a backfill began, if a run has begun: no count changes then."""
    with transaction.atomic():
        derive_states([backfill_id])


def reopen(backfill_ids: Iterable[int]) -> None:
    """Remove the end of backfills that have ended, since some partitions are to be materialized
    again.

    The caller derives the states after changing the counts.
    """
    ended = Backfill.objects.filter(pk__in=sorted(backfill_ids), state__in=ENDED_STATES)
    ended.update(state=BackfillState.SCHEDULED, run_end_date=None, updated_at=database_now())


def _derive(backfill: Backfill) -> None:
    if backfill.state in ENDED_STATES:
        return
    state = _state_of(backfill, list(BackfillAsset.objects.filter(backfill=backfill)))
    changes: dict[str, str | datetime] = {}
    if state != backfill.state:
        changes["state"] = state
    if state != BackfillState.CREATING and backfill.run_start_date is None:
        started = backfill.group.runs.aggregate(first=Min("started_at"))["first"]
        if started is not None:
            changes["run_start_date"] = started
    if state in ENDED_STATES:
        changes["run_end_date"] = database_now()
        # An ended backfill is no longer paused: partitions that are retried later start at once.
        RunGroup.objects.filter(pk=backfill.group_id, paused=True).update(paused=False)
    if changes:
        _store(backfill, changes)
    if state in ENDED_STATES:
        backfill_ended.send(sender=None, backfill=backfill)


def _store(backfill: Backfill, changes: Mapping[str, str | datetime]) -> None:
    # `save` would set `updated_at` by the clock of this host.
    values = {**changes, "updated_at": changes.get("run_end_date") or database_now()}
    for name, value in values.items():
        setattr(backfill, name, value)
    Backfill.objects.filter(pk=backfill.pk).update(**values)


def _state_of(backfill: Backfill, assets: list[BackfillAsset]) -> str:
    waiting = sum(asset.waiting for asset in assets)
    active = sum(asset.active for asset in assets)
    expanded = all(asset.expanded == asset.total for asset in assets)
    is_unfinished = waiting or active or not expanded or _is_retry_pending(backfill)
    if backfill.state == BackfillState.CANCELING:
        return BackfillState.CANCELING if is_unfinished else BackfillState.CANCELED
    if is_unfinished and backfill.group.paused:
        return BackfillState.PAUSED
    if not expanded:
        return BackfillState.CREATING
    if is_unfinished:
        has_begun = active or any(asset.succeeded or asset.failed for asset in assets)
        return BackfillState.RUNNING if has_begun else BackfillState.SCHEDULED
    return _ended_state_of(backfill, assets)


def _is_retry_pending(backfill: Backfill) -> bool:
    if backfill.state == BackfillState.CANCELING:
        return False
    return backfill.pending.filter(verb=PendingControl.Verb.RETRY).exists()


def _ended_state_of(backfill: Backfill, assets: list[BackfillAsset]) -> str:
    succeeded = any(asset.succeeded for asset in assets)
    failed = any(asset.failed for asset in assets) or _has_missing_data(assets)
    canceled = any(asset.canceled for asset in assets)
    if backfill.error:
        return BackfillState.FAILED
    if canceled and not failed:
        return BackfillState.CANCELED
    if failed:
        return BackfillState.PARTIALLY_FAILED if succeeded else BackfillState.FAILED
    return BackfillState.SUCCEEDED


def _has_missing_data(assets: list[BackfillAsset]) -> bool:
    """Return whether a partition without data was skipped: because upstream data was missing, or
    because the partition does not exist.

    The query runs once, after all partitions have ended.
    """
    skipping = [asset.pk for asset in assets if asset.skipped]
    skipped = BackfillPartition.objects.filter(backfill_asset__in=skipping, state=State.SKIPPED)
    return skipped.exclude(reason__in=SKIPS_WITHOUT_FAILURE).exists()
