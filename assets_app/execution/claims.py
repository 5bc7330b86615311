"""Turns partitions into runs: claims the slices and makes the rows, or leaves out what another run
holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts_app.models import User
from assets_app.models import Asset, ProducerVersion, Run, RunGroup, RunState, Trigger
from slicewise.rows import PartitionRow

# One statement: the slices are taken, or made and taken, in the order of their keys (claims in
# any other order dead-lock), and what was taken becomes the run's partitions.
_CLAIM = """
WITH wanted AS (
    SELECT * FROM unnest(
        %(keys)s::text[], %(starts)s::timestamptz[], %(ends)s::timestamptz[],
        %(segments)s::text[], %(buckets)s::date[], %(runs)s::bigint[], %(positions)s::int[]
    ) AS w(key, window_start, window_end, segment, bucket, run_id, position)
), claimed AS (
    INSERT INTO assets_app_assetpartition AS slice
        (asset_id, identity, key, window_start, window_end, segment, bucket,
         state, version, due_again, held_by_id)
    SELECT %(asset)s, %(identity)s, key, window_start, window_end, segment, bucket,
           'missing', 0, false, run_id
    FROM wanted ORDER BY key COLLATE "C"
    ON CONFLICT (asset_id, identity, key) DO UPDATE SET held_by_id = EXCLUDED.held_by_id
        WHERE slice.held_by_id IS NULL
    RETURNING slice.id, slice.key, slice.held_by_id
)
INSERT INTO assets_app_runpartition (run_id, slice_id, position, state, path)
SELECT claimed.held_by_id, claimed.id, wanted.position, 'pending', ''
FROM claimed JOIN wanted ON wanted.key = claimed.key COLLATE "C"
RETURNING run_id, slice_id, position
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTerms:
    """What all runs of one claim have in common."""

    asset: Asset
    producer_version: ProducerVersion
    group: RunGroup
    trigger: Trigger
    params: Mapping[str, Any]
    requested_by: User | None


@dataclass(frozen=True, slots=True)
class ClaimedPartition:
    """A partition that was claimed: its slice and the run that will make it."""

    row: PartitionRow
    slice_id: int
    run_id: int


def claim(
    terms: RunTerms, planned: Sequence[Sequence[PartitionRow]]
) -> tuple[list[ClaimedPartition], list[PartitionRow]]:
    """Make a queued run of each planned list of partitions, in one transaction of the caller's.

    Returns what was claimed, and what another run holds: that is left out. A planned run of
    which nothing is left is not made.
    """
    run_ids = _reserve_run_ids(len(planned))
    rows = [row for chunk in planned for row in chunk]
    owners = [run_id for run_id, chunk in zip(run_ids, planned, strict=True) for _ in chunk]
    positions = [position for chunk in planned for position in range(len(chunk))]
    with connection.cursor() as cursor:
        cursor.execute(
            _CLAIM,
            {
                "asset": terms.asset.pk,
                "identity": terms.asset.identity,
                "keys": [row.key for row in rows],
                "starts": [row.start for row in rows],
                "ends": [row.end for row in rows],
                "segments": [row.segment for row in rows],
                "buckets": [row.bucket for row in rows],
                "runs": owners,
                "positions": positions,
            },
        )
        slices = {(run, position): slice_id for run, slice_id, position in cursor.fetchall()}
    claimed: list[ClaimedPartition] = []
    held: list[PartitionRow] = []
    for row, run_id, position in zip(rows, owners, positions, strict=True):
        slice_id = slices.get((run_id, position))
        if slice_id is None:
            held.append(row)
        else:
            claimed.append(ClaimedPartition(row, slice_id, run_id))
    _insert_runs(terms, claimed)
    return claimed, held


def _reserve_run_ids(count: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
            [Run._meta.db_table, count],
        )
        return [row[0] for row in cursor.fetchall()]


def _insert_runs(terms: RunTerms, claimed: Sequence[ClaimedPartition]) -> None:
    by_run: dict[int, list[PartitionRow]] = {}
    for partition in claimed:
        by_run.setdefault(partition.run_id, []).append(partition.row)
    now = timezone.now()
    Run.objects.bulk_create(
        [_run(terms, run_id, rows, now) for run_id, rows in by_run.items()], batch_size=5000
    )


def _run(terms: RunTerms, run_id: int, rows: Sequence[PartitionRow], now: datetime) -> Run:
    return Run(
        pk=run_id,
        group=terms.group,
        producer_version=terms.producer_version,
        asset=terms.asset,
        trigger=terms.trigger,
        queue=terms.group.queue,
        state=RunState.QUEUED,
        selection=describe(rows),
        partition_count=len(rows),
        params=dict(terms.params),
        queued_at=now,
        requested_by=terms.requested_by,
    )


def describe(rows: Sequence[PartitionRow]) -> str:
    """The partitions in one line: the only key, ``first..last``, or both ends and how many."""
    first, last = rows[0], rows[-1]
    if len(rows) == 1:
        return first.key
    tiled = all(a.end is not None and a.end == b.start for a, b in pairwise(rows))
    if tiled and not any(row.segment for row in rows):
        return f"{first.key}..{last.key}"
    return f"{first.key} … {last.key} ({len(rows)} partitions)"
