"""Failures that events report, until all partitions of the failed run are materialized.

A failed run has a row with the number of its failed partitions, and a row for each of these
partitions. A run that materializes such a partition deletes the partition's rows; the number says
at once whether a failure is over, also where many runs end at the same time.
"""

from collections.abc import Sequence
from datetime import datetime

from django.db import connection
from django.db.models import Exists, OuterRef

from assets_app.queries.prepared_statements import prepared_cursor
from slicewise_server.events.models import FailedPartition, ReportedFailure
from slicewise_server.events.outlets import JOIN_OUTLETS
from slicewise_server.web.deletion import delete_oldest

# A run that fails again after a retry has its row, and the rows of its partitions, already.
_OPEN = """
WITH opened AS (
    INSERT INTO events_failedpartition (partition_id, run_id)
    SELECT failed.partition_id, failed.run_id
    FROM assets_app_run AS run
    JOIN assets_app_runpartition AS failed ON failed.run_id = run.id AND failed.state = 'failed'
    WHERE run.id = ANY(%(runs)s::bigint[]) AND run.state = 'failed'
    ON CONFLICT (partition_id, run_id) DO NOTHING
    RETURNING run_id
)
INSERT INTO events_reportedfailure AS failure (run_id, backfill_id, open_partitions, at)
SELECT run.id, backfill.id, count(opened.run_id), now()
FROM assets_app_run AS run
LEFT JOIN backfills_app_backfill AS backfill ON backfill.group_id = run.group_id
LEFT JOIN opened ON opened.run_id = run.id
WHERE run.id = ANY(%(runs)s::bigint[]) AND run.state = 'failed'
GROUP BY run.id, backfill.id ORDER BY run.id
ON CONFLICT (run_id) DO UPDATE
    SET open_partitions = failure.open_partitions + EXCLUDED.open_partitions, at = EXCLUDED.at
"""
# Without any failure the partitions of the runs are not read, which may be a million. A run may
# have published a partition in an earlier attempt, before another run failed: the partition's own
# row says which run was the last. Rows of failures are locked in one order, so that no two
# transactions wait for each other.
_CLOSE = f"""
WITH written AS MATERIALIZED (
    SELECT own.partition_id, own.run_id
    FROM assets_app_runpartition AS own
    JOIN assets_app_assetpartition AS partition
        ON partition.id = own.partition_id AND partition.last_run_id = own.run_id
            AND partition.state = 'materialized'
    WHERE own.run_id = ANY(%(runs)s::bigint[]) AND own.state = 'succeeded'
      AND EXISTS (SELECT FROM events_failedpartition)
), closed AS (
    DELETE FROM events_failedpartition AS failed USING written
    WHERE failed.partition_id = written.partition_id
    RETURNING failed.run_id AS failed_run, written.run_id
), counted AS (
    SELECT failed_run, max(run_id) AS run_id, count(*) AS number FROM closed GROUP BY failed_run
), locked AS MATERIALIZED (
    SELECT failure.run_id FROM events_reportedfailure AS failure
    WHERE failure.run_id IN (SELECT failed_run FROM counted)
    ORDER BY failure.run_id FOR UPDATE
), lowered AS (
    UPDATE events_reportedfailure AS failure
    SET open_partitions = failure.open_partitions - counted.number
    FROM counted JOIN locked ON locked.run_id = counted.failed_run
    WHERE failure.run_id = counted.failed_run
    RETURNING failure.run_id AS failed_run, failure.backfill_id, failure.open_partitions,
              counted.run_id
), recovered AS (
    SELECT run_id, backfill_id, count(*) AS number,
           (array_agg(failed_run ORDER BY failed_run))[1:%(most_named)s] AS failed_runs
    FROM lowered WHERE open_partitions = 0 GROUP BY run_id, backfill_id
)
INSERT INTO events_event (kind, asset, run_id, backfill_id, error, detail)
SELECT 'run_recovered', asset.name, run.id, recovered.backfill_id, '',
       jsonb_build_object('trigger', run.trigger, 'partitions', run.partition_count,
                          'selection', left(run.selection, 200),
                          'failures', recovered.number, 'failed_runs', recovered.failed_runs)
       || coalesce(together.detail, '{{}}')
FROM recovered
JOIN assets_app_run AS run ON run.id = recovered.run_id
JOIN assets_app_asset AS asset ON asset.id = run.asset_id
{JOIN_OUTLETS}
ORDER BY run.id, recovered.backfill_id
"""  # noqa: S608  (a part of the statement that has one home)
_MOST_NAMED = 100
_DELETED_AT_ONCE = 5_000


def open_failures(run_ids: Sequence[int]) -> None:
    """Note which of these ended runs have failed, and with which partitions."""
    with connection.cursor() as cursor:
        cursor.execute(_OPEN, {"runs": list(run_ids)})


def write_recoveries(run_ids: Sequence[int]) -> None:
    """Write that failed runs are over whose last partitions these ended runs have materialized: one
    event for each of the ended runs, and for the failures of each backfill.
    """
    with prepared_cursor(len(run_ids)) as cursor:
        cursor.execute(_CLOSE, {"runs": list(run_ids), "most_named": _MOST_NAMED})


def forget_failures(before: datetime) -> int:
    """Delete failures from before a time; return the number of deleted rows."""
    old = ReportedFailure.objects.filter(at__lt=before)
    partitions = FailedPartition.objects.filter(run_id__in=old.values("run_id"))
    count = delete_oldest(partitions, _DELETED_AT_ONCE)
    has_partitions = Exists(FailedPartition.objects.filter(run_id=OuterRef("run_id")))
    return count + delete_oldest(old.exclude(has_partitions), _DELETED_AT_ONCE)
