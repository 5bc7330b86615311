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
        %(segments)s::text[], %(buckets)s::date[], %(runs)s::bigint[], %(positions)s::int[],
        %(assets)s::bigint[], %(identities)s::text[]
    ) AS w(key, window_start, window_end, segment, bucket, run_id, position, asset_id, identity)
), claimed AS (
    INSERT INTO assets_app_assetpartition AS slice
        (asset_id, identity, key, window_start, window_end, segment, bucket,
         state, version, due_again, held_by_id)
    SELECT asset_id, identity, key, window_start, window_end, segment, bucket,
           'missing', 0, false, run_id
    FROM wanted ORDER BY asset_id, identity COLLATE "C", key COLLATE "C"
    ON CONFLICT (asset_id, identity, key) DO UPDATE SET held_by_id = EXCLUDED.held_by_id
        WHERE slice.held_by_id IS NULL
    RETURNING slice.id, slice.key, slice.held_by_id
)
INSERT INTO assets_app_runpartition (run_id, slice_id, position, state, path)
SELECT claimed.held_by_id, claimed.id, wanted.position, 'pending', ''
FROM claimed JOIN wanted
    ON wanted.run_id = claimed.held_by_id AND wanted.key = claimed.key COLLATE "C"
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
class PlannedRun:
    """A run that is to be made, and the partitions that it is to make."""

    terms: RunTerms
    rows: Sequence[PartitionRow]


@dataclass(frozen=True, slots=True)
class ClaimedPartition:
    """A partition that was claimed: its slice and the run that will make it."""

    row: PartitionRow
    slice_id: int
    run_id: int


@dataclass(frozen=True, slots=True)
class HeldPartition:
    """A partition that another run holds, and what asked for it."""

    row: PartitionRow
    terms: RunTerms


def claim(
    terms: RunTerms, planned: Sequence[Sequence[PartitionRow]]
) -> tuple[list[ClaimedPartition], list[PartitionRow]]:
    """Make a queued run of each planned list of one asset's partitions; see `claim_all`."""
    claimed, held = claim_all([PlannedRun(terms, rows) for rows in planned])
    return claimed, [partition.row for partition in held]


def claim_all(
    planned: Sequence[PlannedRun],
) -> tuple[list[ClaimedPartition], list[HeldPartition]]:
    """Make the planned runs, queued, in one transaction of the caller's.

    Returns what was claimed, and what another run holds: that is left out, and its slices stay
    locked until the transaction ends. A planned run of which nothing is left is not made.
    """
    if not planned:
        return [], []
    run_ids = _reserve_run_ids(len(planned))
    wanted = [
        (run, run_id, position, row)
        for run, run_id in zip(planned, run_ids, strict=True)
        for position, row in enumerate(run.rows)
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            _CLAIM,
            {
                "keys": [row.key for *_, row in wanted],
                "starts": [row.start for *_, row in wanted],
                "ends": [row.end for *_, row in wanted],
                "segments": [row.segment for *_, row in wanted],
                "buckets": [row.bucket for *_, row in wanted],
                "runs": [run_id for _, run_id, _, _ in wanted],
                "positions": [position for _, _, position, _ in wanted],
                "assets": [run.terms.asset.pk for run, *_ in wanted],
                "identities": [run.terms.asset.identity for run, *_ in wanted],
            },
        )
        slices = {(run, position): slice_id for run, slice_id, position in cursor.fetchall()}
    claimed: list[ClaimedPartition] = []
    held: list[HeldPartition] = []
    for run, run_id, position, row in wanted:
        slice_id = slices.get((run_id, position))
        if slice_id is None:
            held.append(HeldPartition(row, run.terms))
        else:
            claimed.append(ClaimedPartition(row, slice_id, run_id))
    _insert_runs(dict(zip(run_ids, planned, strict=True)), claimed)
    return claimed, held


def _reserve_run_ids(count: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
            [Run._meta.db_table, count],
        )
        return [row[0] for row in cursor.fetchall()]


def _insert_runs(planned: Mapping[int, PlannedRun], claimed: Sequence[ClaimedPartition]) -> None:
    by_run: dict[int, list[PartitionRow]] = {}
    for partition in claimed:
        by_run.setdefault(partition.run_id, []).append(partition.row)
    now = timezone.now()
    Run.objects.bulk_create(
        [_run(planned[run_id].terms, run_id, rows, now) for run_id, rows in by_run.items()],
        batch_size=5000,
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
