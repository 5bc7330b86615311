"""Partitions that a schedule by assets, or one that joins times to assets, has missed while paused.

The partitions are computed on demand: from upstream writes and ticks during the pause, from earlier
writes and marks of partitions that were not evaluated when the pause began, and from the marks of
partitions that wait for an asset to be fresh. No record is kept for each write.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import reduce
from operator import or_

from django.conf import settings
from django.db import connection

import slicewise
from assets_app.models import Asset, AssetDependency, AssetPartition, Schedule, Target, Trigger
from assets_app.queries.edges import edge_of
from assets_app.queries.missed_spans import Span, spans_of
from assets_app.queries.unevaluated_writes import no_longer_marked
from assets_app.scheduling.affected import NewPartition, affected
from assets_app.scheduling.late_inputs import keys_waiting_for_fresh
from assets_app.scheduling.queueing import examined_edges, scheduled_target, scheduling_edges
from assets_app.scheduling.readiness import evaluate
from assets_app.scheduling.tick_terms import MOMENT, TickTerms
from partitions_app.concerned import existing_keys
from slicewise.partitions import PartitionRow, partition_rows

# A transaction that recorded a write before the pause may have ended after the pause began: the
# begin of the pause did not find the write in the outbox.
_RECORDED_WITHIN = timedelta(minutes=1)
# Only the newest rows are read, so that a request costs no more after a long pause, or with a long
# history.
_MOST_RUNS = 20_000
_MOST_WRITES = 20_000
_MOST_PARTITIONS = 1_000
_MOST_NEEDED = 50_000

# Partitions written during the pause by the newest runs and reports of the upstream assets, and of
# the assets that are made with these. Materializations of a backfill make no downstream partition
# due.
_WRITTEN = """
WITH upstream AS (
    SELECT DISTINCT other.id FROM assets_app_asset AS asset
    JOIN assets_app_asset AS other
        ON other.id = asset.id OR other.producer_id = asset.producer_id
    WHERE asset.id = ANY(%(upstream)s)
), written AS (
    SELECT materialization.partition_id, materialization.created_at
    FROM upstream
    CROSS JOIN LATERAL (
        SELECT run.id, run.trigger, run.ended_at FROM assets_app_run AS run
        WHERE run.asset_id = upstream.id ORDER BY run.id DESC LIMIT %(most_runs)s
    ) AS run
    JOIN assets_app_materialization AS materialization ON materialization.run_id = run.id
    WHERE run.trigger <> %(backfill)s AND coalesce(run.ended_at, 'infinity') >= %(since)s
      AND materialization.created_at >= %(since)s AND materialization.created_at < %(until)s
    UNION ALL
    SELECT materialization.partition_id, materialization.created_at
    FROM assets_app_writereport AS report
    JOIN assets_app_materialization AS materialization ON materialization.report_id = report.id
    WHERE report.asset_id = ANY(%(upstream)s) AND report.created_at >= %(since)s
      AND materialization.created_at >= %(since)s AND materialization.created_at < %(until)s
), newest AS (
    SELECT partition_id, created_at FROM written ORDER BY created_at DESC LIMIT %(most_writes)s
)
SELECT partition.asset_id, partition.identity, partition.key, max(newest.created_at),
    before.created_at
FROM newest
JOIN assets_app_assetpartition AS partition ON partition.id = newest.partition_id
LEFT JOIN LATERAL (
    SELECT max(earlier.created_at) AS created_at
    FROM assets_app_materialization AS earlier
    LEFT JOIN assets_app_run AS run ON run.id = earlier.run_id
    WHERE partition.window_start IS NULL AND earlier.partition_id = partition.id
      AND earlier.created_at < %(since)s AND run.trigger IS DISTINCT FROM %(backfill)s
) AS before ON true
WHERE partition.asset_id = ANY(%(upstream)s)
GROUP BY partition.asset_id, partition.identity, partition.key, before.created_at
"""


def missed_by_assets(
    asset: Asset, schedule: Schedule, now: datetime
) -> tuple[slicewise.PartitionSet, bool] | None:
    """Return (partitions, is complete): the partitions that upstream writes or ticks during the
    last pause made due, and whether these are all.

    None without a pause on record that goes on or ended within `SCHEDULE_TICK_DAYS`, or without
    writes and ticks during the pause. Partitions materialized meanwhile are no longer due, and
    partitions that a run holds now are left out. Of very many partitions only the newest are
    examined. A partition without a window is not missed by a tick: the next tick queues the
    partition.
    """
    if schedule.paused_at is None or not is_on_record(schedule, now):
        return None
    edges = list(scheduling_edges().filter(downstream=asset))
    examined = list(examined_edges().filter(downstream=asset))
    target = scheduled_target(asset)
    written = _written(edges, schedule, now) if edges else []
    spans = spans_of(schedule, now)
    schedule_times = _schedule_times(schedule, spans, now)
    ticked = None if schedule_times is None else _ticked(target, schedule_times, spans)
    marked = _waiting_for_fresh(target, examined, schedule, now) | _unexamined(target, schedule)
    if not written and not ticked and not marked:
        return None
    candidates = _candidates(target, edges, written, schedule, now) | marked
    if ticked:
        candidates |= ticked
    newest = candidates[max(0, len(candidates) - _MOST_PARTITIONS) :]
    rows = [
        row
        for row in partition_rows(target.definition, newest)
        if row.end is None or row.end <= now
    ]
    looked_at = _affordable(target, examined, rows, now)
    names = {(partition.asset_id, partition.key) for partition in written}
    # The inputs of a marked partition may have been written before the pause.
    made = None if marked else names
    evaluations = evaluate(target, examined, looked_at, made=made, now=now, terms=schedule_times)
    # Partitions that waited only for a tick wait no more: such partitions were not put off until
    # the next tick.
    keys = [
        evaluation.row.key
        for evaluation in evaluations
        if evaluation.is_due or evaluation.waits_for_tick
    ]
    held_keys = set(_keys_held(target, keys))
    missed = existing_keys(target.definition, [key for key in keys if key not in held_keys])
    due = slicewise.PartitionSet.of(target.definition, missed)
    is_all = len(newest) == len(candidates) and len(looked_at) == len(rows)
    is_cut = schedule.partitions_to_examine.get("is_cut", False)
    return due, is_all and not is_cut and len(written) < _MOST_WRITES


def is_on_record(schedule: Schedule, now: datetime) -> bool:
    """Return whether the last pause goes on, or ended within `SCHEDULE_TICK_DAYS`."""
    retention = timedelta(days=settings.SCHEDULE_TICK_DAYS)
    return schedule.unpaused_at is None or schedule.unpaused_at > now - retention


def _schedule_times(schedule: Schedule, spans: Sequence[Span], now: datetime) -> TickTerms | None:
    """Return the times in the schedule as of the end of the pause, or as of now during the pause;
    without ticks where the times came to the schedule after the pause.
    """
    if not schedule.joins_times or schedule.rule is None:
        return None
    ended_at = schedule.unpaused_at or now
    if not spans:
        return TickTerms(rule=schedule.rule, began_at=ended_at, now=ended_at)
    since = spans[0][0]
    return TickTerms(
        rule=schedule.rule,
        # A schedule whose file was missing for a while has begun anew.
        began_at=min(schedule.began_at, since) if schedule.unpaused_at is None else since,
        now=ended_at,
        since=since + MOMENT,
    )


def _ticked(
    target: Target, schedule_times: TickTerms, spans: Sequence[Span]
) -> slicewise.PartitionSet | None:
    """Return the windows that ticks during the pause were about; None without windows."""
    definition = target.definition
    if definition is None or definition.time_dimension is None:
        return None
    windows = slicewise.PartitionSet.of(definition, [])
    for number, (since, until) in enumerate(spans):
        # After a span without times, the schedule began anew.
        began_at = since if number else schedule_times.began_at
        in_span = replace(schedule_times, began_at=began_at, now=until, since=since + MOMENT)
        windows |= in_span.ended_since(definition, since)
    return windows


def _written(
    edges: Sequence[AssetDependency], schedule: Schedule, now: datetime
) -> list[NewPartition]:
    """Return the upstream partitions that were written during the pause, or that a write before
    the pause left unevaluated, by the last write.
    """
    assert schedule.paused_at is not None  # noqa: S101  (the caller has checked)
    unevaluated_since = schedule.unevaluated_since or schedule.paused_at
    with connection.cursor() as cursor:
        cursor.execute(
            _WRITTEN,
            {
                "upstream": [edge.upstream_id for edge in edges],
                "since": min(unevaluated_since, schedule.paused_at) - _RECORDED_WITHIN,
                "until": schedule.unpaused_at or now,
                "backfill": Trigger.BACKFILL,
                "most_runs": _MOST_RUNS,
                "most_writes": _MOST_WRITES,
            },
        )
        return [
            NewPartition(
                write=(None, None), asset_id=asset_id, identity=identity, key=key,
                at=written_at, before=previous_at,
            )
            for asset_id, identity, key, written_at, previous_at in cursor.fetchall()
        ]  # fmt: skip


def _candidates(
    target: Target,
    edges: Sequence[AssetDependency],
    written: Sequence[NewPartition],
    schedule: Schedule,
    now: datetime,
) -> slicewise.PartitionSet:
    """Return the partitions that the written partitions concern, due or not."""
    since = schedule.handled_before_pause or schedule.handled_until
    sets = [slicewise.PartitionSet.of(target.definition, [])]
    for edge in edges:
        upstream = [partition for partition in written if partition.asset_id == edge.upstream_id]
        sets.append(affected(edge, target, upstream, since=since, now=now))
    return reduce(or_, sets)


def _waiting_for_fresh(
    target: Target, examined: Sequence[AssetDependency], schedule: Schedule, now: datetime
) -> slicewise.PartitionSet:
    """Return the partitions that wait for an asset to be fresh, if such an asset was written during
    the pause: that write has not examined the partitions.
    """
    definition = target.definition
    fresh_edges = [edge for edge in examined if edge.fresh]
    if not fresh_edges or not _written(fresh_edges, schedule, now):
        return slicewise.PartitionSet.of(definition, [])
    # One more than the list examines, so that the list is known to be incomplete.
    keys = keys_waiting_for_fresh(target, _MOST_PARTITIONS + 1)
    return slicewise.PartitionSet.of(definition, existing_keys(definition, keys))


def _unexamined(target: Target, schedule: Schedule) -> slicewise.PartitionSet:
    """Return the partitions that the schedule had yet to examine when the pause began, and whose
    marks the pause has discarded. Partitions that are still marked go on waiting.
    """
    discarded = no_longer_marked(schedule.partitions_to_examine).filter(
        asset=target.asset.pk, identity=target.identity
    )
    definition, keys = target.definition, list(discarded.values_list("key", flat=True))
    return slicewise.PartitionSet.of(definition, existing_keys(definition, keys))


def _affordable(
    target: Target,
    dependencies: Sequence[AssetDependency],
    rows: Sequence[PartitionRow],
    now: datetime,
) -> list[PartitionRow]:
    """Return the newest rows that together need at most `_MOST_NEEDED` upstream partitions, in the
    order of the rows.
    """
    edges = [edge_of(dependency, now, target) for dependency in dependencies]
    affordable: list[PartitionRow] = []
    room = _MOST_NEEDED
    for row in reversed(rows):
        room -= sum(len(edge.needed_by_texts([row.key])) for edge in edges)
        if room < 0:
            break
        affordable.append(row)
    return affordable[::-1]


def _keys_held(target: Target, keys: Sequence[str]) -> Sequence[str]:
    held_rows = AssetPartition.objects.filter(
        asset=target.asset.pk, identity=target.identity, key__in=keys, held_by__isnull=False
    )
    return list(held_rows.values_list("key", flat=True))
