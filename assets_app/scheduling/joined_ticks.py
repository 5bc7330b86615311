"""Ticks of schedules that join times and assets: each schedule in a transaction of its own."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from django.conf import settings
from django.db import transaction

import slicewise
from assets_app.execution.queue.messages import nudge_dispatch
from assets_app.models import Asset, AssetPartition, Schedule, Target
from assets_app.queries.schedule_ticks import next_tick
from assets_app.scheduling.evaluations import Evaluation
from assets_app.scheduling.failures import forget_failures, record_failures
from assets_app.scheduling.isolation import isolated
from assets_app.scheduling.partition_marks import PartitionsLocked, mark_due_later, refuse_locked
from assets_app.scheduling.queueing import evaluate_rows, queue_evaluated, scheduled_target
from assets_app.scheduling.recording import TickResult, number_ticks, record_ticks
from assets_app.scheduling.tick_terms import MOMENT, SECOND, Ticks, TickTerms
from partitions_app.concerned import existing_keys
from slicewise.partitions import PartitionRow, partition_rows

# The other schedules tick at the next beat: a tick of so many takes two seconds, for which other
# work waits.
_BATCH_SIZE = 100


def handle_joined_ticks(now: datetime) -> int:
    """Queue the partitions that ticks up to now make due by schedules that join times and assets;
    return the number of schedules that ticked.

    Without a tick the call costs one look at an index.
    """
    due = Schedule.objects.filter(next_at__lte=now, by_time=False).order_by("next_at", "id")
    return sum(_handle(pk, now) for pk in due.values_list("pk", flat=True)[:_BATCH_SIZE])


@transaction.atomic
def _handle(schedule_id: int, now: datetime) -> bool:
    """Handle the ticks of one schedule; return whether the schedule ticked."""
    schedule = (
        Schedule.objects.select_for_update(of=("self",), no_key=True, skip_locked=True)
        .select_related("producer__current_version", "group")
        .filter(pk=schedule_id, next_at__lte=now, by_time=False)
        .first()
    )
    if schedule is None or schedule.rule is None:
        return False  # handled by another worker, or changed
    asset = _asset_of(schedule)
    if asset is not None and asset.paused:
        # The asset was paused before the schedule existed.
        Schedule.objects.filter(pk=schedule.pk).update(next_at=None)
        return False
    with isolated(asset or Asset(name=schedule.producer.name)) as outcome:
        if asset is None:
            raise LookupError("no asset is declared that it makes")
        _tick(schedule, scheduled_target(asset), _until(schedule, asset, now))
    if outcome.error is None:
        forget_failures([schedule])
    elif not isinstance(outcome.error, PartitionsLocked):  # else the next beat tries again
        record_failures({schedule.pk: outcome.error}, now, is_tick=True)
    nudge_dispatch()
    return outcome.error is None


def _asset_of(schedule: Schedule) -> Asset | None:
    """Return the asset that a tick queues: one of the assets that are made together, whose run
    makes the others as well, and a paused one if there is any.
    """
    declared = Asset.objects.select_related("partition_definition").filter(
        producer=schedule.producer_id, active=True
    )
    # An asset stays in force while its own file is broken, even if its function no longer makes the
    # asset.
    names = schedule.producer.outlet_names
    return next(
        (asset for asset in declared.order_by("-paused", "id") if asset.name in names), None
    )


def _until(schedule: Schedule, asset: Asset, now: datetime) -> datetime:
    """Return up to when one transaction handles ticks: now, or an earlier moment where the ticks
    until now are about too many partitions. At least the first tick is handled.
    """

    def is_too_much(until: datetime) -> bool:
        schedule_times = TickTerms(rule=schedule_rule, began_at=schedule.began_at, now=until)
        ended = schedule_times.ended_since(asset.definition, schedule.handled_until)
        return bool(len(ended) > settings.MAX_PARTITIONS_PER_TICK)

    assert schedule.rule is not None  # noqa: S101  (the caller has checked)
    schedule_rule = schedule.rule
    first = next_tick(schedule_rule, schedule.handled_until)
    if first is None or first >= now or not is_too_much(now):
        return now
    seconds = range(1, (now - first) // SECOND)
    more = bisect_left(seconds, True, key=lambda number: is_too_much(first + number * SECOND))
    return first + more * SECOND


def _tick(schedule: Schedule, target: Target, now: datetime) -> None:
    """Queue the partitions that ticks since the last handled one make due, and move the schedule
    on.
    """
    assert schedule.rule is not None  # noqa: S101  (the caller has checked)
    since = schedule.handled_until + MOMENT
    released_since = _take_released(target, now)
    schedule_times = TickTerms(
        rule=schedule.rule,
        began_at=schedule.began_at,
        now=now,
        since=since,
        since_by_key={key: min(since, due_at) for key, due_at in released_since.items()},
    )
    ended = schedule_times.ended_since(target.definition, schedule.handled_until)
    rows = _rows(target, ended, released_since, now)
    refuse_locked(target, rows)
    limit = settings.MAX_PARTITIONS_PER_TICK
    # Evaluated a moment later, in transactions with less to do.
    _evaluate_later(target, rows[limit:], schedule_times)
    evaluations = [
        # A tick does not try partitions again that assets alone have made due before.
        evaluation if evaluation.is_due_by_tick or evaluation.row.key in released_since
        else replace(evaluation, is_due=False)
        for evaluation in evaluate_rows(target, rows[:limit], None, now, schedule_times)
    ]  # fmt: skip
    ticks = schedule_times.ticks_after(schedule.handled_until)
    result = _result(schedule, ticks, evaluations)
    if result.to_queue:
        number_ticks([result])
    queued = queue_evaluated(schedule, target, evaluations, now, schedule_times, tick_id=result.pk)
    result.in_flight = len(queued.held)
    record_ticks([result])
    next_at = next_tick(schedule.rule, ticks.last)
    Schedule.objects.filter(pk=schedule.pk).update(handled_until=ticks.last, next_at=next_at)


def _evaluate_later(
    target: Target, rows: Sequence[PartitionRow], schedule_times: TickTerms
) -> None:
    """Mark partitions to be evaluated again by the ticks that are examined for each of them now."""
    rows_by_moment: dict[datetime | None, list[PartitionRow]] = {}
    for row in rows:
        rows_by_moment.setdefault(schedule_times.since_of(row.key), []).append(row)
    for since, moment_rows in rows_by_moment.items():
        mark_due_later(target, moment_rows, since)


def _result(schedule: Schedule, ticks: Ticks, evaluations: Sequence[Evaluation]) -> TickResult:
    to_queue = [evaluation.row for evaluation in evaluations if evaluation.is_due]
    other_evaluations = [evaluation for evaluation in evaluations if not evaluation.is_due]
    existing = sum(
        evaluation.is_made and evaluation.row.end is not None for evaluation in other_evaluations
    )
    return TickResult(
        schedule=schedule,
        at=ticks.last,
        count=ticks.tick_count,
        to_queue=to_queue,
        existing=existing,
        waiting=len(other_evaluations) - existing,
    )


def _take_released(target: Target, now: datetime) -> dict[str, datetime]:
    """Take the partitions that waited for a tick until now; return from when on ticks are examined
    for each, by key.
    """
    waiting = AssetPartition.objects.filter(
        asset=target.asset.pk, identity=target.identity,
        due_again=True, due_at__lte=now, held_by__isnull=True,
    )  # fmt: skip
    locked = waiting.select_for_update(skip_locked=True).order_by("key")
    marked_rows = list(
        locked.values_list("pk", "key", "due_at")[: settings.MAX_PARTITIONS_PER_TICK]
    )
    taken_rows = AssetPartition.objects.filter(pk__in=[pk for pk, _, _ in marked_rows])
    taken_rows.update(due_again=False, due_at=None)
    return {key: due_at for _, key, due_at in marked_rows if due_at is not None}


def _rows(
    target: Target, ended: slicewise.PartitionSet, released: Iterable[str], now: datetime
) -> list[PartitionRow]:
    """Return the rows of the ended and released partitions whose windows have ended."""
    definition = target.definition
    keys = existing_keys(definition, list(released))
    partitions = ended | slicewise.PartitionSet.of(definition, keys)
    rows = partition_rows(definition, partitions)
    return [row for row in rows if row.end is None or row.end <= now]
