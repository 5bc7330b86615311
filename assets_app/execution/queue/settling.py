"""The settlement of ended runs: release and count partitions, and announce the end to receivers."""

from collections.abc import Collection, Mapping, Sequence

from django.db.models import QuerySet

from assets_app.execution.queue.awaited_partitions import wake_dependents
from assets_app.execution.queue.messages import nudge_process_outbox
from assets_app.models import PartitionState, RunPartition, Trigger
from assets_app.queries.prepared_statements import prepared_cursor
from assets_app.signals import runs_ended

# Comes after a query "held" of locked partitions, with their old and new state.
COUNTS_FOLLOW = """change AS (
    SELECT asset_id, identity, bucket, segment, state, sum(by) AS by
    FROM (
        SELECT asset_id, identity, bucket, segment, old AS state, -1 AS by FROM held
        UNION ALL
        SELECT asset_id, identity, bucket, segment, new, 1 FROM held
    ) AS step
    WHERE state <> 'missing'
    GROUP BY asset_id, identity, bucket, segment, state
    HAVING sum(by) <> 0
    ORDER BY asset_id, identity, bucket, segment, state
), counted AS (
    INSERT INTO assets_app_partitioncount AS total
        (asset_id, identity, bucket, segment, state, count)
    SELECT asset_id, identity, bucket, segment, state, by FROM change
    ON CONFLICT (asset_id, identity, bucket, segment, state)
        DO UPDATE SET count = total.count + EXCLUDED.count
)"""

# A failure shows as failed even where older data exists; a cancellation shows only where no other
# status is known. Counts change in the same statement, in one order, so that no two statements
# dead-lock.
_SETTLE = """
WITH held AS MATERIALIZED (
    SELECT partition.id, partition.asset_id, partition.identity, partition.bucket,
           partition.segment,
           partition.held_by_id, run_partition.rows, run_partition.bytes, partition.state AS old,
           CASE WHEN %(new)s IN ('canceled', 'skipped') AND partition.state <> 'missing'
                THEN partition.state
                ELSE %(new)s END AS new
    FROM assets_app_assetpartition AS partition
    JOIN assets_app_runpartition AS run_partition
        ON run_partition.run_id = partition.held_by_id AND run_partition.partition_id = partition.id
            AND run_partition.state = %(outcome)s
    WHERE partition.held_by_id = ANY(%(runs)s::bigint[])
    ORDER BY partition.asset_id, partition.identity, partition.key
    FOR UPDATE OF partition
), settled AS (
    UPDATE assets_app_assetpartition AS partition
    SET state = held.new, held_by_id = NULL, last_run_id = held.held_by_id
        {more_settings}
    FROM held
    WHERE partition.id = held.id
    RETURNING partition.id, partition.version, held.held_by_id AS run_id, held.rows, held.bytes
), {counts_follow}
{conclusion}
"""

_RELEASE = _SETTLE.format(
    counts_follow=COUNTS_FOLLOW,
    more_settings="",
    conclusion="SELECT count(*) FROM settled",
)
_RECORD = _SETTLE.format(
    counts_follow=COUNTS_FOLLOW,
    more_settings=(
        ", version = greatest(partition.version, partition.forgotten_version) + 1,"
        " rows = held.rows,"
        " bytes = held.bytes,"
        " materialized_at = now()"
    ),
    conclusion=""", maker AS MATERIALIZED (
    SELECT id, producer_version_id FROM assets_app_run WHERE id = ANY(%(runs)s::bigint[])
)
INSERT INTO assets_app_materialization
    (partition_id, version, run_id, attempt_id, producer_version_id, rows, bytes, metadata,
        created_at)
SELECT settled.id, settled.version, settled.run_id, %(attempt)s, maker.producer_version_id,
       settled.rows, settled.bytes, '{}', now()
FROM settled JOIN maker ON maker.id = settled.run_id
""",
)

# A run that is recorded in two parts may be in the outbox already. A transaction that evaluates the
# first part may not see the second part. The update locks the entry: such a transaction either
# leaves out the entry until the second part is committed, or the update waits for the transaction
# and inserts the entry again. The time stays: it is the time of the first write.
_WRITE_OUTBOX = """
WITH evaluated AS MATERIALIZED (
    SELECT id FROM assets_app_run WHERE id = %(run)s AND trigger <> %(backfill)s
), written AS (
    INSERT INTO assets_app_outbox (run_id, created_at)
    SELECT id, clock_timestamp() FROM evaluated
    ON CONFLICT (run_id, report_id, schedule_id) DO UPDATE
        SET created_at = assets_app_outbox.created_at
)
SELECT EXISTS (SELECT FROM evaluated)
"""


def record_success(run_id: int, attempt_id: int) -> None:
    """Record that the run's data is published: each partition gets a new version."""
    _unsettled_partitions([run_id]).update(state=RunPartition.State.SUCCEEDED)
    _record(run_id, attempt_id)
    _write_outbox(run_id)
    _announce_end([run_id])


def record_partial_success(
    run_id: int, attempt_id: int, published: Mapping[int, Collection[str]]
) -> None:
    """Record that only some partitions of the run were published, and that all others have failed.

    ``published`` has the paths of published partitions by the id of their asset.
    """
    run_partitions = _unsettled_partitions([run_id])
    for asset_id, paths in published.items():
        published_partitions = run_partitions.filter(partition__asset=asset_id, path__in=paths)
        published_partitions.update(state=RunPartition.State.SUCCEEDED)
    run_partitions.update(state=RunPartition.State.FAILED)
    _record(run_id, attempt_id)
    _settle(_RELEASE, [run_id], RunPartition.State.FAILED, PartitionState.FAILED)
    if any(published.values()):
        _write_outbox(run_id)
    _announce_end([run_id])


def published_keys(run_id: int) -> set[str]:
    """Return the keys of the run's partitions that are recorded as published."""
    recorded = RunPartition.objects.filter(run_id=run_id, state=RunPartition.State.SUCCEEDED)
    return set(recorded.values_list("partition__key", flat=True))


def _write_outbox(run_id: int) -> None:
    """Put the run into the outbox, so that downstream partitions are evaluated after the commit.

    A backfill makes nothing due: only partitions that the backfill includes follow its runs.
    """
    with prepared_cursor() as cursor:
        cursor.execute(_WRITE_OUTBOX, {"run": run_id, "backfill": Trigger.BACKFILL})
        is_evaluated = bool(cursor.fetchone()[0])
    if is_evaluated:
        nudge_process_outbox()


def release_failed(run_ids: Sequence[int]) -> None:
    """Release the partitions of runs that have failed for good, with none of them published."""
    _release(run_ids, RunPartition.State.FAILED, PartitionState.FAILED)


def release_canceled(run_ids: Sequence[int]) -> None:
    """Release the partitions of canceled runs: only missing partitions become canceled."""
    _release(run_ids, RunPartition.State.CANCELED, PartitionState.CANCELED)


def release_skipped(run_ids: Sequence[int]) -> None:
    """Release the partitions of skipped runs: only missing partitions become skipped."""
    _release(run_ids, RunPartition.State.SKIPPED, PartitionState.SKIPPED)


def _release(run_ids: Sequence[int], outcome: RunPartition.State, state: PartitionState) -> None:
    if not run_ids:
        return
    _unsettled_partitions(run_ids).update(state=outcome)
    _settle(_RELEASE, run_ids, outcome, state)
    _announce_end(list(run_ids))


def _announce_end(run_ids: list[int]) -> None:
    runs_ended.send(sender=None, run_ids=run_ids)
    wake_dependents(run_ids)


def _unsettled_partitions(run_ids: Sequence[int]) -> QuerySet[RunPartition]:
    """Return the partitions of the runs that no earlier attempt has published."""
    return RunPartition.objects.filter(run_id__in=run_ids, state=RunPartition.State.PENDING)


def _record(run_id: int, attempt_id: int) -> None:
    succeeded = RunPartition.State.SUCCEEDED
    _settle(_RECORD, [run_id], succeeded, PartitionState.MATERIALIZED, attempt=attempt_id)


def _settle(
    statement: str,
    run_ids: Sequence[int],
    outcome: RunPartition.State,
    state: PartitionState,
    **more: int,
) -> None:
    with prepared_cursor(len(run_ids)) as cursor:
        cursor.execute(statement, {"runs": list(run_ids), "outcome": outcome, "new": state, **more})
