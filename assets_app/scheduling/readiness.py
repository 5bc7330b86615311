"""Evaluation of schedules: whether the upstream partitions that a partition needs are materialized,
and whether some are newer than the partition.

Newer is decided by the versions that existed when the last run of the partition started, never by
clocks. A time in the schedule is met by its ticks.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from assets_app.models import AssetDependency, AssetPartition, Target
from assets_app.queries.edges import edge_without_bounds, with_time_on_record
from assets_app.scheduling.expressions import News, Tick, Way, ways
from assets_app.scheduling.tick_terms import NEVER_MADE, PresentVersion, TickTerms
from partitions_app.edges import Edge
from slicewise.declaring import is_time
from slicewise.partitions import Nonexistent, PartitionRow

# A year of days that each need all hours of the year are millions of pairs, which memory may not
# hold.
_PAIRS_AT_ONCE = 200_000

# For each downstream partition and each upstream asset: the number of needed partitions, the number
# of materialized ones, whether one has a version that the last run of the downstream partition did
# not read, and the first missing keys.
_UPSTREAM_STATUS = """
SELECT pair.place, pair.upstream_id, count(*), count(piece.id),
       coalesce(bool_or(piece.version > coalesce(read.version, 0)), false),
       (array_agg(pair.needed ORDER BY pair.number) FILTER (WHERE piece.id IS NULL))[1:3]
FROM unnest(%(places)s::int[], %(keys)s::text[],
            %(upstreams)s::bigint[], %(identities)s::text[], %(needed)s::text[])
     WITH ORDINALITY AS pair(place, key, upstream_id, identity, needed, number)
LEFT JOIN assets_app_assetpartition AS piece
    ON piece.asset_id = pair.upstream_id AND piece.identity = pair.identity COLLATE "C"
   AND piece.key = pair.needed COLLATE "C" AND piece.version > 0
LEFT JOIN assets_app_assetpartition AS own
    ON own.asset_id = %(asset)s AND own.identity = %(identity)s AND own.key = pair.key COLLATE "C"
   AND own.version > 0
LEFT JOIN assets_app_materialization AS made
    ON made.slice_id = own.id AND made.version = own.version
LEFT JOIN assets_app_attemptinput AS read
    ON read.attempt_id = made.attempt_id AND read.slice_id = piece.id
GROUP BY pair.place, pair.upstream_id
"""

# For a partition without a window, also when the run of the present version began, since such a
# partition meets a tick once.
_PRESENT = """
SELECT piece.key, piece.version, coalesce(attempt.started_at, made.created_at)
FROM assets_app_assetpartition AS piece
LEFT JOIN assets_app_materialization AS made
    ON made.slice_id = piece.id AND made.version = piece.version AND piece.window_start IS NULL
LEFT JOIN assets_app_runattempt AS attempt ON attempt.id = made.attempt_id
WHERE piece.asset_id = %s AND piece.identity = %s AND piece.key = ANY(%s) AND piece.version > 0
"""

# Whether any partition of an upstream asset, which may have too many to list, has a version that
# the last run of a partition did not read.
_ANY_NEWER = """
SELECT EXISTS (
    SELECT FROM assets_app_assetpartition AS piece
    LEFT JOIN assets_app_attemptinput AS read
        ON read.slice_id = piece.id AND read.attempt_id = (
            SELECT made.attempt_id
            FROM assets_app_assetpartition AS own
            JOIN assets_app_materialization AS made
                ON made.slice_id = own.id AND made.version = own.version
            WHERE own.asset_id = %(asset)s AND own.identity = %(identity)s AND own.key = %(key)s
              AND own.version > 0
        )
    WHERE piece.asset_id = %(upstream)s AND piece.identity = %(upstream_identity)s
      AND piece.version > coalesce(read.version, 0)
)
"""


class UpstreamStatus(NamedTuple):
    """The status of one upstream asset for a partition: needed and materialized partitions.

    ``needed`` counts the ``nonexistent`` partitions as well, which keep the partition from being
    ready. ``excluded`` partitions are needed by no partition.
    """

    needed: int
    there: int
    is_newer: bool
    # The first few keys that exist and are missing.
    missing: Sequence[str] = ()
    nonexistent: Nonexistent = Nonexistent()
    excluded: int = 0
    # No partition is left to need: all are excluded, or the mapping ignores the nonexistent ones.
    needs_none: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether all needed partitions are materialized."""
        return self.needs_none or self.there >= self.needed > 0

    def beside(self, needs: "Needs") -> "UpstreamStatus":
        """Return this status with the upstream partitions that do not exist or are excluded."""
        return self._replace(
            needed=self.needed + needs.nonexistent.partitions,
            nonexistent=needs.nonexistent,
            excluded=needs.excluded,
            needs_none=needs.none,
        )


class Needs(NamedTuple):
    """The upstream partitions that a partition needs: existing keys, and nonexistent ones."""

    keys: Sequence[str]
    nonexistent: Nonexistent = Nonexistent()
    excluded: int = 0
    none: bool = False


NOTHING = UpstreamStatus(0, 0, False)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A downstream partition, and its status with each asset of its schedule, by name."""

    row: PartitionRow
    standings: Mapping[str, UpstreamStatus]
    # The schedule is met, whether or not an upstream partition is newer or a tick is due.
    is_ready: bool
    is_due: bool
    # Due by a tick, whether or not assets alone make the partition due as well.
    is_due_by_tick: bool = False
    # The next tick makes the partition due if nothing else changes.
    waits_for_tick: bool = False
    # The partition has data.
    is_made: bool = False


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
                statuses |= _read_statuses(target, pairs)
                pairs = []
    statuses |= _read_statuses(target, pairs)
    statuses |= {
        pair_key: statuses.get(pair_key, NOTHING).beside(needs)
        for pair_key, needs in absent_needs.items()
    }
    schedule = target.asset.schedule or {}
    present_versions = {} if terms is None else _present_versions(target, rows)
    return [
        _verdict(
            schedule,
            row,
            {e.upstream.name: statuses.get((position, e.upstream_id), NOTHING) for e in edges},
            terms,
            present_versions.get(row.key, NEVER_MADE),
        )
        for position, row in enumerate(rows)
    ]


def _verdict(
    schedule: Mapping[str, Any],
    row: PartitionRow,
    statuses: Mapping[str, UpstreamStatus],
    schedule_times: TickTerms | None,
    present: PresentVersion,
) -> Evaluation:
    """Evaluate a schedule once as of now, and once as of the next tick."""

    def at_present(leaf: Mapping[str, Any]) -> set[Way]:
        if not is_time(leaf):
            return _asset_ways(leaf, statuses)
        return set() if schedule_times is None else schedule_times.ways(leaf, row, present)

    def at_next_tick(leaf: Mapping[str, Any]) -> set[Way]:
        if not is_time(leaf):
            return _asset_ways(leaf, statuses)
        return set() if schedule_times is None else schedule_times.ways_at_next(leaf, row, present)

    is_made = present.version > 0 and row.end is not None
    due = [way for way in ways(schedule, at_present) if way.is_due(is_made=is_made)]
    expected = ways(schedule, at_next_tick if schedule_times else at_present)
    return Evaluation(
        row,
        statuses,
        is_ready=any(not way.is_spent for way in expected),
        is_due=bool(due),
        is_due_by_tick=any(way.tick is not Tick.NO_TIME for way in due),
        waits_for_tick=not due and any(way.is_due(is_made=is_made) for way in expected),
        is_made=present.version > 0,
    )


def _asset_ways(leaf: Mapping[str, Any], statuses: Mapping[str, UpstreamStatus]) -> set[Way]:
    """Return the way in which an asset meets the schedule; no way while the asset is not ready."""
    status = statuses.get(leaf["name"], NOTHING)
    if not status.is_ready:
        return set()
    return {Way(Tick.NO_TIME, News.NEWER if status.is_newer else News.OLD)}


def _present_versions(target: Target, rows: Sequence[PartitionRow]) -> dict[str, PresentVersion]:
    """Return the present versions of the materialized partitions, by key."""
    with connection.cursor() as cursor:
        cursor.execute(_PRESENT, [target.asset.pk, target.identity, [row.key for row in rows]])
        return {
            key: PresentVersion(version, began_at) for key, version, began_at in cursor.fetchall()
        }


def _any_materialized(edge: AssetDependency) -> UpstreamStatus:
    """Return the status of an upstream asset of which one materialized partition suffices."""
    materialized_rows = AssetPartition.objects.made_of(edge.upstream)
    return UpstreamStatus(1, int(materialized_rows.exists()), False)


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
    target: Target, pairs: Sequence[tuple[int, str, int, str, str]]
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
                "places": positions,
                "keys": keys,
                "upstreams": upstream_ids,
                "identities": identities,
                "needed": needed_keys,
            },
        )
        return {
            (position, upstream_id): UpstreamStatus(needed, materialized, is_newer, missing or ())
            for position, upstream_id, needed, materialized, is_newer, missing in cursor.fetchall()
        }
