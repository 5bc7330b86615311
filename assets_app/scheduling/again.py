"""Slices that came due while a run held them: seen to once they are released."""

from datetime import datetime

from django.db import transaction

from assets_app.execution.claims import PlannedRun, claim_all
from assets_app.execution.messages import nudge_dispatch
from assets_app.models import Asset, AssetPartition, PartitionState, Schedule, Trigger
from assets_app.scheduling.planning import planned_runs, terms_of
from slicewise.rows import PartitionRow

_AT_ONCE = 1_000


@transaction.atomic
def queue_again(now: datetime) -> int:
    """Queue those that the run which held them did not make; how many there were to look at.

    A window that was made meanwhile is not made twice. What has no window came due by a later tick
    than the one that its run was for, and is made once more. Without any it is one look at an
    index.
    """
    released = list(
        AssetPartition.objects.select_for_update(of=("self",), skip_locked=True)
        .select_related("asset__partition_definition")
        .filter(due_again=True, held_by__isnull=True)
        .order_by("asset_id", "identity", "key")[:_AT_ONCE]
    )
    if not released:
        return 0
    AssetPartition.objects.filter(pk__in=[piece.pk for piece in released]).update(due_again=False)
    schedules = {
        row.producer_id: row
        for row in Schedule.objects.select_related("producer__current_version", "group").filter(
            producer__assets__in={piece.asset_id for piece in released}
        )
    }
    wanted: dict[Schedule, dict[Asset, list[PartitionRow]]] = {}
    for piece in released:
        schedule = schedules.get(piece.asset.producer_id or 0)
        if schedule is not None and _is_wanted(piece, schedule):
            wanted.setdefault(schedule, {}).setdefault(piece.asset, []).append(_row(piece))
    planned: list[PlannedRun] = []
    for schedule, assets in wanted.items():
        for asset, rows in assets.items():
            planned += planned_runs(terms_of(schedule, asset, Trigger.SCHEDULE), rows)
    claim_all(planned)
    nudge_dispatch()
    return len(released)


def _is_wanted(piece: AssetPartition, schedule: Schedule) -> bool:
    asset = piece.asset
    if schedule.rule is None or asset.paused or not asset.active:
        return False
    if piece.identity != asset.identity:
        return False
    was_made = piece.state == PartitionState.MATERIALIZED
    return piece.window_start is None or not was_made


def _row(piece: AssetPartition) -> PartitionRow:
    return PartitionRow(
        piece.key, piece.window_start, piece.window_end, piece.segment, piece.bucket
    )
