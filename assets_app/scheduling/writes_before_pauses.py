"""Writes from before a pause that are evaluated during the pause, and queue nothing."""

from collections.abc import Iterable, Mapping
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
    entries: Iterable[Outbox],
    new_partitions: Iterable[NewPartition],
) -> dict[Schedule, set[Write]]:
    """Have the lists of missed partitions begin with the writes of the entries, where the asset of
    an edge was paused after a write was recorded: the begin of the pause has seen no entry of a
    write whose transaction ended later.

    Return the writes to look at again for schedules whose row another transaction has locked.
    """
    edges_of_pauses = [
        (edge, schedule)
        for edge in paused_edges
        if (schedule := Schedule.of(edge.downstream)) and schedule.paused_at
    ]
    if not edges_of_pauses:
        return {}
    entry_rows = list(entries)
    recorded_at = _recorded_at(entry_rows)
    writes_by_asset: dict[int, set[Write]] = {}
    for partition in new_partitions:
        writes_by_asset.setdefault(partition.asset_id, set()).add(partition.write)
    writes: dict[Schedule, set[Write]] = {}
    for edge, schedule in edges_of_pauses:
        # An entry that is kept for another schedule is evaluated for that schedule alone.
        evaluated = {
            (entry.run_id, entry.report_id)
            for entry in entry_rows
            if entry.schedule_id in (None, schedule.pk)
        }
        if own_writes := evaluated & writes_by_asset.get(edge.upstream_id, set()):
            writes.setdefault(schedule, set()).update(own_writes)
    earliest = {
        schedule.pk: min(recorded_at[write] for write in own_writes)
        for schedule, own_writes in writes.items()
    }
    with connection.cursor() as cursor:
        cursor.execute(_MOVE_BACK, [list(earliest), list(earliest.values())])
        locked_ids = {schedule_id for (schedule_id,) in cursor.fetchall()}
    return {schedule: kept for schedule, kept in writes.items() if schedule.pk in locked_ids}


def _recorded_at(entries: Iterable[Outbox]) -> Mapping[Write, datetime]:
    """Return when the write of each entry was recorded, as `oldest_unevaluated` has the times."""
    rows = list(entries)
    run_ids = [row.run_id for row in rows if row.run_id]
    report_ids = [row.report_id for row in rows if row.report_id]
    ended = dict(Run.objects.filter(pk__in=run_ids).values_list("pk", "ended_at"))
    reported = dict(WriteReport.objects.filter(pk__in=report_ids).values_list("pk", "created_at"))
    times: dict[Write, datetime] = {}
    for row in rows:
        known_times = (row.created_at, ended.get(row.run_id or 0), reported.get(row.report_id or 0))
        recorded_at = min(time for time in known_times if time is not None)
        write = (row.run_id, row.report_id)
        times[write] = min(times.get(write, recorded_at), recorded_at)
    return times
