"""What schedules want to know of slices, and leave on them; whole sets in one statement each."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from assets_app.execution.claims import HeldPartition
from assets_app.models import Asset
from slicewise.rows import PartitionRow

_FACTS = """
SELECT slice.asset_id, slice.key, slice.version, slice.materialized_at
FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS wanted(asset_id, identity, key)
JOIN assets_app_assetpartition AS slice
    ON slice.asset_id = wanted.asset_id AND slice.identity = wanted.identity COLLATE "C"
   AND slice.key = wanted.key COLLATE "C"
WHERE slice.version > 0
"""

# The claim that found them held has locked them: nobody releases one meanwhile.
_DUE_AGAIN = """
UPDATE assets_app_assetpartition AS slice SET due_again = true
FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS held(asset_id, identity, key)
WHERE slice.asset_id = held.asset_id AND slice.identity = held.identity COLLATE "C"
  AND slice.key = held.key COLLATE "C" AND slice.held_by_id IS NOT NULL AND NOT slice.due_again
"""

# Rows that a run holds come due again when it ends; others when their window is over.
_DUE_LATER = """
INSERT INTO assets_app_assetpartition AS slice
    (asset_id, identity, key, window_start, window_end, segment, bucket,
     state, version, due_again, due_at)
SELECT asset_id, identity, key, window_start, window_end, segment, bucket,
       'missing', 0, true, window_end
FROM unnest(
    %(assets)s::bigint[], %(identities)s::text[], %(keys)s::text[], %(starts)s::timestamptz[],
    %(ends)s::timestamptz[], %(segments)s::text[], %(buckets)s::date[]
) AS early(asset_id, identity, key, window_start, window_end, segment, bucket)
ORDER BY asset_id, identity COLLATE "C", key COLLATE "C"
ON CONFLICT (asset_id, identity, key) DO UPDATE SET due_again = true, due_at = EXCLUDED.due_at
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


class SliceFacts:
    """What is known of slices that have data, by asset and key."""

    def __init__(self, rows: Iterable[tuple[int, str, int, datetime | None]]) -> None:
        self._facts = {(asset_id, key): (version, at) for asset_id, key, version, at in rows}

    def version(self, asset: Asset, key: str) -> int:
        """The version of a slice; 0 where there is no data."""
        return self._facts.get((asset.pk, key), (0, None))[0]

    def materialized_at(self, asset: Asset, key: str) -> datetime | None:
        """When a slice was last made; None where it never was."""
        return self._facts.get((asset.pk, key), (0, None))[1]


def slice_facts(wanted: Iterable[tuple[Asset, Sequence[str]]]) -> SliceFacts:
    """Facts of the slices of those keys that have data: one statement."""
    pairs = [(asset, key) for asset, keys in wanted for key in keys]
    with connection.cursor() as cursor:
        cursor.execute(_FACTS, _columns(pairs))
        return SliceFacts(cursor.fetchall())


def mark_due_again(held: Sequence[HeldPartition]) -> None:
    """They came due while another run holds them: seen to once that has ended.

    In the transaction of the claim that found them held.
    """
    if held:
        with connection.cursor() as cursor:
            columns: list[Any] = [
                [partition.asset_id for partition in held],
                [partition.terms.asset.identity for partition in held],
                [partition.row.key for partition in held],
            ]
            cursor.execute(_DUE_AGAIN, columns)


def mark_due_later(asset: Asset, rows: Sequence[PartitionRow]) -> None:
    """Their windows are not over: they are judged again when they are."""
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(_DUE_LATER, _row_columns([(asset, row) for row in rows]))


def pass_over(rows: Sequence[tuple[Asset, PartitionRow]]) -> None:
    """They are skipped, where nothing ever happened to them: only the latest one is wanted."""
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
