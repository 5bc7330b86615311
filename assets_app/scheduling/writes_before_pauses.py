"""Writes from before a pause that are evaluated during the pause, and queue nothing."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import connection

from assets_app.models import AssetDependency, Schedule
from assets_app.scheduling.affected import NewPartition

# A schedule whose row another transaction has locked is passed over: the evaluation of other
# schedules does not wait.
_MOVE_BACK = """
WITH earlier AS (
    SELECT schedule.id, written.at
    FROM unnest(%s::bigint[], %s::timestamptz[]) AS written(schedule_id, at)
    JOIN assets_app_schedule AS schedule ON schedule.id = written.schedule_id
    WHERE schedule.unpaused_at IS NULL
      AND written.at < least(schedule.paused_at, schedule.unevaluated_since)
    FOR NO KEY UPDATE OF schedule SKIP LOCKED
)
UPDATE assets_app_schedule AS schedule SET unevaluated_since = earlier.at
FROM earlier WHERE schedule.id = earlier.id
"""


def keep_for_missed(
    paused_edges: Iterable[AssetDependency], new_partitions: Sequence[NewPartition]
) -> None:
    """Have the lists of missed partitions begin with the new partitions, where the asset of an edge
    was paused after these were written. The begin of the pause has seen no entry of a write whose
    transaction ended later.
    """
    earliest: dict[int, datetime] = {}
    for partition in new_partitions:
        known_at = earliest.get(partition.asset_id, partition.at)
        earliest[partition.asset_id] = min(known_at, partition.at)
    times: dict[int, datetime] = {}
    for edge in paused_edges:
        schedule, written_at = Schedule.of(edge.downstream), earliest[edge.upstream_id]
        if schedule is None or schedule.paused_at is None or written_at >= schedule.paused_at:
            continue
        times[schedule.pk] = min(times.get(schedule.pk, written_at), written_at)
    if times:
        with connection.cursor() as cursor:
            cursor.execute(_MOVE_BACK, [list(times), list(times.values())])
