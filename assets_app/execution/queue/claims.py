"""Creation of runs, which claim their partitions; partitions that other runs hold are left out."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, NamedTuple

from django.db import connection

from accounts_app.models import User
from assets_app.execution.queue.outlets import outlet_ids
from assets_app.execution.queue.runtime_keys import key_set_of, locked_keys
from assets_app.execution.queue.waiting import (
    EarlierPartition,
    awaited_by_run,
    earlier_partitions,
    waits_for_past,
)
from assets_app.models import (
    Asset,
    AwaitedPartition,
    ProducerVersion,
    Run,
    RunGroup,
    RunPartition,
    RunState,
    Target,
    Trigger,
)
from assets_app.queries.clock import database_now
from slicewise.partitions import PartitionRow
from slicewise_server.web.row_ids import reserve_ids

# One statement creates the rows of partitions where none exist, claims the free partitions, and
# makes the claimed partitions the run's own. Rows are locked in the order of their keys: claims in
# any other order dead-lock.
_CLAIM = """
WITH requested AS (
    SELECT * FROM unnest(
        %(keys)s::text[], %(starts)s::timestamptz[], %(ends)s::timestamptz[],
        %(segments)s::text[], %(buckets)s::date[], %(runs)s::bigint[], %(positions)s::int[],
        %(assets)s::bigint[], %(identities)s::text[]
    ) AS requested_row(key, window_start, window_end, segment, bucket, run_id, position, asset_id,
        identity)
), claimed AS (
    INSERT INTO assets_app_assetpartition AS partition
        (asset_id, identity, key, window_start, window_end, segment, bucket,
         state, version, due_again, held_by_id)
    SELECT asset_id, identity, key, window_start, window_end, segment, bucket,
           'missing', 0, false, run_id
    FROM requested ORDER BY asset_id, identity COLLATE "C", key COLLATE "C"
    ON CONFLICT (asset_id, identity, key) DO UPDATE SET held_by_id = EXCLUDED.held_by_id
        WHERE partition.held_by_id IS NULL
    RETURNING partition.id, partition.asset_id, partition.key, partition.held_by_id
)
INSERT INTO assets_app_runpartition (run_id, partition_id, position, state, path)
SELECT claimed.held_by_id, claimed.id, requested.position, 'pending', ''
FROM claimed JOIN requested
    ON requested.run_id = claimed.held_by_id AND requested.asset_id = claimed.asset_id
   AND requested.key = claimed.key COLLATE "C"
RETURNING run_id, partition_id, position
"""

# Partitions that one such statement claims. A larger claim takes several statements in the same
# order.
_AT_ONCE = 20_000

# For thousands of rows, Django's own bulk_create takes longer than all the rest of a claim.
# Creation and queueing get one time: a run that was queued later than created counts as a tried
# run.
_INSERT_RUNS = """
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
INSERT INTO assets_app_run
    (id, group_id, producer_version_id, asset_id, trigger, queue, state, selection,
     partition_count, params, created_at, queued_at, attempt_count, code_failures,
     platform_failures, error, error_kind, requested_by_id, tick_id)
SELECT id, group_id, producer_version_id, asset_id, trigger, queue, state, selection,
       partition_count, params::jsonb, clock.now,
       CASE WHEN state = 'queued' THEN clock.now END, 0, 0, 0, '', '', requested_by_id, tick_id
FROM clock, unnest(
    %(runs)s::bigint[], %(groups)s::bigint[], %(versions)s::bigint[], %(assets)s::bigint[],
    %(triggers)s::text[], %(queues)s::text[], %(selections)s::text[], %(counts)s::int[],
    %(params)s::text[], %(people)s::bigint[], %(ticks)s::bigint[],
    %(states)s::text[]
) AS planned(id, group_id, producer_version_id, asset_id, trigger, queue, selection,
             partition_count, params, requested_by_id, tick_id, state)
"""

# Several assets are materialized together, and another run holds a partition of one asset: the
# claims on the other assets are released in the transaction that made the claims.
_RELEASE = """
WITH released AS (
    DELETE FROM assets_app_runpartition AS run_partition
    USING unnest(%s::bigint[], %s::bigint[]) AS claimed(run_id, partition_id)
    WHERE run_partition.run_id = claimed.run_id
      AND run_partition.partition_id = claimed.partition_id
    RETURNING run_partition.run_id, run_partition.partition_id
)
UPDATE assets_app_assetpartition AS partition SET held_by_id = NULL
FROM released WHERE partition.id = released.partition_id AND partition.held_by_id = released.run_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """The properties that all runs of one claim share."""

    target: Target
    producer_version: ProducerVersion
    group: RunGroup
    trigger: Trigger
    params: Mapping[str, Any]
    requested_by: User | None
    tick_id: int | None = None

    @property
    def asset(self) -> Asset:
        """The asset of the runs."""
        return self.target.asset


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run that is to be created, and the partitions that the run is to materialize."""

    terms: RunSpec
    rows: Sequence[PartitionRow]


class _RequestedPartition(NamedTuple):
    """A partition of one outlet that is to be claimed for a run."""

    run_id: int
    # The position among the run's partitions: the outlets of the first key, then those of the next
    # key.
    position: int
    row: PartitionRow
    asset_id: int
    identity: str


@dataclass(frozen=True, slots=True)
class ClaimedPartition:
    """A claimed partition: its row in the requested asset, and the run that will materialize it."""

    row: PartitionRow
    partition_id: int
    run_id: int


@dataclass(frozen=True, slots=True)
class HeldPartition:
    """A partition that another run holds, and the terms of the run that was to claim the partition.

    Where several assets are materialized together, ``asset_id`` is the first asset whose partition
    is held.
    """

    row: PartitionRow
    terms: RunSpec
    asset_id: int


def claim(
    run_terms: RunSpec, planned: Sequence[Sequence[PartitionRow]]
) -> tuple[list[ClaimedPartition], list[PartitionRow]]:
    """Create a run of one asset for each planned list of partitions; see `claim_all`.

    Returns the claimed partitions, and the partitions that other runs hold.
    """
    claimed, held_partitions = claim_all([PlannedRun(run_terms, rows) for rows in planned])
    return claimed, [partition.row for partition in held_partitions]


def claim_all(
    planned: Sequence[PlannedRun],
) -> tuple[list[ClaimedPartition], list[HeldPartition]]:
    """Create the planned runs in the caller's transaction; return claimed and held partitions.

    A new run is queued, or waiting where a partition before its own is missing. Partitions that
    another run holds are left out, and the rows stay locked until the transaction ends. A planned
    run without any partition left is not created. Assets that are materialized together are claimed
    together: a partition that is held for one outlet is left out for all outlets. A partition whose
    key was removed is neither claimed nor held.
    """
    planned = _without_removed(planned)
    if not planned:
        return [], []
    run_ids = reserve_ids(Run, len(planned))
    outlets = _outlet_ids_by_version(run.terms for run in planned)
    by_run = dict(zip(run_ids, planned, strict=True))
    groups = [
        group
        for run_id, run in by_run.items()
        for group in _requested_groups(run, run_id, outlets[run.terms.producer_version.pk])
    ]
    partitions = _claim_requested([partition for group in groups for partition in group])
    claimed_partitions: list[ClaimedPartition] = []
    held_partitions: list[HeldPartition] = []
    partial_claims: list[tuple[int, int]] = []
    for group in groups:
        run_id, run_terms = group[0].run_id, by_run[group[0].run_id].terms
        partition_ids = {
            partition.asset_id: partitions.get((run_id, partition.position)) for partition in group
        }
        own_partition_id, missing = (
            partition_ids[run_terms.asset.pk],
            [pk for pk, partition_id in partition_ids.items() if partition_id is None],
        )
        if missing or own_partition_id is None:
            held_partitions.append(HeldPartition(group[0].row, run_terms, missing[0]))
            partial_claims += [
                (run_id, partition_id)
                for partition_id in partition_ids.values()
                if partition_id is not None
            ]
        else:
            claimed_partitions.append(ClaimedPartition(group[0].row, own_partition_id, run_id))
    _release_claims(partial_claims)
    _insert_runs(by_run, claimed_partitions, _awaited_partitions(by_run, claimed_partitions))
    return claimed_partitions, held_partitions


def _without_removed(planned: Sequence[PlannedRun]) -> Sequence[PlannedRun]:
    """Return the planned runs without keys that were removed from a set found at run time; lock the
    other keys of such sets.
    """
    keys_by_set: dict[int, set[str]] = {}
    for run in planned:
        if (key_set := key_set_of(run.terms.target)) is not None:
            keys_by_set.setdefault(key_set, set()).update(row.key for row in run.rows)
    if not keys_by_set:
        return planned
    present_keys = locked_keys(keys_by_set)
    runs: list[PlannedRun] = []
    for run in planned:
        key_set = key_set_of(run.terms.target)
        rows = [row for row in run.rows if key_set is None or row.key in present_keys[key_set]]
        if rows:
            runs.append(replace(run, rows=rows))
    return runs


def _awaited_partitions(
    planned: Mapping[int, PlannedRun], claimed: Sequence[ClaimedPartition]
) -> dict[int, list[tuple[int, str, str]]]:
    """Return the earlier partitions that runs of assets with ``depends_on_past`` wait for,
    by run.
    """
    rows_by_run: dict[int, list[PartitionRow]] = {}
    keys_by_asset: dict[int, set[str]] = {}
    for partition in claimed:
        run_terms = planned[partition.run_id].terms
        if waits_for_past(run_terms.producer_version):
            rows_by_run.setdefault(partition.run_id, []).append(partition.row)
            keys_by_asset.setdefault(run_terms.asset.pk, set()).add(partition.row.key)
    earlier: list[EarlierPartition] = []
    for run_id, rows in rows_by_run.items():
        run_terms = planned[run_id].terms
        earlier += earlier_partitions(
            run_id, run_terms.asset, run_terms.trigger, rows, keys_by_asset[run_terms.asset.pk]
        )
    return awaited_by_run(earlier)


def claim_discovered_rows(
    run_id: int, rows: Sequence[PartitionRow], asset_ids: Sequence[int], identity: str
) -> set[str]:
    """Claim partitions for the run that has discovered these; return the keys that other runs hold.

    Must be called in a transaction.
    """
    next_position = RunPartition.objects.filter(run=run_id).count()
    requested = [
        _RequestedPartition(run_id, next_position + number, row, asset_id, identity)
        for number, (row, asset_id) in enumerate(product(rows, asset_ids))
    ]
    partitions = _claim_requested(requested)
    held_keys = {
        partition.row.key
        for partition in requested
        if (run_id, partition.position) not in partitions
    }
    partial_claims = [
        partition
        for partition in requested
        if partition.row.key in held_keys and (run_id, partition.position) in partitions
    ]
    _release_claims(
        [(run_id, partitions[run_id, partition.position]) for partition in partial_claims]
    )
    return held_keys


def _outlet_ids_by_version(all_terms: Iterable[RunSpec]) -> dict[int, list[int]]:
    """Return the ids of the assets that each producer version materializes."""
    terms_by_version = {run_terms.producer_version.pk: run_terms for run_terms in all_terms}
    return {
        pk: list(outlet_ids(run_terms.producer_version, run_terms.asset).values())
        for pk, run_terms in terms_by_version.items()
    }


def _requested_groups(
    run: PlannedRun, run_id: int, asset_ids: Sequence[int]
) -> Iterator[list[_RequestedPartition]]:
    """Yield the requested partitions for each key of the run: one partition per outlet."""
    identity, width = run.terms.target.identity, len(asset_ids)
    for number, row in enumerate(run.rows):
        yield [
            _RequestedPartition(run_id, number * width + outlet_position, row, asset_id, identity)
            for outlet_position, asset_id in enumerate(asset_ids)
        ]


def _claim_requested(requested: Sequence[_RequestedPartition]) -> dict[tuple[int, int], int]:
    """Claim the requested partitions that no run holds; return row ids by run and position.

    Any number of partitions is claimed in statements of bounded memory, and all statements together
    keep the order.
    """
    if len(requested) > _AT_ONCE:
        # The same order as the database's collation "C".
        requested = sorted(
            requested,
            key=lambda partition: (partition.asset_id, partition.identity, partition.row.key),
        )
    partition_ids: dict[tuple[int, int], int] = {}
    with connection.cursor() as cursor:
        for start in range(0, len(requested), _AT_ONCE):
            cursor.execute(_CLAIM, _columns(requested[start : start + _AT_ONCE]))
            partition_ids |= {
                (run, position): partition_id for run, partition_id, position in cursor.fetchall()
            }
    return partition_ids


def _columns(requested: Sequence[_RequestedPartition]) -> dict[str, list[Any]]:
    return {
        "keys": [partition.row.key for partition in requested],
        "starts": [partition.row.start for partition in requested],
        "ends": [partition.row.end for partition in requested],
        "segments": [partition.row.segment for partition in requested],
        "buckets": [partition.row.bucket for partition in requested],
        "runs": [partition.run_id for partition in requested],
        "positions": [partition.position for partition in requested],
        "assets": [partition.asset_id for partition in requested],
        "identities": [partition.identity for partition in requested],
    }


def _release_claims(claimed_partitions: Sequence[tuple[int, int]]) -> None:
    if claimed_partitions:
        with connection.cursor() as cursor:
            columns = zip(*claimed_partitions, strict=True)
            cursor.execute(_RELEASE, [list(column) for column in columns])


def _insert_runs(
    planned: Mapping[int, PlannedRun],
    claimed: Sequence[ClaimedPartition],
    waits: Mapping[int, Sequence[tuple[int, str, str]]],
) -> None:
    by_run: dict[int, list[PartitionRow]] = {}
    for partition in claimed:
        by_run.setdefault(partition.run_id, []).append(partition.row)
    if not by_run:
        return
    all_terms = [planned[run_id].terms for run_id in by_run]
    with connection.cursor() as cursor:
        cursor.execute(
            _INSERT_RUNS,
            {
                "runs": list(by_run),
                "groups": [run_terms.group.pk for run_terms in all_terms],
                "versions": [run_terms.producer_version.pk for run_terms in all_terms],
                "assets": [run_terms.asset.pk for run_terms in all_terms],
                "triggers": [str(run_terms.trigger) for run_terms in all_terms],
                "queues": [str(run_terms.group.queue) for run_terms in all_terms],
                "selections": [describe(rows) for rows in by_run.values()],
                "counts": [
                    0 if run_terms.target.is_discovering else len(rows)
                    for run_terms, rows in zip(all_terms, by_run.values(), strict=True)
                ],
                "params": [
                    json.dumps(dict(run_terms.params)) if run_terms.params else "{}"
                    for run_terms in all_terms
                ],
                "states": [
                    str(RunState.WAITING if run_id in waits else RunState.QUEUED)
                    for run_id in by_run
                ],
                "ticks": [run_terms.tick_id for run_terms in all_terms],
                "people": [
                    None if (requester := run_terms.requested_by) is None else requester.pk
                    for run_terms in all_terms
                ],
            },
        )
    if waits:
        now = database_now()
        AwaitedPartition.objects.bulk_create(
            AwaitedPartition(
                run_id=run_id, asset_id=asset_id, identity=identity, key=key, look_at=now
            )
            for run_id, awaited in waits.items()
            for asset_id, identity, key in awaited
        )


def describe(rows: Sequence[PartitionRow]) -> str:
    """Describe the partitions in one line: the only key, ``first..last``, or ends and count."""
    if not rows:
        return ""
    first, last = rows[0], rows[-1]
    if len(rows) == 1:
        return first.key
    tiled = all(a.end is not None and a.end == b.start for a, b in pairwise(rows))
    if tiled and not any(row.segment for row in rows):
        return f"{first.key}..{last.key}"
    return f"{first.key} … {last.key} ({len(rows)} partitions)"
