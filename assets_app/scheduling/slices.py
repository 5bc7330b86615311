"""What schedules want to know of slices, and leave on them; whole sets in one statement each."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from assets_app.execution.claims import HeldPartition
from assets_app.models import Asset, Trigger
from slicewise.rows import PartitionRow

# A version that a tick asked for is no reason to leave a later tick out. Whatever else made one
# counts from when it began to: it has not seen what happened upstream after that.
_FACTS = """
SELECT slice.asset_id, slice.key, slice.version, other.began_at
FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS wanted(asset_id, identity, key)
JOIN assets_app_assetpartition AS slice
    ON slice.asset_id = wanted.asset_id AND slice.identity = wanted.identity COLLATE "C"
   AND slice.key = wanted.key COLLATE "C"
LEFT JOIN LATERAL (
    SELECT coalesce(attempt.started_at, made.created_at) AS began_at
    FROM assets_app_materialization AS made
    LEFT JOIN assets_app_run AS run ON run.id = made.run_id
    LEFT JOIN assets_app_runattempt AS attempt ON attempt.id = made.attempt_id
    WHERE slice.window_start IS NULL AND made.slice_id = slice.id AND made.version = slice.version
      AND run.trigger IS DISTINCT FROM %s
) AS other ON true
WHERE slice.version > 0
"""

# Locked as by a claim, but nobody is waited for.
_LOCK = """
WITH there AS MATERIALIZED (
    SELECT slice.id, slice.asset_id
    FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS wanted(asset_id, identity, key)
    JOIN assets_app_assetpartition AS slice
        ON slice.asset_id = wanted.asset_id AND slice.identity = wanted.identity COLLATE "C"
       AND slice.key = wanted.key COLLATE "C"
), free AS MATERIALIZED (
    SELECT id FROM assets_app_assetpartition WHERE id IN (SELECT id FROM there)
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT DISTINCT there.asset_id FROM there LEFT JOIN free USING (id) WHERE free.id IS NULL
"""

# The claim that found them held has locked them: nobody releases one meanwhile. Ticks from `since`
# on are still to be looked at then, unless the run that holds one was asked for after the last of
# them; what was put off until later is not put off any more.
_DUE_AGAIN = """
UPDATE assets_app_assetpartition AS slice SET due_again = true,
    due_at = CASE WHEN held.since IS NOT NULL THEN least(slice.due_at, held.since)
                  WHEN slice.due_at > %(now)s THEN NULL ELSE slice.due_at END
FROM unnest(%(assets)s::bigint[], %(identities)s::text[], %(keys)s::text[],
            %(since)s::timestamptz[])
    AS held(asset_id, identity, key, since)
WHERE slice.asset_id = held.asset_id AND slice.identity = held.identity COLLATE "C"
  AND slice.key = held.key COLLATE "C" AND slice.held_by_id IS NOT NULL
  AND (NOT slice.due_again OR held.since IS NOT NULL OR slice.due_at > %(now)s)
  AND NOT (held.since IS NOT NULL AND EXISTS (
      SELECT FROM assets_app_run AS holder
      WHERE holder.id = slice.held_by_id AND holder.created_at >= %(last_tick)s
  ))
"""

# Rows that a run holds come due again when it ends; others when their window is over, or by the
# next tick.
_DUE_LATER = """
INSERT INTO assets_app_assetpartition AS slice
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
    due_at = CASE WHEN NOT slice.due_again THEN EXCLUDED.due_at
                  WHEN slice.due_at IS NOT NULL THEN least(slice.due_at, EXCLUDED.due_at) END
"""

_SKIP = """
WITH passed AS (
    SELECT * FROM unnest(
        %(assets)s::bigint[], %(identities)s::text[], %(keys)s::text[], %(starts)s::timestamptz[],
        %(ends)s::timestamptz[], %(segments)s::text[], %(buckets)s::date[]
    ) AS p(asset_id, identity, key, window_start, window_end, segment, bucket)
), noted AS (
    INSERT INTO assets_app_assetpartition AS slice
        (asset_id, identity, key, window_start, window_end, segment, bucket,
         state, version, due_again)
    SELECT asset_id, identity, key, window_start, window_end, segment, bucket,
           'skipped', 0, false
    FROM passed ORDER BY asset_id, identity COLLATE "C", key COLLATE "C"
    ON CONFLICT (asset_id, identity, key) DO UPDATE SET state = 'skipped'
        WHERE slice.state = 'missing' AND slice.held_by_id IS NULL
    RETURNING slice.asset_id, slice.identity, slice.bucket, slice.segment
)
INSERT INTO assets_app_partitioncount AS total
    (asset_id, identity, bucket, segment, state, count)
SELECT asset_id, identity, bucket, segment, 'skipped', count(*) FROM noted
GROUP BY asset_id, identity, bucket, segment
ORDER BY asset_id, identity, bucket, segment
ON CONFLICT (asset_id, identity, bucket, segment, state)
    DO UPDATE SET count = total.count + EXCLUDED.count
"""


# What finds slices locked looks at them again after that.
LOOK_AGAIN = timedelta(seconds=2)


class SlicesLocked(Exception):
    """Another transaction has locked slices that are to be claimed: to be tried again soon."""


class SliceFacts:
    """What is known of slices that have data, by asset and key."""

    def __init__(self, rows: Iterable[tuple[int, str, int, datetime | None]]) -> None:
        self._facts = {(asset_id, key): (version, at) for asset_id, key, version, at in rows}

    def version(self, asset: Asset, key: str) -> int:
        """Return the version of a partition; 0 where there is no data."""
        return self._facts.get((asset.pk, key), (0, None))[0]

    def made_otherwise_at(self, asset: Asset, key: str) -> datetime | None:
        """Return when the run of the present version began, where no tick asked for that run; None
        for windows, whose version says all.
        """
        return self._facts.get((asset.pk, key), (0, None))[1]


def locked_assets(wanted: Iterable[tuple[Asset, Sequence[str]]]) -> set[int]:
    """Return the ids of assets of which another transaction has locked partitions of those keys, so
    that a claim would wait: a run that records a million partitions holds them for a minute.

    The partitions are not locked afterwards. Claims lock them, all in one order.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK, _columns([(asset, key) for asset, keys in wanted for key in keys]))
        transaction.set_rollback(True)
        return {asset_id for (asset_id,) in cursor.fetchall()}


def refuse_locked(asset: Asset, rows: Sequence[PartitionRow]) -> None:
    """Raise SlicesLocked where another transaction has locked slices of these partitions."""
    if locked_assets([(asset, [row.key for row in rows])]):
        raise SlicesLocked(f"slices of {asset.name} are locked")


def slice_facts(wanted: Iterable[tuple[Asset, Sequence[str]]]) -> SliceFacts:
    """Return facts of the partitions of those keys that have data: one statement."""
    pairs = [(asset, key) for asset, keys in wanted for key in keys]
    with connection.cursor() as cursor:
        cursor.execute(_FACTS, [*_columns(pairs), Trigger.SCHEDULE])
        return SliceFacts(cursor.fetchall())


def mark_due_again(
    held: Sequence[HeldPartition],
    now: datetime | None = None,
    since: Mapping[str, datetime] | None = None,
    last_tick: datetime | None = None,
) -> None:
    """Mark partitions that came due while another run holds them: they are queued after its end.

    Call in the transaction of the claim that found them held. ``since``: by their keys, from when
    on the ticks that made them due are to be looked at once more, of which ``last_tick`` is the
    last; ``now`` where some may be put off.
    """
    if held:
        with connection.cursor() as cursor:
            facts: dict[str, Any] = {
                "assets": [partition.asset_id for partition in held],
                "identities": [partition.terms.asset.identity for partition in held],
                "keys": [partition.row.key for partition in held],
                "since": [(since or {}).get(partition.row.key) for partition in held],
                "now": now,
                "last_tick": last_tick,
            }
            cursor.execute(_DUE_AGAIN, facts)


def mark_due_later(asset: Asset, rows: Sequence[PartitionRow], at: datetime | None = None) -> None:
    """Mark partitions to be judged again at an instant, or when their windows are over."""
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(_DUE_LATER, {**_row_columns([(asset, row) for row in rows]), "at": at})


def pass_over(rows: Sequence[tuple[Asset, PartitionRow]]) -> None:
    """Skip partitions that nothing ever happened to, since only the latest partition is wanted."""
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(_SKIP, _row_columns(rows))


def _row_columns(rows: Sequence[tuple[Asset, PartitionRow]]) -> dict[str, list[Any]]:
    return {
        "assets": [asset.pk for asset, _ in rows],
        "identities": [asset.identity for asset, _ in rows],
        "keys": [row.key for _, row in rows],
        "starts": [row.start for _, row in rows],
        "ends": [row.end for _, row in rows],
        "segments": [row.segment for _, row in rows],
        "buckets": [row.bucket for _, row in rows],
    }


def _columns(pairs: Sequence[tuple[Asset, str]]) -> list[list[int] | list[str]]:
    return [
        [asset.pk for asset, _ in pairs],
        [asset.identity for asset, _ in pairs],
        [key for _, key in pairs],
    ]
