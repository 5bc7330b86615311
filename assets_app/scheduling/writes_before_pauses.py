"""Writes from before a pause that are evaluated during the pause, and queue nothing."""

from collections.abc import Iterable, Sequence

from django.db import connection

from assets_app.models import AssetDependency, Outbox, Schedule
from assets_app.scheduling.affected import NewPartition, Write

# A write was recorded at the time that `oldest_unevaluated` has. Returns the writes of schedules
# whose row another transaction has locked: the evaluation does not wait.
_MOVE_BACK = """
WITH earlier AS MATERIALIZED (
    SELECT schedule.id, entry.run_id, entry.report_id,
        least(entry.created_at, run.ended_at, report.created_at) AS at
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::timestamptz[])
        AS entry(schedule_id, run_id, report_id, created_at)
    JOIN assets_app_schedule AS schedule ON schedule.id = entry.schedule_id
    LEFT JOIN assets_app_run AS run ON run.id = entry.run_id
    LEFT JOIN assets_app_writereport AS report ON report.id = entry.report_id
    WHERE least(entry.created_at, run.ended_at, report.created_at)
        < least(schedule.paused_at, schedule.unevaluated_since)
), free AS MATERIALIZED (
    SELECT id FROM assets_app_schedule WHERE id IN (SELECT id FROM earlier)
    FOR NO KEY UPDATE SKIP LOCKED
), moved AS (
    UPDATE assets_app_schedule AS schedule SET unevaluated_since = oldest.at
    FROM (SELECT id, min(at) AS at FROM earlier GROUP BY id) AS oldest JOIN free USING (id)
    WHERE schedule.id = oldest.id
)
SELECT id, run_id, report_id FROM earlier WHERE id NOT IN (SELECT id FROM free)
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
    upstream_by_schedule: dict[Schedule, set[int]] = {}
    for edge in paused_edges:
        if schedule := Schedule.of(edge.downstream):
            upstream_by_schedule.setdefault(schedule, set()).add(edge.upstream_id)
    written = {(partition.write, partition.asset_id) for partition in new_partitions}
    # An entry that is kept for another schedule is evaluated for that schedule alone.
    rows = [
        (schedule.pk, entry.run_id, entry.report_id, entry.created_at)
        for schedule, upstream_ids in upstream_by_schedule.items()
        for entry in entries
        if entry.schedule_id in (None, schedule.pk)
        and any(((entry.run_id, entry.report_id), pk) in written for pk in upstream_ids)
    ]
    if not rows:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_MOVE_BACK, [list(column) for column in zip(*rows, strict=True)])
        locked = cursor.fetchall()
    schedules = {schedule.pk: schedule for schedule in upstream_by_schedule}
    writes: dict[Schedule, set[Write]] = {}
    for schedule_id, run_id, report_id in locked:
        writes.setdefault(schedules[schedule_id], set()).add((run_id, report_id))
    return writes
