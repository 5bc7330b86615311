"""Whether a partition can be made: what it needs is there, and some of it is newer than it.

Newer is decided by the versions that were there when its last run started, never by clocks.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

import slicewise
from assets_app.models import Asset, AssetDependency, AssetPartition
from partitions_app.rules import has_time, mapping_of, needs_all_of_time
from slicewise.rows import PartitionRow

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


class Standing(NamedTuple):
    """How much of what a partition needs of one upstream asset is there."""

    needed: int
    there: int
    is_newer: bool
    # The first few keys of what is not there.
    missing: Sequence[str] = ()

    @property
    def is_ready(self) -> bool:
        """Whether all of it is there."""
        return self.there >= self.needed > 0


NOTHING = Standing(0, 0, False)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A downstream partition, and how it stands with each asset of its schedule, by name."""

    row: PartitionRow
    standings: Mapping[str, Standing]
    # All is there that the schedule asks for, whether or not some of it is newer.
    is_ready: bool
    is_due: bool


def judge(
    asset: Asset,
    edges: Sequence[AssetDependency],
    rows: Sequence[PartitionRow],
    *,
    made: Collection[tuple[int, str]] | None,
    now: datetime,
) -> list[Verdict]:
    """Which of an asset's partitions its schedule by assets makes due: a few statements for all.

    ``edges`` are the asset's scheduling dependencies, with both ends. ``made`` names the upstream
    partitions (asset id, key) that were just made, where that is known: of an upstream asset of
    which an asset that is not partitioned reads whatever there is, no others are looked at.
    """
    found: dict[tuple[int, int], Standing] = {}
    pairs: list[tuple[int, str, int, str, str]] = []
    for edge in edges:
        if _reads_whatever_there_is(edge):
            standing = _any_there(edge)
            found |= {(place, edge.upstream_id): standing for place in range(len(rows))}
        for place, (row, keys) in enumerate(
            zip(rows, _needed_by(rows, edge, made, now), strict=True)
        ):
            pairs += [
                (place, row.key, edge.upstream_id, edge.upstream.identity, key) for key in keys
            ]
            if len(pairs) >= _PAIRS_AT_ONCE:
                found |= _look(asset, pairs)
                pairs = []
    found |= _look(asset, pairs)
    schedule = asset.schedule or {}
    return [
        _verdict(schedule, edges, row, {e.upstream_id: found.get((place, e.upstream_id), NOTHING)
                                        for e in edges})
        for place, row in enumerate(rows)
    ]  # fmt: skip


def _verdict(
    schedule: Mapping[str, Any],
    edges: Sequence[AssetDependency],
    row: PartitionRow,
    by_id: Mapping[int, Standing],
) -> Verdict:
    standings = {edge.upstream.name: by_id[edge.upstream_id] for edge in edges}
    is_ready, is_newer = _evaluate(schedule, standings)
    return Verdict(row, standings, is_ready, is_ready and is_newer)


def _evaluate(
    expression: Mapping[str, Any], standings: Mapping[str, Standing]
) -> tuple[bool, bool]:
    """Whether an expression over assets is met, and whether something newer meets it."""
    if expression["kind"] == "asset":
        standing = standings.get(expression["name"], NOTHING)
        return standing.is_ready, standing.is_newer
    parts = [_evaluate(part, standings) for part in expression["of"]]
    if expression["kind"] == "all":
        return all(ready for ready, _ in parts), any(newer for _, newer in parts)
    met = [newer for ready, newer in parts if ready]
    return bool(met), any(met)


def _reads_whatever_there_is(edge: AssetDependency) -> bool:
    """A whole asset over a partitioned one: holes do not matter (calendar rule 5)."""
    is_whole = edge.downstream.definition is None
    return is_whole and edge.upstream.partition_definition_id is not None and edge.mapping is None


def _made_of(upstream: Asset, made: Collection[tuple[int, str]] | None) -> list[str]:
    if made is not None:
        return [key for upstream_id, key in made if upstream_id == upstream.pk]
    there = AssetPartition.objects.made_of(upstream)
    return list(there.values_list("key", flat=True))


def _any_there(edge: AssetDependency) -> Standing:
    there = AssetPartition.objects.made_of(edge.upstream)
    return Standing(1, int(there.exists()), False)


def _needed_by(
    rows: Sequence[PartitionRow],
    edge: AssetDependency,
    made: Collection[tuple[int, str]] | None,
    now: datetime,
) -> Iterator[list[str]]:
    """Keys of the upstream partitions that are looked at for each of the rows."""
    if _reads_whatever_there_is(edge):
        yield from [_made_of(edge.upstream, made)] * len(rows)
        return
    since = needed_since(edge, now)
    for row in rows:
        yield _needed(edge, row, since, now)


def _needed(edge: AssetDependency, row: PartitionRow, since: datetime, now: datetime) -> list[str]:
    needed = needed_of(edge, row, since, now)
    # Of all of a time, only the windows that there are: excluded ones are not waited for.
    spans = needed.nonexistent.spans if has_time(edge.downstream.definition) else ()
    lacking = [str(span) for span in (*spans, *needed.nonexistent.segments)]
    return [*(key.text for key in needed), *lacking]


def needed_since(edge: AssetDependency, now: datetime) -> datetime:
    """From when on upstream windows are needed where a partition is mapped to all of their time:
    from the first one that was ever made.
    """
    downstream, upstream = edge.downstream.definition, edge.upstream.definition
    if not needs_all_of_time(downstream, upstream, mapping_of(edge.mapping)):
        return now
    return AssetPartition.objects.made_of(edge.upstream).first_start() or now


def needed_of(
    edge: AssetDependency, row: PartitionRow, since: datetime, now: datetime
) -> slicewise.PartitionSet:
    """The upstream partitions that a downstream one is mapped to, not listed yet; ``since`` is
    what `needed_since` says of the edge.
    """
    downstream, upstream = edge.downstream.definition, edge.upstream.definition
    return slicewise.upstream_partitions(
        downstream,
        upstream,
        [""] if downstream is None else [downstream.parse(row.key)],
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
