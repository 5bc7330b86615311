"""Turns partitions into runs: claims the slices and makes the rows, or leaves out what another run
holds.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Model

from accounts_app.models import User
from assets_app.execution.outlets import outlet_ids
from assets_app.execution.waiting import Need, lacking, needs_of, waits_for_past
from assets_app.models import (
    Asset,
    ProducerVersion,
    Run,
    RunGroup,
    RunNeed,
    RunPartition,
    RunState,
    Trigger,
)
from assets_app.queries.clock import database_now
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
    RETURNING slice.id, slice.asset_id, slice.key, slice.held_by_id
)
INSERT INTO assets_app_runpartition (run_id, slice_id, position, state, path)
SELECT claimed.held_by_id, claimed.id, wanted.position, 'pending', ''
FROM claimed JOIN wanted
    ON wanted.run_id = claimed.held_by_id AND wanted.asset_id = claimed.asset_id
   AND wanted.key = claimed.key COLLATE "C"
RETURNING run_id, slice_id, position
"""

# Slices that one such statement takes. Those of a claim that has more come in the same order.
_AT_ONCE = 20_000

# Of thousands, Django's own bulk_create takes longer than all the rest of a claim.
# Both times are one: a run that was queued later than made is taken for one that was tried.
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

# Of several assets that are made together another run holds some: the rest is let go again, in the
# transaction that took it.
_GIVE_BACK = """
WITH undone AS (
    DELETE FROM assets_app_runpartition AS made
    USING unnest(%s::bigint[], %s::bigint[]) AS taken(run_id, slice_id)
    WHERE made.run_id = taken.run_id AND made.slice_id = taken.slice_id
    RETURNING made.run_id, made.slice_id
)
UPDATE assets_app_assetpartition AS slice SET held_by_id = NULL
FROM undone WHERE slice.id = undone.slice_id AND slice.held_by_id = undone.run_id
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
    tick_id: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run that is to be made, and the partitions that it is to make."""

    terms: RunTerms
    rows: Sequence[PartitionRow]


class _Wanted(NamedTuple):
    """One slice that is to be taken."""

    run_id: int
    # Among the run's slices: the outlets of its first partition, then those of the next.
    position: int
    row: PartitionRow
    asset_id: int
    identity: str


@dataclass(frozen=True, slots=True)
class ClaimedPartition:
    """A partition that was claimed: its slice, of the asset that was asked for, and the run that
    will make it.
    """

    row: PartitionRow
    slice_id: int
    run_id: int


@dataclass(frozen=True, slots=True)
class HeldPartition:
    """A partition that another run holds, and what asked for it.

    Of several assets that are made together, ``asset_id`` is the first of which it is held.
    """

    row: PartitionRow
    terms: RunTerms
    asset_id: int


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
    locked until the transaction ends. A planned run of which nothing is left is not made. What is
    made together is claimed together: a partition that is held of one outlet is left out of all.
    """
    if not planned:
        return [], []
    run_ids = reserve_ids(Run, len(planned))
    outlets = _outlets(run.terms for run in planned)
    by_run = dict(zip(run_ids, planned, strict=True))
    groups = [
        group
        for run_id, run in by_run.items()
        for group in _groups(run, run_id, outlets[run.terms.producer_version.pk])
    ]
    slices = _take([one for group in groups for one in group])
    claimed: list[ClaimedPartition] = []
    held: list[HeldPartition] = []
    halves: list[tuple[int, int]] = []
    for group in groups:
        run_id, terms = group[0].run_id, by_run[group[0].run_id].terms
        taken = {one.asset_id: slices.get((run_id, one.position)) for one in group}
        own, missing = taken[terms.asset.pk], [pk for pk, found in taken.items() if found is None]
        if missing or own is None:
            held.append(HeldPartition(group[0].row, terms, missing[0]))
            halves += [(run_id, found) for found in taken.values() if found is not None]
        else:
            claimed.append(ClaimedPartition(group[0].row, own, run_id))
    _give_back(halves)
    _insert_runs(by_run, claimed, _lacking(by_run, claimed))
    return claimed, held


def _lacking(
    planned: Mapping[int, PlannedRun], claimed: Sequence[ClaimedPartition]
) -> dict[int, list[tuple[int, str, str]]]:
    """Partitions that runs wait for, by run: of assets with ``depends_on_past`` alone."""
    of_run: dict[int, list[PartitionRow]] = {}
    asked: dict[int, set[str]] = {}
    for one in claimed:
        terms = planned[one.run_id].terms
        if waits_for_past(terms.producer_version):
            of_run.setdefault(one.run_id, []).append(one.row)
            asked.setdefault(terms.asset.pk, set()).add(one.row.key)
    needs: list[Need] = []
    for run_id, rows in of_run.items():
        terms = planned[run_id].terms
        needs += needs_of(run_id, terms.asset, terms.trigger, rows, asked[terms.asset.pk])
    return lacking(needs)


def claim_found(
    run_id: int, rows: Sequence[PartitionRow], asset_ids: Sequence[int], identity: str
) -> set[str]:
    """Take partitions that a run has found for that run; keys of those that another one holds.

    In a transaction of the caller's.
    """
    free = RunPartition.objects.filter(run=run_id).count()
    wanted = [
        _Wanted(run_id, free + number, row, asset_id, identity)
        for number, (row, asset_id) in enumerate(product(rows, asset_ids))
    ]
    slices = _take(wanted)
    held = {one.row.key for one in wanted if (run_id, one.position) not in slices}
    taken = [one for one in wanted if one.row.key in held and (run_id, one.position) in slices]
    _give_back([(run_id, slices[run_id, one.position]) for one in taken])
    return held


def _outlets(terms: Iterable[RunTerms]) -> dict[int, list[int]]:
    """The assets that each version of a producer makes, by its id."""
    each = {one.producer_version.pk: one for one in terms}
    return {
        pk: list(outlet_ids(one.producer_version, one.asset).values()) for pk, one in each.items()
    }


def _groups(run: PlannedRun, run_id: int, asset_ids: Sequence[int]) -> Iterator[list[_Wanted]]:
    """For each partition of the run, its slices: one for each outlet."""
    identity, width = run.terms.asset.identity, len(asset_ids)
    for number, row in enumerate(run.rows):
        yield [
            _Wanted(run_id, number * width + place, row, asset_id, identity)
            for place, asset_id in enumerate(asset_ids)
        ]


def _take(wanted: Sequence[_Wanted]) -> dict[tuple[int, int], int]:
    """Take those that nobody holds; their slices, by run and position.

    However many they are, no statement has more than memory has room for; all of them together
    keep to the order.
    """
    if len(wanted) > _AT_ONCE:
        # As the database orders by the collation "C".
        wanted = sorted(wanted, key=lambda one: (one.asset_id, one.identity, one.row.key))
    taken: dict[tuple[int, int], int] = {}
    with connection.cursor() as cursor:
        for at in range(0, len(wanted), _AT_ONCE):
            cursor.execute(_CLAIM, _columns(wanted[at : at + _AT_ONCE]))
            taken |= {(run, position): slice_id for run, slice_id, position in cursor.fetchall()}
    return taken


def _columns(wanted: Sequence[_Wanted]) -> dict[str, list[Any]]:
    return {
        "keys": [one.row.key for one in wanted],
        "starts": [one.row.start for one in wanted],
        "ends": [one.row.end for one in wanted],
        "segments": [one.row.segment for one in wanted],
        "buckets": [one.row.bucket for one in wanted],
        "runs": [one.run_id for one in wanted],
        "positions": [one.position for one in wanted],
        "assets": [one.asset_id for one in wanted],
        "identities": [one.identity for one in wanted],
    }


def _give_back(taken: Sequence[tuple[int, int]]) -> None:
    if taken:
        with connection.cursor() as cursor:
            columns = zip(*taken, strict=True)
            cursor.execute(_GIVE_BACK, [list(column) for column in columns])


def reserve_ids(model: type[Model], count: int) -> list[int]:
    """Return ids for rows that are yet to be made, so that other rows can name them before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
            [model._meta.db_table, count],
        )
        return [row[0] for row in cursor.fetchall()]


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
    terms = [planned[run_id].terms for run_id in by_run]
    with connection.cursor() as cursor:
        cursor.execute(
            _INSERT_RUNS,
            {
                "runs": list(by_run),
                "groups": [one.group.pk for one in terms],
                "versions": [one.producer_version.pk for one in terms],
                "assets": [one.asset.pk for one in terms],
                "triggers": [str(one.trigger) for one in terms],
                "queues": [str(one.group.queue) for one in terms],
                "selections": [describe(rows) for rows in by_run.values()],
                "counts": [
                    0 if one.asset.is_discovering else len(rows)
                    for one, rows in zip(terms, by_run.values(), strict=True)
                ],
                "params": [json.dumps(dict(one.params)) if one.params else "{}" for one in terms],
                "states": [
                    str(RunState.WAITING if run_id in waits else RunState.QUEUED)
                    for run_id in by_run
                ],
                "ticks": [one.tick_id for one in terms],
                "people": [None if (by := one.requested_by) is None else by.pk for one in terms],
            },
        )
    if waits:
        now = database_now()
        RunNeed.objects.bulk_create(
            RunNeed(run_id=run_id, asset_id=asset_id, identity=identity, key=key, look_at=now)
            for run_id, needs in waits.items()
            for asset_id, identity, key in needs
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
