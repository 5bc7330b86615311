"""Evaluation of schedules: whether the upstream partitions that a partition needs are materialized,
and whether some are newer than the partition.

Newer is decided by the versions that existed when the last run of the partition started, never by
clocks. A time in the schedule is met by its ticks. An input that was missing when a partition was
made late is no newer than the partition, unless the schedule says so (`late_inputs`).
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from assets_app.models import AssetDependency, LateEffect, Target
from assets_app.queries.any_materialized import any_materialized
from assets_app.queries.edges import edge_without_bounds, with_time_on_record
from assets_app.scheduling.evaluations import NOTHING, Case, Evaluation, UpstreamStatus
from assets_app.scheduling.late_inputs import PresentLateInputs
from assets_app.scheduling.tick_terms import NEVER_MADE, PresentVersion, TickTerms
from partitions_app.edges import Edge
from slicewise.declaring import is_after, time_terms
from slicewise.partitions import Nonexistent, PartitionRow

# A year of days that each need all hours of the year are millions of pairs, which memory may not
# hold.
_PAIRS_AT_ONCE = 200_000
# The number of missing keys that pages name, and the number on record of a partition made late.
_MOST_NAMED, _MOST_RECORDED = 3, 1_000

# For each downstream partition and each upstream asset: the number of needed partitions, the number
# of materialized ones, whether one has a version that the last run of the downstream partition did
# not read, the first missing keys, whether one is newer than a version that was read, and when the
# newest was materialized.
_UPSTREAM_STATUS = """
SELECT pair.position, pair.upstream_id, count(*), count(partition.id),
       coalesce(bool_or(partition.version > coalesce(read.version, 0)), false),
       (array_agg(pair.needed ORDER BY pair.number)
           FILTER (WHERE partition.id IS NULL))[1:%(most)s],
       coalesce(bool_or(partition.version > read.version), false), max(partition.materialized_at)
FROM unnest(%(positions)s::int[], %(keys)s::text[],
            %(upstreams)s::bigint[], %(identities)s::text[], %(needed)s::text[])
     WITH ORDINALITY AS pair(position, key, upstream_id, identity, needed, number)
LEFT JOIN assets_app_assetpartition AS partition
    ON partition.asset_id = pair.upstream_id AND partition.identity = pair.identity COLLATE "C"
   AND partition.key = pair.needed COLLATE "C" AND partition.version > 0
LEFT JOIN assets_app_assetpartition AS own
    ON own.asset_id = %(asset)s AND own.identity = %(identity)s AND own.key = pair.key COLLATE "C"
   AND own.version > 0
LEFT JOIN assets_app_materialization AS materialization
    ON materialization.partition_id = own.id AND materialization.version = own.version
LEFT JOIN assets_app_attemptinput AS read
    ON read.attempt_id = materialization.attempt_id AND read.partition_id = partition.id
GROUP BY pair.position, pair.upstream_id
"""

# For a partition without a window, also when the run of the present version began, since such a
# partition meets a tick once.
_PRESENT = """
SELECT partition.key, partition.version, coalesce(attempt.started_at, materialization.created_at)
FROM assets_app_assetpartition AS partition
LEFT JOIN assets_app_materialization AS materialization
    ON materialization.partition_id = partition.id AND materialization.version = partition.version
        AND partition.window_start IS NULL
LEFT JOIN assets_app_runattempt AS attempt ON attempt.id = materialization.attempt_id
WHERE partition.asset_id = %s AND partition.identity = %s AND partition.key = ANY(%s)
    AND partition.version > 0
"""

# Whether any partition of an upstream asset, which may have too many to list, has a version that
# the last run of a partition did not read.
_ANY_NEWER = """
SELECT EXISTS (
    SELECT FROM assets_app_assetpartition AS partition
    LEFT JOIN assets_app_attemptinput AS read
        ON read.partition_id = partition.id AND read.attempt_id = (
            SELECT materialization.attempt_id
            FROM assets_app_assetpartition AS own
            JOIN assets_app_materialization AS materialization
                ON materialization.partition_id = own.id AND materialization.version = own.version
            WHERE own.asset_id = %(asset)s AND own.identity = %(identity)s AND own.key = %(key)s
              AND own.version > 0
        )
    WHERE partition.asset_id = %(upstream)s AND partition.identity = %(upstream_identity)s
      AND partition.version > coalesce(read.version, 0)
)
"""


class Needs(NamedTuple):
    """The upstream partitions that a partition needs: existing keys, and nonexistent ones."""

    keys: Sequence[str]
    nonexistent: Nonexistent = Nonexistent()
    excluded: int = 0
    none: bool = False


def evaluate(
    target: Target,
    edges: Sequence[AssetDependency],
    rows: Sequence[PartitionRow],
    *,
    made: Collection[tuple[int, str]] | None,
    now: datetime,
    terms: TickTerms | None = None,
) -> list[Evaluation]:
    """Evaluate the schedule of a target for some of the partitions: a few statements for all.

    ``edges`` are the scheduling dependencies of the asset, with the upstream ends. ``made`` names
    the upstream partitions (asset id, key) that were just materialized, where these are known:
    where an unpartitioned asset reads all existing partitions of an upstream asset, no others are
    examined.
    ``terms`` are the times in the schedule, where the schedule joins times and assets.
    """
    schedule = target.asset.schedule or {}
    # Of a partition made late, the missing inputs are put on record.
    is_tolerant = terms is not None or any(dependency.fresh for dependency in edges)
    most_missing = _MOST_RECORDED if is_tolerant else _MOST_NAMED
    statuses: dict[tuple[int, int], UpstreamStatus] = {}
    absent_needs: dict[tuple[int, int], Needs] = {}
    pairs: list[tuple[int, str, int, str, str]] = []
    for dependency in edges:
        upstream_id, edge = dependency.upstream_id, edge_without_bounds(dependency, target)
        if edge.reads_whatever_exists:
            any_status = _any_materialized(dependency)
            for position, row in enumerate(rows):
                is_newer = made is None and _is_any_newer(target, dependency, row)
                statuses[position, upstream_id] = any_status._replace(is_newer=is_newer)
            new_keys = [key for made_id, key in made or () if made_id == upstream_id]
            needs_of_rows: Iterable[Needs] = [Needs(new_keys)] * len(rows)
        else:
            edge = with_time_on_record(edge, dependency.upstream, now)
            needs_of_rows = [_needs_of(edge, row) for row in rows]
        for position, (row, needs) in enumerate(zip(rows, needs_of_rows, strict=True)):
            pairs += [
                (position, row.key, upstream_id, dependency.upstream.identity, key)
                for key in needs.keys
            ]
            if needs.nonexistent or needs.excluded or needs.none:
                absent_needs[position, upstream_id] = needs
            if len(pairs) >= _PAIRS_AT_ONCE:
                statuses |= _read_statuses(target, pairs, most_missing)
                pairs = []
    statuses |= _read_statuses(target, pairs, most_missing)
    statuses |= {
        pair_key: _beside(statuses.get(pair_key, NOTHING), needs)
        for pair_key, needs in absent_needs.items()
    }
    present_versions = {} if terms is None else _present_versions(target, rows)
    has_after = any(map(is_after, time_terms(schedule)))
    late = PresentLateInputs.of(target, rows) if has_after else PresentLateInputs()
    upstream_ids = {e.upstream.name: e.upstream_id for e in edges}
    return [
        Case(
            schedule,
            row,
            {
                name: _without_late(
                    statuses.get((position, pk), NOTHING),
                    is_late=late.effect(row.key, pk) == LateEffect.STALE,
                )
                for name, pk in upstream_ids.items()
            },
            now,
            terms,
            present_versions.get(row.key, NEVER_MADE),
            upstream_ids,
            {
                name
                for name, pk in upstream_ids.items()
                if late.effect(row.key, pk) == LateEffect.REMAKE
            },
        ).evaluate()
        for position, row in enumerate(rows)
    ]


def _beside(status: UpstreamStatus, needs: Needs) -> UpstreamStatus:
    """Return a status with the upstream partitions that do not exist or are excluded."""
    return status._replace(
        needed=status.needed + needs.nonexistent.partitions,
        nonexistent=needs.nonexistent,
        excluded=needs.excluded,
        needs_none=needs.none,
    )


def _without_late(status: UpstreamStatus, *, is_late: bool) -> UpstreamStatus:
    """Return the status of an input; of a late input, versions that came after the partition was
    made count as none.
    """
    return status._replace(is_newer=status.is_changed) if is_late else status


def _present_versions(target: Target, rows: Sequence[PartitionRow]) -> dict[str, PresentVersion]:
    """Return the present versions of the materialized partitions, by key."""
    with connection.cursor() as cursor:
        cursor.execute(_PRESENT, [target.asset.pk, target.identity, [row.key for row in rows]])
        return {
            key: PresentVersion(version, began_at) for key, version, began_at in cursor.fetchall()
        }


def _any_materialized(edge: AssetDependency) -> UpstreamStatus:
    """Return the status of an upstream asset of which one materialized partition suffices."""
    exists, newest_at = any_materialized(edge.upstream)
    return UpstreamStatus(1, int(exists), False, newest_at=newest_at if edge.fresh else None)


def _is_any_newer(target: Target, edge: AssetDependency, row: PartitionRow) -> bool:
    """Return whether a partition of the upstream asset is newer than the downstream partition."""
    facts: dict[str, Any] = {
        "asset": target.asset.pk,
        "identity": target.identity,
        "key": row.key,
        "upstream": edge.upstream_id,
        "upstream_identity": edge.upstream.identity,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ANY_NEWER, facts)
        return bool(cursor.fetchone()[0])


def _needs_of(edge: Edge, row: PartitionRow) -> Needs:
    """Return the upstream partitions to be examined for a row."""
    needed = edge.needed_by_texts([row.key])
    return Needs(
        [key.text for key in needed],
        needed.blocking,
        needed.excluded.partitions,
        needed.needs_none,
    )


def _read_statuses(
    target: Target, pairs: Sequence[tuple[int, str, int, str, str]], most_missing: int
) -> dict[tuple[int, int], UpstreamStatus]:
    """Return the status of each upstream asset for each partition, by position and upstream id.

    A pair is (position, key, upstream id, upstream identity, needed upstream key).
    """
    if not pairs:
        return {}
    columns = zip(*pairs, strict=True)
    positions, keys, upstream_ids, identities, needed_keys = (list(column) for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            _UPSTREAM_STATUS,
            {
                "asset": target.asset.pk,
                "identity": target.identity,
                "positions": positions,
                "keys": keys,
                "upstreams": upstream_ids,
                "identities": identities,
                "needed": needed_keys,
                "most": most_missing,
            },
        )
        return {
            (position, upstream_id): UpstreamStatus(
                needed,
                materialized_count,
                is_newer,
                missing or (),
                is_changed=is_changed,
                newest_at=newest_at,
            )
            for (
                position,
                upstream_id,
                needed,
                materialized_count,
                is_newer,
                missing,
                is_changed,
                newest_at,
            ) in cursor.fetchall()
        }
