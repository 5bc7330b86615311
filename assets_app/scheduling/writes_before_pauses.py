"""Writes from before a pause that are evaluated during the pause, and queue nothing."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db import connection

from assets_app.models import AssetDependency, Outbox, Run, Schedule, WriteReport
from assets_app.scheduling.affected import NewPartition, Write

# Returns the schedules whose row another transaction has locked: the evaluation does not wait.
_MOVE_BACK = """
WITH earlier AS MATERIALIZED (
    SELECT schedule.id, written.at
    FROM unnest(%s::bigint[], %s::timestamptz[]) AS written(schedule_id, at)
    JOIN assets_app_schedule AS schedule ON schedule.id = written.schedule_id
    WHERE written.at < least(schedule.paused_at, schedule.unevaluated_since)
), free AS MATERIALIZED (
    SELECT id FROM assets_app_schedule WHERE id IN (SELECT id FROM earlier)
    FOR NO KEY UPDATE SKIP LOCKED
), moved AS (
    UPDATE assets_app_schedule AS schedule SET unevaluated_since = earlier.at
    FROM earlier JOIN free USING (id) WHERE schedule.id = earlier.id
)
SELECT id FROM earlier EXCEPT SELECT id FROM free
"""


def keep_for_missed(
    paused_edges: Iterable[AssetDependency],
    entries: Sequence[Outbox],
    new_partitions: Iterable[NewPartition],
) -> dict[Schedule, set[Write]]:
    """Have the lists of missed partitions begin with the writes of the entries, where the asset of
    an edge was paused after a write was recorded: the begin of the pause has seen no entry of a
    write whose transaction ended later.

    Return the writes to look at again for schedules whose row another transaction has locked.
    """
    edges_by_schedule: dict[Schedule, list[AssetDependency]] = {}
    for edge in paused_edges:
        if (schedule := Schedule.of(edge.downstream)) and schedule.paused_at:
            edges_by_schedule.setdefault(schedule, []).append(edge)
    if not edges_by_schedule:
        return {}
    recorded_at = _recorded_at(entries)
    writes_by_asset: dict[int, set[Write]] = {}
    for partition in new_partitions:
        writes_by_asset.setdefault(partition.asset_id, set()).add(partition.write)
    writes: dict[Schedule, set[Write]] = {}
    for schedule, edges in edges_by_schedule.items():
        upstream_writes = set[Write]().union(
            *(writes_by_asset.get(edge.upstream_id, set()) for edge in edges)
        )
        # An entry that is kept for another schedule is evaluated for that schedule alone.
        earlier_writes = {
            write
            for entry in entries
            if entry.schedule_id in (None, schedule.pk)
            and (write := (entry.run_id, entry.report_id)) in upstream_writes
            and schedule.paused_at
            and recorded_at[write] < schedule.paused_at
        }
        if earlier_writes:
            writes[schedule] = earlier_writes
    locked_ids = _move_back(
        {
            schedule.pk: min(recorded_at[write] for write in own_writes)
            for schedule, own_writes in writes.items()
        }
    )
    return {schedule: kept for schedule, kept in writes.items() if schedule.pk in locked_ids}


def _move_back(earliest: Mapping[int, datetime]) -> set[int]:
    """Move the begin of lists back by the ids of schedules; return the locked schedules."""
    if not earliest:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(_MOVE_BACK, [list(earliest), list(earliest.values())])
        return {schedule_id for (schedule_id,) in cursor.fetchall()}


def _recorded_at(entries: Sequence[Outbox]) -> Mapping[Write, datetime]:
    """Return when the write of each entry was recorded, as `oldest_unevaluated` has the times."""
    run_ids = [entry.run_id for entry in entries if entry.run_id]
    report_ids = [entry.report_id for entry in entries if entry.report_id]
    ended = dict(Run.objects.filter(pk__in=run_ids).values_list("pk", "ended_at"))
    reports = WriteReport.objects.filter(pk__in=report_ids)
    reported = dict(reports.values_list("pk", "created_at"))
    times: dict[Write, datetime] = {}
    for entry in entries:
        entry_times = (
            entry.created_at,
            ended.get(entry.run_id or 0),
            reported.get(entry.report_id or 0),
        )
        recorded_at = min(time for time in entry_times if time is not None)
        write = (entry.run_id, entry.report_id)
        times[write] = min(times.get(write, recorded_at), recorded_at)
    return times
