"""Whether a partition can be made: what it needs is there, and some of it is newer than it.

Newer is decided by the versions that were there when its last run started, never by clocks. A time
in the schedule is met by its ticks.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

import slicewise
from assets_app.models import Asset, AssetDependency, AssetPartition
from assets_app.scheduling.expressions import News, Tick, Way, ways
from assets_app.scheduling.tick_terms import NEVER_MADE, PresentVersion, TickTerms
from partitions_app.rules import mapping_of, needs_all_of_time
from slicewise.nonexistent import Nonexistent
from slicewise.rows import PartitionRow
from slicewise.schedules import is_time

# A year of days that each need all hours of it are millions, which memory may not hold.
_PAIRS_AT_ONCE = 200_000

# For each downstream partition and each upstream asset: how many partitions it needs of that, how
# many are there, whether one has a version that its last run did not have, and the first missing.
_LOOK = """
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

# Of what has no window, since a tick is met once: when the run began that made what is there.
_PRESENT = """
SELECT piece.key, piece.version, coalesce(attempt.started_at, made.created_at)
FROM assets_app_assetpartition AS piece
LEFT JOIN assets_app_materialization AS made
    ON made.slice_id = piece.id AND made.version = piece.version AND piece.window_start IS NULL
LEFT JOIN assets_app_runattempt AS attempt ON attempt.id = made.attempt_id
WHERE piece.asset_id = %s AND piece.identity = %s AND piece.key = ANY(%s) AND piece.version > 0
"""

# Of all that there is of an upstream asset, which may be too much to be named: whether some of it
# has a version that the last run of a partition did not have.
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


class Standing(NamedTuple):
    """How much of what a partition needs of one upstream asset is there.

    ``needed`` counts the partitions of ``nonexistent`` as well: they do not exist, and keep it from
    being made. ``excluded`` ones are needed by no partition.
    """

    needed: int
    there: int
    is_newer: bool
    # The first few keys of what exists and is not there.
    missing: Sequence[str] = ()
    nonexistent: Nonexistent = Nonexistent()
    excluded: int = 0
    # All that it would need is excluded, or its mapping does without it.
    needs_none: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether all of it is there."""
        return self.needs_none or self.there >= self.needed > 0

    def beside(self, needs: "Needs") -> "Standing":
        """Return this standing with the upstream partitions that do not exist or are excluded."""
        return self._replace(
            needed=self.needed + needs.nonexistent.partitions,
            nonexistent=needs.nonexistent,
            excluded=needs.excluded,
            needs_none=needs.none,
        )


class Needs(NamedTuple):
    """The upstream partitions that a partition needs: keys, and what does not exist."""

    keys: Sequence[str]
    nonexistent: Nonexistent = Nonexistent()
    excluded: int = 0
    none: bool = False


NOTHING = Standing(0, 0, False)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A downstream partition, and how it stands with each asset of its schedule, by name."""

    row: PartitionRow
    standings: Mapping[str, Standing]
    # All is there that the schedule asks for, whether or not some of it is newer or a tick is due.
    is_ready: bool
    is_due: bool
    # By a tick, whether or not assets alone make it due as well.
    is_due_by_tick: bool = False
    # It is due by the next tick if nothing else changes.
    waits_for_tick: bool = False
    # It has data.
    is_made: bool = False


def judge(
    asset: Asset,
    edges: Sequence[AssetDependency],
    rows: Sequence[PartitionRow],
    *,
    made: Collection[tuple[int, str]] | None,
    now: datetime,
    terms: TickTerms | None = None,
) -> list[Verdict]:
    """Return which of an asset's partitions its schedule makes due: a few statements for all.

    ``edges`` are the asset's scheduling dependencies, with both ends. ``made`` names the upstream
    partitions (asset id, key) that were just made, where these are known: of an upstream asset of
    which an unpartitioned asset reads whatever there is, no others are looked at. ``terms`` are the
    times in the schedule, where it joins some.
    """
    found: dict[tuple[int, int], Standing] = {}
    absent: dict[tuple[int, int], Needs] = {}
    pairs: list[tuple[int, str, int, str, str]] = []
    for edge in edges:
        if reads_whatever_there_is(edge):
            standing = _any_there(edge)
            for place, row in enumerate(rows):
                is_newer = made is None and _is_any_newer(asset, edge, row)
                found[place, edge.upstream_id] = standing._replace(is_newer=is_newer)
        for place, (row, needs) in enumerate(
            zip(rows, _needed_by(rows, edge, made, now), strict=True)
        ):
            pairs += [
                (place, row.key, edge.upstream_id, edge.upstream.identity, key)
                for key in needs.keys
            ]
            if needs.nonexistent or needs.excluded or needs.none:
                absent[place, edge.upstream_id] = needs
            if len(pairs) >= _PAIRS_AT_ONCE:
                found |= _look(asset, pairs)
                pairs = []
    found |= _look(asset, pairs)
    found |= {at: found.get(at, NOTHING).beside(needs) for at, needs in absent.items()}
    schedule = asset.schedule or {}
    present = {} if terms is None else _present(asset, rows)
    return [
        _verdict(
            schedule,
            row,
            {e.upstream.name: found.get((place, e.upstream_id), NOTHING) for e in edges},
            terms,
            present.get(row.key, NEVER_MADE),
        )
        for place, row in enumerate(rows)
    ]


def _verdict(
    schedule: Mapping[str, Any],
    row: PartitionRow,
    standings: Mapping[str, Standing],
    terms: TickTerms | None,
    present: PresentVersion,
) -> Verdict:
    """Evaluate a schedule once as things are, and once as they will be at the next tick."""

    def at_present(leaf: Mapping[str, Any]) -> set[Way]:
        if not is_time(leaf):
            return _asset_ways(leaf, standings)
        return set() if terms is None else terms.ways(leaf, row, present)

    def at_next_tick(leaf: Mapping[str, Any]) -> set[Way]:
        if not is_time(leaf):
            return _asset_ways(leaf, standings)
        return set() if terms is None else terms.ways_at_next(leaf, row, present)

    is_made = present.version > 0 and row.end is not None
    due = [way for way in ways(schedule, at_present) if way.is_due(is_made=is_made)]
    expected = ways(schedule, at_next_tick if terms else at_present)
    return Verdict(
        row,
        standings,
        is_ready=any(not way.is_spent for way in expected),
        is_due=bool(due),
        is_due_by_tick=any(way.tick is not Tick.NO_TIME for way in due),
        waits_for_tick=not due and any(way.is_due(is_made=is_made) for way in expected),
        is_made=present.version > 0,
    )


def _asset_ways(leaf: Mapping[str, Any], standings: Mapping[str, Standing]) -> set[Way]:
    standing = standings.get(leaf["name"], NOTHING)
    if not standing.is_ready:
        return set()
    return {Way(Tick.NO_TIME, News.NEWER if standing.is_newer else News.OLD)}


def _present(asset: Asset, rows: Sequence[PartitionRow]) -> dict[str, PresentVersion]:
    """Return the versions that are there of the partitions, by their keys."""
    with connection.cursor() as cursor:
        cursor.execute(_PRESENT, [asset.pk, asset.identity, [row.key for row in rows]])
        return {key: PresentVersion(version, at) for key, version, at in cursor.fetchall()}


def reads_whatever_there_is(edge: AssetDependency) -> bool:
    """Return whether a whole asset reads a partitioned one: holes do not matter (need rule 5)."""
    is_whole = edge.downstream.definition is None
    return is_whole and edge.upstream.partition_definition_id is not None and edge.mapping is None


def _any_there(edge: AssetDependency) -> Standing:
    there = AssetPartition.objects.made_of(edge.upstream)
    return Standing(1, int(there.exists()), False)


def _is_any_newer(asset: Asset, edge: AssetDependency, row: PartitionRow) -> bool:
    """Whether there is anything of the upstream asset that is newer than the partition."""
    facts: dict[str, Any] = {
        "asset": asset.pk,
        "identity": asset.identity,
        "key": row.key,
        "upstream": edge.upstream_id,
        "upstream_identity": edge.upstream.identity,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ANY_NEWER, facts)
        return bool(cursor.fetchone()[0])


def _needed_by(
    rows: Sequence[PartitionRow],
    edge: AssetDependency,
    made: Collection[tuple[int, str]] | None,
    now: datetime,
) -> Iterator[Needs]:
    """The upstream partitions that are looked at for each of the rows."""
    if reads_whatever_there_is(edge):
        just_made = [key for upstream_id, key in made or () if upstream_id == edge.upstream_id]
        yield from [Needs(just_made)] * len(rows)
        return
    since = needed_since(edge, now)
    for row in rows:
        needed = needed_of(edge, row, since, now)
        yield Needs(
            [key.text for key in needed],
            needed.blocking,
            needed.excluded.partitions,
            needed.needs_none,
        )


def needed_since(edge: AssetDependency, now: datetime) -> datetime:
    """Return from when on upstream windows are needed, where a partition is mapped to all of their
    time: from the first window that was ever made.
    """
    downstream, upstream = edge.downstream.definition, edge.upstream.definition
    if not needs_all_of_time(downstream, upstream, mapping_of(edge.mapping)):
        return now
    return AssetPartition.objects.made_of(edge.upstream).first_start() or now


def needed_of(
    edge: AssetDependency, row: PartitionRow, since: datetime, now: datetime
) -> slicewise.PartitionSet:
    """Return the upstream partitions that a downstream one is mapped to, not listed yet; ``since``
    is the result of `needed_since` for the edge.
    """
    return _needed(edge, row.key, since, now)


def needed_by_key(edge: AssetDependency, key: str, now: datetime) -> slicewise.PartitionSet:
    """Return the upstream partitions that a downstream one is mapped to. Raises ValueError for a
    key that the downstream asset does not have.
    """
    return _needed(edge, key, needed_since(edge, now), now)


def _needed(
    edge: AssetDependency, key: str, since: datetime, now: datetime
) -> slicewise.PartitionSet:
    downstream, upstream = edge.downstream.definition, edge.upstream.definition
    return slicewise.upstream_partitions(
        downstream,
        upstream,
        [""] if downstream is None else [downstream.parse(key)],
        mapping_of(edge.mapping),
        since=since,
        until=now,
    )


def _look(
    asset: Asset, pairs: Sequence[tuple[int, str, int, str, str]]
) -> dict[tuple[int, int], Standing]:
    if not pairs:
        return {}
    columns = zip(*pairs, strict=True)
    places, keys, upstreams, identities, needed = (list(column) for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            _LOOK,
            {
                "asset": asset.pk,
                "identity": asset.identity,
                "places": places,
                "keys": keys,
                "upstreams": upstreams,
                "identities": identities,
                "needed": needed,
            },
        )
        return {
            (place, upstream_id): Standing(count, there, newer, missing or ())
            for place, upstream_id, count, there, newer, missing in cursor.fetchall()
        }
