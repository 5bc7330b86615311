"""Requeueing of partitions that came due before the end of the window or while a run held the
partition, and of partitions that wait for a tick.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

import slicewise
from assets_app.execution.queue.claims import claim_all
from assets_app.execution.queue.messages import nudge_dispatch
from assets_app.models import Asset, AssetPartition, RunPartition, Schedule, Target, Trigger
from assets_app.scheduling.failures import FIRST_PAUSE, forget_failures, record_failures
from assets_app.scheduling.isolation import isolated
from assets_app.scheduling.partition_marks import mark_due_again
from assets_app.scheduling.planning import planned_runs, terms_of
from assets_app.scheduling.queueing import TouchedPartitions, queue_due
from partitions_app.concerned import existing_keys
from slicewise.partitions import PartitionRow

_BATCH_SIZE = 1_000


def requeue_due(now: datetime) -> int:
    """Queue the partitions that are still due; return the number of partitions examined.

    With a schedule by time, a window that was materialized meanwhile is not materialized twice. A
    partition without a window came due by a later tick than the tick of its run, and is
    materialized once more. With a schedule by assets, the partition is evaluated again. Without
    such partitions the call costs one look at an index.
    """
    released = AssetPartition.objects.filter(due_again=True, held_by__isnull=True)
    put_off = released.filter(due_at__lte=now).order_by("due_at")
    # Each query reads one end of the index: partitions whose windows have not ended, of which there
    # may be many, lie behind that end.
    queries = (released.filter(due_at=None), put_off)
    if not any(query.exists() for query in queries):
        return 0
    # The handler of the ticks of a schedule takes the partitions that wait for these ticks.
    ticking_schedules = Schedule.objects.filter(
        Q(next_at__lte=now) | Q(next_at=F("retry_at")),  # as in `has_tick_to_handle`
        producer=OuterRef("asset__producer"),
        by_time=False,
    )
    return _queue_released((queries[0], put_off.filter(~Exists(ticking_schedules))), now)


@transaction.atomic
def _queue_released(queries: Iterable[QuerySet[AssetPartition]], now: datetime) -> int:
    """Queue a batch of the partitions selected by the queries; return the size of the batch."""
    released_partitions = _lock_released(queries)
    if not released_partitions:
        return 0
    marked_rows = AssetPartition.objects.filter(
        pk__in=[partition.pk for partition in released_partitions]
    )
    marked_rows.update(due_again=False, due_at=None)
    schedules = _schedules({partition.asset_id for partition in released_partitions})
    by_asset: dict[Asset, list[AssetPartition]] = {}
    for partition in released_partitions:
        by_asset.setdefault(partition.asset, []).append(partition)
    errors: dict[int, Exception] = {}
    unevaluated_ids: dict[int, list[int]] = {}
    for asset, partitions in by_asset.items():
        schedule = schedules.get(asset.producer_id or 0)
        if schedule is None or schedule.rule is None or not asset.active:
            continue
        with isolated(asset) as outcome:
            _queue_all(schedule, asset, partitions, now)
        if outcome.error is None:
            forget_failures([schedule])
        else:
            errors[schedule.pk] = outcome.error
            unevaluated_ids.setdefault(schedule.pk, []).extend(
                partition.pk for partition in partitions
            )
    # Partitions marked again are examined when the schedule is tried again.
    retried_at = dict.fromkeys(errors, now + FIRST_PAUSE) | record_failures(errors, now)
    for schedule_id, retry_at in retried_at.items():
        unevaluated_rows = AssetPartition.objects.filter(pk__in=unevaluated_ids[schedule_id])
        unevaluated_rows.update(due_again=True, due_at=retry_at)
    nudge_dispatch()
    return len(released_partitions)


def _lock_released(queries: Iterable[QuerySet[AssetPartition]]) -> list[AssetPartition]:
    """Lock due partitions, as many as one transaction handles; return them in claim order."""
    locked_partitions: list[AssetPartition] = []
    for query in queries:
        rows = query.select_for_update(of=("self",), skip_locked=True)
        locked_partitions += rows.select_related("asset__partition_definition")[
            : _BATCH_SIZE - len(locked_partitions)
        ]
    return sorted(
        locked_partitions,
        key=lambda partition: (partition.asset_id, partition.identity, partition.key),
    )


def _schedules(asset_ids: set[int]) -> dict[int, Schedule]:
    rows = Schedule.objects.select_related("producer__current_version", "group")
    return {row.producer_id: row for row in rows.filter(producer__assets__in=asset_ids)}


def _queue_all(
    schedule: Schedule, asset: Asset, partitions: Sequence[AssetPartition], now: datetime
) -> None:
    """Queue the partitions of an asset, and the partition held by runs that discover partitions."""
    for target in (Target(asset), Target(asset, is_discovering=True)):
        own_partitions = [
            partition for partition in partitions if partition.identity == target.identity
        ]
        _queue(schedule, target, own_partitions, now)


def _queue(
    schedule: Schedule, target: Target, due_partitions: Sequence[AssetPartition], now: datetime
) -> None:
    # An asset stays in force while its own file is broken, even if its function no longer makes the
    # asset.
    asset = target.asset
    if asset.paused or not due_partitions or asset.name not in schedule.producer.outlet_names:
        return
    keys = existing_keys(target.definition, [partition.key for partition in due_partitions])
    if schedule.by_time:
        existing = {key.text for key in keys}
        materialized_ids = _materialized_by_last_run(due_partitions)
        rows = [
            _row(partition)
            for partition in due_partitions
            if partition.key in existing and partition.pk not in materialized_ids
        ]
        run_terms = terms_of(schedule, target, Trigger.SCHEDULE)
        _, held_partitions = claim_all(list(planned_runs(run_terms, rows)))
        mark_due_again(held_partitions)
    else:
        partitions = slicewise.PartitionSet.of(target.definition, keys)
        since = {
            partition.key: partition.due_at for partition in due_partitions if partition.due_at
        }
        queue_due(TouchedPartitions(schedule, target, partitions), None, now, None, since)


def _materialized_by_last_run(partitions: Sequence[AssetPartition]) -> set[int]:
    """Return the ids of the windows that were materialized by the last run that held the window.

    Windows that a canceled run did not materialize are still due.
    """
    windows = [row for row in partitions if row.window_start is not None]
    materialized_windows = RunPartition.objects.filter(
        partition__in=windows, run=F("partition__last_run"), state=RunPartition.State.SUCCEEDED
    )
    return set(materialized_windows.values_list("partition_id", flat=True))


def _row(partition: AssetPartition) -> PartitionRow:
    return PartitionRow(
        partition.key,
        partition.window_start,
        partition.window_end,
        partition.segment,
        partition.bucket,
    )
