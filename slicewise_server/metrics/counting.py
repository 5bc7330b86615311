"""Noted changes of runs are added to the counts of runs and of times."""

from django.db import connection, transaction

from slicewise_server.web.advisory_locks import AdvisoryLock, try_lock_until_commit

# The whole statement sees one snapshot: a change that commits meanwhile is left to the next call.
_COUNT = """
WITH change AS MATERIALIZED (
    DELETE FROM metrics_runchange RETURNING asset_id, queue, state, change, bucket, seconds
), counted AS (
    INSERT INTO metrics_runcount AS total (asset_id, queue, state, runs, entered)
    SELECT asset_id, queue, state, sum(change), sum(greatest(change, 0)) FROM change
    GROUP BY asset_id, queue, state
    ON CONFLICT (asset_id, queue, state) DO UPDATE
        SET runs = total.runs + EXCLUDED.runs, entered = total.entered + EXCLUDED.entered
), timed AS (
    INSERT INTO metrics_timecount AS total (metric, labels, bucket, observations, seconds)
    SELECT CASE state WHEN 'running' THEN 'run_start_delay' ELSE 'run_duration' END,
           CASE state WHEN 'running' THEN queue ELSE queue || '|' || state END,
           bucket, sum(change), sum(seconds)
    FROM change WHERE bucket IS NOT NULL AND change > 0
    GROUP BY 1, 2, 3
    ON CONFLICT (metric, labels, bucket) DO UPDATE
        SET observations = total.observations + EXCLUDED.observations,
            seconds = total.seconds + EXCLUDED.seconds
)
SELECT count(*) FROM change
"""


def count_runs() -> int:
    """Add the noted changes to the counts, and delete the changes; return their number.

    One process counts at a time: others return at once.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        if not try_lock_until_commit(AdvisoryLock.METRICS):
            return 0
        cursor.execute(_COUNT)
        number: int = cursor.fetchone()[0]
        return number
