"""Slices that came due while a run held them, before their windows were over, or that wait for a
tick: seen to later.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

import slicewise
from assets_app.execution.claims import claim_all
from assets_app.execution.messages import nudge_dispatch
from assets_app.models import Asset, AssetPartition, RunPartition, Schedule, Trigger
from assets_app.scheduling.affected import existing_keys
from assets_app.scheduling.apart import apart
from assets_app.scheduling.failures import FIRST_PAUSE, forget_failures, record_failures
from assets_app.scheduling.planning import planned_runs, terms_of
from assets_app.scheduling.queueing import Touched, queue_due
from assets_app.scheduling.slices import mark_due_again
from slicewise.rows import PartitionRow

_AT_ONCE = 1_000


def queue_again(now: datetime) -> int:
    """Queue those that are still due; how many there were to look at.

    By time, a window that was made meanwhile is not made twice; what has no window came due by a
    later tick than the one that its run was for, and is made once more. By assets, it is judged
    anew. Without any it is one look at an index.
    """
    released = AssetPartition.objects.filter(due_again=True, held_by__isnull=True)
    put_off = released.filter(due_at__lte=now).order_by("due_at")
    # Each a look at one end of the index: early ones, of which there may be many, lie behind it.
    looks = (released.filter(due_at=None), put_off)
    if not any(look.exists() for look in looks):
        return 0
    # Whoever handles the ticks of a schedule takes what waits for them.
    ticking = Schedule.objects.filter(
        Q(next_at__lte=now) | Q(next_at=F("retry_at")),  # as `has_tick_to_handle` says
        producer=OuterRef("asset__producer"),
        by_time=False,
    )
    return _queue_released((looks[0], put_off.filter(~Exists(ticking))), now)


@transaction.atomic
def _queue_released(looks: Iterable[QuerySet[AssetPartition]], now: datetime) -> int:
    released = _taken(looks)
    if not released:
        return 0
    again = AssetPartition.objects.filter(pk__in=[piece.pk for piece in released])
    again.update(due_again=False, due_at=None)
    schedules = _schedules({piece.asset_id for piece in released})
    by_asset: dict[Asset, list[AssetPartition]] = {}
    for piece in released:
        by_asset.setdefault(piece.asset, []).append(piece)
    errors: dict[int, Exception] = {}
    unjudged: dict[int, list[int]] = {}
    for asset, pieces in by_asset.items():
        schedule = schedules.get(asset.producer_id or 0)
        if schedule is None or schedule.rule is None or not asset.active:
            continue
        with apart(asset) as outcome:
            _queue_all(schedule, asset, pieces, now)
        if outcome.error is None:
            forget_failures([schedule])
        else:
            errors[schedule.pk] = outcome.error
            unjudged.setdefault(schedule.pk, []).extend(piece.pk for piece in pieces)
    # Marked once more, they are looked at when their schedules are tried again.
    retried_at = dict.fromkeys(errors, now + FIRST_PAUSE) | record_failures(errors, now)
    for schedule_id, moment in retried_at.items():
        slices = AssetPartition.objects.filter(pk__in=unjudged[schedule_id])
        slices.update(due_again=True, due_at=moment)
    nudge_dispatch()
    return len(released)


def _taken(looks: Iterable[QuerySet[AssetPartition]]) -> list[AssetPartition]:
    """Lock what is due, as much as one transaction sees to, in the order of claims."""
    taken: list[AssetPartition] = []
    for look in looks:
        rows = look.select_for_update(of=("self",), skip_locked=True)
        taken += rows.select_related("asset__partition_definition")[: _AT_ONCE - len(taken)]
    return sorted(taken, key=lambda piece: (piece.asset_id, piece.identity, piece.key))


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
    # One that its function makes no more is in force as long as its own file is broken.
    if asset.paused or not pieces or asset.name not in schedule.producer.outlet_names:
        return
    if schedule.by_time:
        made = _made_by_last_run(pieces)
        rows = [_row(piece) for piece in pieces if piece.pk not in made]
        terms = terms_of(schedule, asset, Trigger.SCHEDULE)
        _, held = claim_all(list(planned_runs(terms, rows)))
        mark_due_again(held)
    else:
        keys = existing_keys(asset.definition, [piece.key for piece in pieces])
        partitions = slicewise.PartitionSet.of(asset.definition, keys)
        since = {piece.key: piece.due_at for piece in pieces if piece.due_at}
        queue_due(Touched(schedule, asset, partitions), None, now, None, since)


def _made_by_last_run(pieces: Sequence[AssetPartition]) -> set[int]:
    """Return the ids of windows that were made by the run that last held them. Windows that a
    canceled run did not make are still due.
    """
    windows = [row for row in pieces if row.window_start is not None]
    made_windows = RunPartition.objects.filter(
        slice__in=windows, run=F("slice__last_run"), state=RunPartition.State.SUCCEEDED
    )
    return set(made_windows.values_list("slice_id", flat=True))


def _row(piece: AssetPartition) -> PartitionRow:
    return PartitionRow(
        piece.key, piece.window_start, piece.window_end, piece.segment, piece.bucket
    )
