"""The heads of the queues: the first ready run of each group and producer version.

The runs are the truth. Triggers store each change of a run in the same transaction (`QueueChange`);
dispatch alone brings the heads up to date, so that two transactions never write the same head.
"""

from datetime import datetime

from django.db import connection

from assets_app.queries.prepared_statements import prepared_cursor

# Delayed runs that become ready in one dispatch: more runs wait for the next dispatch.
_READY_AT_ONCE = 1_000

# A delayed run is ready once its time has come. A run that another transaction holds comes later.
_READY = """
UPDATE assets_app_run SET not_before = NULL WHERE id IN (
    SELECT id FROM assets_app_run
    WHERE state = 'queued' AND not_before <= %(now)s
    ORDER BY not_before LIMIT %(most)s FOR UPDATE SKIP LOCKED
)
"""

# The values that determine the position of a head, besides its run. A limit that no number of runs
# reaches is no limit: versions that were stored before limits had a maximum may have such a limit.
_RANK = """
SELECT version.producer_id,
       coalesce(version.definition ->> 'engine', '') <> 'submit' AS needs_spark,
       coalesce((in_force.definition ->> 'priority')::int, 0) AS priority,
       nullif(
           least((in_force.definition ->> 'max_active_runs')::numeric, 2147483647), 2147483647
       )::int AS max_active_runs,
       run_group.priority AS group_priority,
       run_group.max_active_runs AS group_max_active_runs,
       run_group.paused
FROM assets_app_rungroup AS run_group
CROSS JOIN assets_app_producerversion AS version
JOIN assets_app_producer AS producer ON producer.id = version.producer_id
LEFT JOIN assets_app_producerversion AS in_force ON in_force.id = producer.current_version_id
WHERE run_group.id = ready.group_id AND version.id = ready.producer_version_id
"""
_COLUMNS = (
    "run_id, producer_id, needs_spark, priority, max_active_runs, group_priority,"
    " group_max_active_runs, paused"
)
_NEW_COLUMNS = ", ".join(f"EXCLUDED.{name}" for name in _COLUMNS.split(", "))
_OLD_COLUMNS = ", ".join(f"head.{name}" for name in _COLUMNS.split(", "))

# Every ready run is the head's run or comes after the head's run, or a change names a run before:
# the index is read from the lesser of the two on, and not from entries that vacuum has yet to
# remove. The whole statement sees one snapshot, so the runs of each deleted change are seen. OFFSET
# 0 keeps each lookup a lookup in an index: the number of changes is never known before.
_REFRESH = f"""
WITH change AS MATERIALIZED (
    DELETE FROM assets_app_queuechange
    RETURNING queue, group_id, producer_version_id, run_id, producer_id
), changed AS MATERIALIZED (
    SELECT queue, group_id, producer_version_id, min(run_id) AS run_id
    FROM (
        SELECT queue, group_id, producer_version_id, run_id FROM change WHERE queue <> ''
        UNION ALL
        SELECT head.* FROM change CROSS JOIN LATERAL (
            SELECT queue, group_id, producer_version_id, run_id FROM assets_app_queuehead AS head
            WHERE head.group_id = change.group_id
              AND head.producer_version_id = change.producer_version_id
              AND head.queue = change.queue
            OFFSET 0
        ) AS head WHERE change.queue <> ''
        UNION ALL
        SELECT head.* FROM change CROSS JOIN LATERAL (
            SELECT queue, group_id, producer_version_id, run_id FROM assets_app_queuehead AS head
            WHERE head.group_id = change.group_id OFFSET 0
        ) AS head WHERE change.queue = '' AND change.group_id IS NOT NULL
        UNION ALL
        SELECT head.* FROM change CROSS JOIN LATERAL (
            SELECT queue, group_id, producer_version_id, run_id FROM assets_app_queuehead AS head
            WHERE head.producer_id = change.producer_id OFFSET 0
        ) AS head WHERE change.producer_id IS NOT NULL
    ) AS pair
    GROUP BY queue, group_id, producer_version_id
), ready AS MATERIALIZED (
    SELECT changed.queue, changed.group_id, changed.producer_version_id, first.id AS run_id
    FROM changed LEFT JOIN LATERAL (
        -- By all columns of the index, so that no other one is taken to give this order.
        SELECT run.queue, run.group_id, run.producer_version_id, run.id
        FROM assets_app_run AS run
        WHERE run.state = 'queued' AND run.not_before IS NULL
          AND (run.queue, run.group_id, run.producer_version_id, run.id)
              >= (changed.queue, changed.group_id, changed.producer_version_id, changed.run_id)
        ORDER BY run.queue, run.group_id, run.producer_version_id, run.id LIMIT 1
    ) AS first ON first.queue = changed.queue AND first.group_id = changed.group_id
        AND first.producer_version_id = changed.producer_version_id
), removed AS (
    DELETE FROM assets_app_queuehead AS head USING ready
    WHERE ready.run_id IS NULL AND head.queue = ready.queue AND head.group_id = ready.group_id
      AND head.producer_version_id = ready.producer_version_id
)
INSERT INTO assets_app_queuehead AS head (queue, group_id, producer_version_id, {_COLUMNS})
SELECT ready.queue, ready.group_id, ready.producer_version_id, ready.run_id, rank.*
FROM ready CROSS JOIN LATERAL ({_RANK} OFFSET 0) AS rank
WHERE ready.run_id IS NOT NULL
ON CONFLICT (group_id, producer_version_id, queue) DO UPDATE SET ({_COLUMNS}) = ({_NEW_COLUMNS})
WHERE ({_OLD_COLUMNS}) IS DISTINCT FROM ({_NEW_COLUMNS})
"""  # noqa: S608  (no text of anybody's)

# Each step of the recursion is one lookup in an index, however many runs stand behind the first
# run. A change under way may be stored as a difference as well, which does no harm.
_CHECK = f"""
WITH RECURSIVE ready AS (
    (
        SELECT queue, group_id, producer_version_id, id AS run_id FROM assets_app_run
        WHERE state = 'queued' AND not_before IS NULL
        ORDER BY queue, group_id, producer_version_id, id LIMIT 1
    )
    UNION ALL
    SELECT next.queue, next.group_id, next.producer_version_id, next.run_id
    FROM ready CROSS JOIN LATERAL (
        SELECT queue, group_id, producer_version_id, id AS run_id FROM assets_app_run
        WHERE state = 'queued' AND not_before IS NULL
          AND (queue, group_id, producer_version_id)
              > (ready.queue, ready.group_id, ready.producer_version_id)
        ORDER BY queue, group_id, producer_version_id, id LIMIT 1
    ) AS next
), ranked AS (
    SELECT ready.queue, ready.group_id, ready.producer_version_id, ready.run_id, rank.*
    FROM ready CROSS JOIN LATERAL ({_RANK}) AS rank
)
INSERT INTO assets_app_queuechange (queue, group_id, producer_version_id, run_id)
SELECT coalesce(ranked.queue, head.queue), coalesce(ranked.group_id, head.group_id),
       coalesce(ranked.producer_version_id, head.producer_version_id), ranked.run_id
FROM ranked FULL JOIN assets_app_queuehead AS head
    ON head.queue = ranked.queue AND head.group_id = ranked.group_id
   AND head.producer_version_id = ranked.producer_version_id
WHERE ({", ".join(f"ranked.{name}" for name in _COLUMNS.split(", "))})
    IS DISTINCT FROM ({_OLD_COLUMNS})
"""  # noqa: S608  (the same)


def refresh_heads(now: datetime) -> None:
    """Bring the heads up to date with all committed changes, and make due delayed runs ready.

    Must be called in a transaction that holds the lock of dispatch.
    """
    with prepared_cursor() as cursor:
        cursor.execute(_READY, {"now": now, "most": _READY_AT_ONCE})
        cursor.execute(_REFRESH)


def check_heads() -> int:
    """Compare all heads with the runs, and let the next dispatch repair the heads that differ.

    Returns how many heads differ, or have changed since the last dispatch.
    """
    with connection.cursor() as cursor:
        cursor.execute(_CHECK)
        differing: int = cursor.rowcount
        return differing
