"""Facts about partitions that schedules read, and marks that schedules leave: one statement per
set.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from assets_app.execution.queue.claims import HeldPartition
from assets_app.models import Asset, AssetPartition, Target, Trigger
from slicewise.partitions import PartitionRow

# A version that a tick requested is no reason to leave a later tick out. Any other version counts
# from the start of its run, which has not read later changes upstream.
_FACTS = """
SELECT partition.asset_id, partition.key, partition.version, other_request.began_at
FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS requested(asset_id, identity, key)
JOIN assets_app_assetpartition AS partition
    ON partition.asset_id = requested.asset_id
    AND partition.identity = requested.identity COLLATE "C"
    AND partition.key = requested.key COLLATE "C"
LEFT JOIN LATERAL (
    SELECT coalesce(attempt.started_at, materialization.created_at) AS began_at
    FROM assets_app_materialization AS materialization
    LEFT JOIN assets_app_run AS run ON run.id = materialization.run_id
    LEFT JOIN assets_app_runattempt AS attempt ON attempt.id = materialization.attempt_id
    WHERE partition.window_start IS NULL AND materialization.partition_id = partition.id
        AND materialization.version = partition.version
      AND run.trigger IS DISTINCT FROM %s
) AS other_request ON true
WHERE partition.version > 0
"""

# Rows are locked as by a claim, but without waiting for another transaction.
_LOCK = """
WITH requested_partition AS MATERIALIZED (
    SELECT partition.id, partition.asset_id
    FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS requested(asset_id, identity, key)
    JOIN assets_app_assetpartition AS partition
        ON partition.asset_id = requested.asset_id
        AND partition.identity = requested.identity COLLATE "C"
        AND partition.key = requested.key COLLATE "C"
), locked AS MATERIALIZED (
    SELECT id FROM assets_app_assetpartition WHERE id IN (SELECT id FROM requested_partition)
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT DISTINCT requested_partition.asset_id
FROM requested_partition LEFT JOIN locked USING (id) WHERE locked.id IS NULL
"""

# The claim that found the partitions held has locked the rows: no transaction releases one
# meanwhile. Ticks from `since` on are still to be examined after the release, unless the run that
# holds the partition was created after the last of these ticks. A partition that was put off until
# later is not put off any more.
_DUE_AGAIN = """
UPDATE assets_app_assetpartition AS partition SET due_again = true,
    due_at = CASE WHEN held.since IS NOT NULL THEN least(partition.due_at, held.since)
                  WHEN partition.due_at > %(now)s THEN NULL ELSE partition.due_at END
FROM unnest(%(assets)s::bigint[], %(identities)s::text[], %(keys)s::text[],
            %(since)s::timestamptz[])
    AS held(asset_id, identity, key, since)
WHERE partition.asset_id = held.asset_id AND partition.identity = held.identity COLLATE "C"
  AND partition.key = held.key COLLATE "C" AND partition.held_by_id IS NOT NULL
  AND (NOT partition.due_again OR held.since IS NOT NULL OR partition.due_at > %(now)s)
  AND NOT (held.since IS NOT NULL AND EXISTS (
      SELECT FROM assets_app_run AS holder
      WHERE holder.id = partition.held_by_id AND holder.created_at >= %(last_tick)s
  ))
"""

# Rows that a run holds come due again when the run ends; other rows at the end of the window, or by
# the next tick.
_DUE_LATER = """
INSERT INTO assets_app_assetpartition AS partition
    (asset_id, identity, key, window_start, window_end, segment, bucket,
     state, version, due_again, due_at)
SELECT asset_id, identity, key, window_start, window_end, segment, bucket,
       'missing', 0, true, coalesce(%(at)s, window_end)
FROM unnest(
    %(assets)s::bigint[], %(identities)s::text[], %(keys)s::text[], %(starts)s::timestamptz[],
    %(ends)s::timestamptz[], %(segments)s::text[], %(buckets)s::date[]
) AS early(asset_id, identity, key, window_start, window_end, segment, bucket)
ORDER BY asset_id, identity COLLATE "C", key COLLATE "C"
ON CONFLICT (asset_id, identity, key) DO UPDATE SET due_again = true,
    due_at = CASE WHEN NOT partition.due_again THEN EXCLUDED.due_at
                  WHEN partition.due_at IS NOT NULL THEN least(partition.due_at,
                      EXCLUDED.due_at) END
"""

_SKIP = """
WITH superseded AS (
    SELECT * FROM unnest(
        %(assets)s::bigint[], %(identities)s::text[], %(keys)s::text[], %(starts)s::timestamptz[],
        %(ends)s::timestamptz[], %(segments)s::text[], %(buckets)s::date[]
    ) AS p(asset_id, identity, key, window_start, window_end, segment, bucket)
), skipped AS (
    INSERT INTO assets_app_assetpartition AS partition
        (asset_id, identity, key, window_start, window_end, segment, bucket,
         state, version, due_again)
    SELECT asset_id, identity, key, window_start, window_end, segment, bucket,
           'skipped', 0, false
    FROM superseded ORDER BY asset_id, identity COLLATE "C", key COLLATE "C"
    ON CONFLICT (asset_id, identity, key) DO UPDATE SET state = 'skipped'
        WHERE partition.state = 'missing' AND partition.held_by_id IS NULL
    RETURNING partition.asset_id, partition.identity, partition.bucket, partition.segment
)
INSERT INTO assets_app_partitioncount AS total
    (asset_id, identity, bucket, segment, state, count)
SELECT asset_id, identity, bucket, segment, 'skipped', count(*) FROM skipped
GROUP BY asset_id, identity, bucket, segment
ORDER BY asset_id, identity, bucket, segment
ON CONFLICT (asset_id, identity, bucket, segment, state)
    DO UPDATE SET count = total.count + EXCLUDED.count
"""


# Work that finds partitions locked is tried again after this time.
LOOK_AGAIN = timedelta(seconds=2)


class PartitionsLocked(Exception):
    """Another transaction has locked partitions that are to be claimed: try again soon."""


class PartitionFacts:
    """Facts about partitions that have data, by asset and key."""

    def __init__(self, rows: Iterable[tuple[int, str, int, datetime | None]]) -> None:
        self._facts = {
            (asset_id, key): (version, began_at) for asset_id, key, version, began_at in rows
        }

    def version(self, asset: Asset, key: str) -> int:
        """Return the version of a partition; 0 without data."""
        return self._facts.get((asset.pk, key), (0, None))[0]

    def made_otherwise_at(self, asset: Asset, key: str) -> datetime | None:
        """Return when the run of the present version began, where no tick requested that run; None
        for windows, of which the version says enough.
        """
        return self._facts.get((asset.pk, key), (0, None))[1]


def locked_assets(keys_by_target: Iterable[tuple[Target, Sequence[str]]]) -> set[int]:
    """Return the ids of assets that have partitions of these keys locked by another transaction, so
    that a claim would wait: a run that records a million partitions holds the locks for a minute.

    The partitions are not locked afterwards. Claims lock the partitions, all in one order.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            _LOCK, _columns([(target, key) for target, keys in keys_by_target for key in keys])
        )
        transaction.set_rollback(True)
        return {asset_id for (asset_id,) in cursor.fetchall()}


def refuse_locked(target: Target, rows: Sequence[PartitionRow]) -> None:
    """Raise PartitionsLocked where another transaction has locked some of these partitions."""
    if locked_assets([(target, [row.key for row in rows])]):
        raise PartitionsLocked(f"partitions of {target.asset.name} are locked")


def partition_facts(keys_by_target: Iterable[tuple[Target, Sequence[str]]]) -> PartitionFacts:
    """Return facts about the partitions of these keys that have data: one statement."""
    pairs = [(target, key) for target, keys in keys_by_target for key in keys]
    with connection.cursor() as cursor:
        cursor.execute(_FACTS, [*_columns(pairs), Trigger.SCHEDULE])
        return PartitionFacts(cursor.fetchall())


def mark_due_again(
    held_partitions: Sequence[HeldPartition],
    now: datetime | None = None,
    since: Mapping[str, datetime] | None = None,
    last_tick: datetime | None = None,
) -> None:
    """Mark partitions that came due while another run holds them: a partition is queued after that
    run.

    Call in the transaction of the claim that found the partitions held. ``since`` says by key from
    when on the ticks that made a partition due are to be examined once more, and ``last_tick`` is
    the last of these ticks. Give ``now`` where some of the partitions may be put off.
    """
    if held_partitions:
        with connection.cursor() as cursor:
            facts: dict[str, Any] = {
                "assets": [partition.asset_id for partition in held_partitions],
                "identities": [partition.terms.target.identity for partition in held_partitions],
                "keys": [partition.row.key for partition in held_partitions],
                "since": [(since or {}).get(partition.row.key) for partition in held_partitions],
                "now": now,
                "last_tick": last_tick,
            }
            cursor.execute(_DUE_AGAIN, facts)


def mark_due_later(
    target: Target, rows: Sequence[PartitionRow], due_at: datetime | None = None
) -> None:
    """Mark partitions to be evaluated again at an instant, or at the end of each window."""
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(
                _DUE_LATER, {**_row_columns([(target, row) for row in rows]), "at": due_at}
            )


def mark_due_no_more(
    target: Target, rows: Sequence[PartitionRow], after: datetime, before: datetime
) -> None:
    """Remove the marks of partitions that are put off until an instant between these two."""
    if rows:
        AssetPartition.objects.filter(
            asset=target.asset.pk, identity=target.identity, key__in=[row.key for row in rows],
            due_again=True, due_at__gt=after, due_at__lt=before,
        ).update(due_again=False, due_at=None)  # fmt: skip


def mark_skipped(rows: Sequence[tuple[Target, PartitionRow]]) -> None:
    """Skip missing partitions that no run holds: the schedule asks for the latest alone."""
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(_SKIP, _row_columns(rows))


def _row_columns(rows: Sequence[tuple[Target, PartitionRow]]) -> dict[str, list[Any]]:
    return {
        "assets": [target.asset.pk for target, _ in rows],
        "identities": [target.identity for target, _ in rows],
        "keys": [row.key for _, row in rows],
        "starts": [row.start for _, row in rows],
        "ends": [row.end for _, row in rows],
        "segments": [row.segment for _, row in rows],
        "buckets": [row.bucket for _, row in rows],
    }


def _columns(pairs: Sequence[tuple[Target, str]]) -> list[list[int] | list[str]]:
    return [
        [target.asset.pk for target, _ in pairs],
        [target.identity for target, _ in pairs],
        [key for _, key in pairs],
    ]
