"""Keeps the counts of a backfill's partitions, and derives its state from them.

Nothing else sets the state.
"""

from collections.abc import Iterable, Mapping

from django.db.models import F, Min
from django.utils import timezone

from backfills_app.models import (
    ENDED_STATES,
    Backfill,
    BackfillAsset,
    BackfillPartition,
    BackfillState,
)

State = BackfillPartition.State


def shift_counts(backfill_asset_id: int, changes: Mapping[str, int]) -> None:
    """Add to the counts per state; the same transaction has moved the partitions."""
    moved = {state: by for state, by in changes.items() if by}
    if moved:
        BackfillAsset.objects.filter(pk=backfill_asset_id).update(
            **{state: F(state) + by for state, by in moved.items()}
        )


def derive_states(backfill_ids: Iterable[int]) -> None:
    """Bring the states of these backfills in line with their counts, under their row locks."""
    for backfill in Backfill.objects.select_for_update().filter(pk__in=backfill_ids).order_by("pk"):
        _derive(backfill)


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
    if changed:
        backfill.save(update_fields=[*changed, "updated_at"])


def _state_of(backfill: Backfill, assets: list[BackfillAsset]) -> str:
    waiting = sum(asset.waiting for asset in assets)
    active = sum(asset.active for asset in assets)
    succeeded = sum(asset.succeeded for asset in assets)
    failed = sum(asset.failed for asset in assets)
    canceled = sum(asset.canceled for asset in assets)
    expanded = all(asset.expanded == asset.total for asset in assets)
    if backfill.state == BackfillState.CANCELING:
        return (
            BackfillState.CANCELING if active or waiting or not expanded else BackfillState.CANCELED
        )
    if not expanded:
        return BackfillState.CREATING
    if waiting or active:
        return BackfillState.RUNNING if active or succeeded or failed else BackfillState.SCHEDULED
    if backfill.error:
        return BackfillState.FAILED
    if canceled and not failed:
        return BackfillState.CANCELED
    if failed:
        return BackfillState.PARTIALLY_FAILED if succeeded else BackfillState.FAILED
    return BackfillState.SUCCEEDED
