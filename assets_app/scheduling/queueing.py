"""Evaluation and queueing of the due partitions of assets that assets schedule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import Q, QuerySet

import slicewise
from assets_app.execution.queue.claims import ClaimedPartition, HeldPartition, PlannedRun, claim_all
from assets_app.models import Asset, AssetDependency, LateEffect, Schedule, Target, Trigger
from assets_app.queries.discovering import discovers_when_scheduled
from assets_app.scheduling.evaluations import Evaluation
from assets_app.scheduling.late_inputs import FRESH_AGAIN, record_late_inputs
from assets_app.scheduling.partition_marks import (
    mark_due_again,
    mark_due_later,
    mark_due_no_more,
    refuse_locked,
)
from assets_app.scheduling.planning import planned_runs, terms_of
from assets_app.scheduling.readiness import evaluate
from assets_app.scheduling.tick_terms import TickTerms, tick_terms
from slicewise.partitions import PartitionRow, partition_rows


@dataclass(frozen=True, slots=True)
class TouchedPartitions:
    """A target scheduled by assets, and the partitions that an upstream change concerns."""

    schedule: Schedule
    target: Target
    partitions: slicewise.PartitionSet


def scheduled_target(asset: Asset) -> Target:
    """Return the target of runs that a schedule by assets queues.

    An asset with partitions at run time is queued key by key, or a run that discovers the
    partitions is queued.
    """
    return Target(asset, is_discovering=discovers_when_scheduled(asset))


def scheduling_edges() -> QuerySet[AssetDependency]:
    """Select the dependencies that schedule assets, with all rows that the evaluation reads."""
    return _edges().filter(scheduling=True)


def examined_edges() -> QuerySet[AssetDependency]:
    """Select the dependencies that decide whether partitions are due: on assets that schedule, and
    on assets that are to be fresh.
    """
    return _edges().filter(Q(scheduling=True) | Q(fresh=True))


def _edges() -> QuerySet[AssetDependency]:
    return (
        AssetDependency.objects.select_related(
            "upstream__partition_definition",
            "downstream__partition_definition",
            "downstream__producer__current_version",
            "downstream__producer__schedule__group",
        )
        .filter(downstream__active=True)
        .order_by("downstream_id", "upstream__name")
    )


def queue_due(
    touched: TouchedPartitions,
    new_upstreams: set[tuple[int, str]] | None,
    now: datetime,
    since: datetime | None = None,
    since_by_key: Mapping[str, datetime] | None = None,
) -> int:
    """Queue the touched partitions that are due now; return the number of partitions queued.

    ``new_upstreams`` names the upstream partitions (asset id, key) that were just materialized,
    where these are known. ``since`` and ``since_by_key`` say from when on ticks of the times in the
    schedule are examined; without a time no tick is. Windows that have not ended are examined again
    at the end of the window, and partitions that wait for a tick at the next tick. Raises
    PartitionsLocked where another transaction has locked some of the partitions.
    """
    target = touched.target
    if not touched.partitions:
        return 0
    rows = list(partition_rows(target.definition, touched.partitions))
    refuse_locked(target, rows)
    early = [row for row in rows if row.end is not None and row.end > now]
    rows = [row for row in rows if row.end is None or row.end <= now]
    mark_due_later(target, early)
    schedule_times = tick_terms(touched.schedule, now, since=since, since_by_key=since_by_key)
    evaluations = evaluate_rows(target, rows, new_upstreams, now, schedule_times)
    return len(queue_evaluated(touched.schedule, target, evaluations, now, schedule_times).claimed)


def evaluate_rows(
    target: Target,
    rows: Sequence[PartitionRow],
    new_upstreams: set[tuple[int, str]] | None,
    now: datetime,
    schedule_times: TickTerms | None,
) -> list[Evaluation]:
    """Evaluate the schedule of a target for each of the partitions."""
    edges = list(examined_edges().filter(downstream=target.asset))
    return evaluate(target, edges, rows, made=new_upstreams, now=now, terms=schedule_times)


class Queued(NamedTuple):
    """The due partitions that were queued, and the due partitions that another run holds."""

    claimed: list[ClaimedPartition]
    held: list[HeldPartition]


def queue_evaluated(
    schedule: Schedule,
    target: Target,
    evaluations: Sequence[Evaluation],
    now: datetime,
    schedule_times: TickTerms | None,
    *,
    tick_id: int | None = None,
) -> Queued:
    """Queue the due partitions, and put off the windows that wait for a tick until the next tick.

    Partitions without a window are examined by each tick.
    """
    by_assets = [
        evaluation.row
        for evaluation in evaluations
        if evaluation.is_due and not evaluation.is_due_by_tick
    ]
    by_tick = [evaluation.row for evaluation in evaluations if evaluation.is_due_by_tick]
    planned: list[PlannedRun] = [
        *planned_runs(terms_of(schedule, target, Trigger.UPSTREAM), by_assets),
        *planned_runs(terms_of(schedule, target, Trigger.SCHEDULE, tick_id=tick_id), by_tick),
    ]
    claimed, held_partitions = claim_all(planned)
    _record_late(claimed, evaluations)
    mark_due_later(target, _waiting_for_fresh(evaluations), FRESH_AGAIN)
    if schedule_times is None:
        mark_due_again(held_partitions)
        return Queued(claimed, held_partitions)
    since = {
        row.key: ticked_since
        for row in by_tick
        if (ticked_since := schedule_times.since_of(row.key)) is not None
    }
    mark_due_again(held_partitions, now, since, schedule_times.last_tick)
    # Put off until a tick of an earlier schedule, the partitions would be queued twice by ticks.
    keys = {row.key for row in by_tick}
    taken_rows = [claim.row for claim in claimed if claim.row.key in keys]
    mark_due_no_more(target, taken_rows, now, FRESH_AGAIN)
    waiting: dict[datetime, list[PartitionRow]] = {}
    for evaluation in evaluations:
        next_at = schedule_times.next_of(evaluation.row) if evaluation.waits_for_tick else None
        if next_at is not None and evaluation.row.end is not None:
            waiting.setdefault(next_at, []).append(evaluation.row)
    for next_at, rows in sorted(waiting.items()):
        mark_due_later(target, rows, next_at)
    return Queued(claimed, held_partitions)


def _record_late(claimed: Sequence[ClaimedPartition], evaluations: Sequence[Evaluation]) -> None:
    run_ids = {partition.row.key: partition.run_id for partition in claimed}
    record_late_inputs(
        (run_ids[evaluation.row.key], evaluation.row.key, evaluation.late_effect, evaluation.late)
        for evaluation in evaluations
        if evaluation.late and evaluation.row.key in run_ids
    )


def _waiting_for_fresh(evaluations: Sequence[Evaluation]) -> list[PartitionRow]:
    """Return the partitions to be examined when an asset that is to be fresh is written: also due
    partitions that are made again then.

    A partition that waits for a tick as well is examined then too: marks until a tick are released.
    """
    return [
        evaluation.row
        for evaluation in evaluations
        if (
            evaluation.waits_for_fresh
            and not (evaluation.waits_for_tick and evaluation.row.end is not None)
        )
        or (
            evaluation.late_effect == LateEffect.REMAKE
            and any(late.is_of_fresh for late in evaluation.late)
        )
    ]
