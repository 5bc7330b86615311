"""Slices that came due while a run held them, or before their windows were over: seen to later."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

import slicewise
from assets_app.execution.claims import claim_all
from assets_app.execution.messages import nudge_dispatch
from assets_app.models import Asset, AssetPartition, PartitionState, Schedule, Trigger
from assets_app.scheduling.affected import existing_keys
from assets_app.scheduling.apart import apart
from assets_app.scheduling.judging import Touched, queue_due
from assets_app.scheduling.planning import planned_runs, terms_of
from slicewise.rows import PartitionRow

_AT_ONCE = 1_000


def queue_again(now: datetime) -> int:
    """Queue those that are still due; how many there were to look at.

    By time, a window that was made meanwhile is not made twice; what has no window came due by a
    later tick than the one that its run was for, and is made once more. By assets, it is judged
    anew. Without any it is one look at an index.
    """
    due = AssetPartition.objects.filter(
        Q(due_at=None) | Q(due_at__lte=now), due_again=True, held_by__isnull=True
    )
    return _queue_released(due, now) if due.exists() else 0


@transaction.atomic
def _queue_released(due: QuerySet[AssetPartition], now: datetime) -> int:
    released = list(
        due.select_for_update(of=("self",), skip_locked=True)
        .select_related("asset__partition_definition")
        .order_by("asset_id", "identity", "key")[:_AT_ONCE]
    )
    if not released:
        return 0
    again = AssetPartition.objects.filter(pk__in=[piece.pk for piece in released])
    again.update(due_again=False, due_at=None)
    schedules = _schedules({piece.asset_id for piece in released})
    by_asset: dict[Asset, list[AssetPartition]] = {}
    for piece in released:
        by_asset.setdefault(piece.asset, []).append(piece)
    for asset, pieces in by_asset.items():
        schedule = schedules.get(asset.producer_id or 0)
        if schedule is not None and schedule.rule is not None and asset.active:
            with apart(asset):
                _queue_all(schedule, asset, pieces, now)
    nudge_dispatch()
    return len(released)


def _schedules(asset_ids: set[int]) -> dict[int, Schedule]:
    rows = Schedule.objects.select_related("producer__current_version", "group")
    return {row.producer_id: row for row in rows.filter(producer__assets__in=asset_ids)}


def _queue_all(
    schedule: Schedule, asset: Asset, pieces: Sequence[AssetPartition], now: datetime
) -> None:
    for taken in (asset, asset.discovering):
        ours = [piece for piece in pieces if piece.identity == taken.identity]
        _queue(schedule, taken, ours, now)


def _queue(
    schedule: Schedule, asset: Asset, pieces: Sequence[AssetPartition], now: datetime
) -> None:
    if asset.paused or not pieces:
        return
    if schedule.by_time:
        rows = [_row(piece) for piece in pieces if not _was_made(piece)]
        claim_all(list(planned_runs(terms_of(schedule, asset, Trigger.SCHEDULE), rows)))
    else:
        keys = existing_keys(asset.definition, [piece.key for piece in pieces])
        partitions = slicewise.PartitionSet.of(asset.definition, keys)
        queue_due(Touched(schedule, asset, partitions), None, now)


def _was_made(piece: AssetPartition) -> bool:
    return piece.window_start is not None and piece.state == PartitionState.MATERIALIZED


def _row(piece: AssetPartition) -> PartitionRow:
    return PartitionRow(
        piece.key, piece.window_start, piece.window_end, piece.segment, piece.bucket
    )
