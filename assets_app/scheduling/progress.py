"""How far partitions are that an asset's schedule by assets does not make due yet: "23 of 24"."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import connection

import slicewise
from assets_app.models import Asset, AssetDependency
from assets_app.queries.keys import still_known
from assets_app.scheduling.judging import scheduling_edges
from assets_app.scheduling.readiness import Verdict, judge, needed_of, needed_since
from partitions_app.rules import goes_by_windows, has_time, mapping_of
from slicewise.keys import WHOLE
from slicewise.rows import PartitionRow, partition_rows

# The newest upstream slices say which partitions are being filled now; older ones are history.
_NEWEST_UPSTREAM = 200
_MOST_LOOKED_AT = 20
_MOST_SHOWN = 10
# A year of minutes for one partition is not counted while somebody waits for a page.
_MOST_NEEDED = 20_000

_NEWEST = """
SELECT wanted.asset_id, newest.key
FROM unnest(%s::bigint[], %s::text[]) AS wanted(asset_id, identity)
CROSS JOIN LATERAL (
    SELECT key FROM assets_app_assetpartition
    WHERE asset_id = wanted.asset_id AND identity = wanted.identity COLLATE "C" AND version > 0
    ORDER BY window_start DESC NULLS LAST, segment DESC LIMIT %s
) AS newest
"""


@dataclass(frozen=True, slots=True)
class UpstreamProgress:
    """How much of what a partition needs of one upstream asset is there."""

    asset: Asset
    needed: int
    there: int
    # The first few that are missing: with a key where it is a partition, else a span of time in
    # which the upstream asset has none.
    missing: Sequence[tuple[str, bool]]

    @property
    def more(self) -> int:
        """How many are missing beside those that are named."""
        return self.needed - self.there - len(self.missing)


@dataclass(frozen=True, slots=True)
class Progress:
    """A partition that something happened to upstream, and that is not due yet."""

    row: PartitionRow
    upstream: Sequence[UpstreamProgress]
    # All is there: it waits for its own window to be over.
    is_early: bool

    @property
    def counts(self) -> dict[str, dict[str, Any]]:
        """By upstream asset: how many are needed, how many there, and the first missing ones."""
        return {
            one.asset.name: {
                "needed": one.needed, "there": one.there,
                "missing": [key for key, _ in one.missing],
            }
            for one in self.upstream
        }  # fmt: skip

    @property
    def text(self) -> str:
        """``hourly 23 of 24, daily 1 of 1``."""
        return ", ".join(f"{one.asset.name} {one.there} of {one.needed}" for one in self.upstream)


def progress_of(asset: Asset, now: datetime) -> list[Progress]:
    """The newest partitions that are touched and not due yet, newest first: three statements.

    Nothing for schedules where that is no matter of counting: an asset without time over one that
    has it is due after each upstream run, whatever is there.
    """
    edges = list(scheduling_edges().filter(downstream=asset))
    if not edges or not all(map(_is_countable, edges)):
        return []
    rows = list(_affordable(edges, _candidates(asset, edges), now))
    verdicts = judge(asset, edges, rows, made=None, now=now)
    by_name = {edge.upstream.name: edge.upstream for edge in edges}
    found = (_progress(verdict, by_name, now) for verdict in verdicts if _is_open(verdict, now))
    return list(islice(found, _MOST_SHOWN))


def _is_countable(edge: AssetDependency) -> bool:
    """Whether what a partition needs of the upstream asset has a bound that is not its history."""
    if not has_time(edge.upstream.definition):
        return edge.downstream.definition is not None or edge.upstream.definition is None
    return has_time(edge.downstream.definition) and goes_by_windows(mapping_of(edge.mapping))


def _candidates(asset: Asset, edges: Sequence[AssetDependency]) -> list[PartitionRow]:
    """Partitions downstream of the newest upstream slices, newest first."""
    definition = asset.definition
    if definition is None:
        return list(partition_rows(None, slicewise.PartitionSet.of(None, [WHOLE])))
    touched = slicewise.PartitionSet.of(definition, [])
    newest = _newest(edges)
    for edge in edges:
        upstream = edge.upstream.definition
        # Time downstream alone: all windows follow, and which of them is due is said by ticks.
        if upstream is None or has_time(upstream) != has_time(definition):
            continue
        keys = list(still_known(upstream, newest.get(edge.upstream_id, ())))
        touched |= slicewise.downstream_partitions(
            upstream, definition, keys, mapping_of(edge.mapping)
        )
    rows = partition_rows(definition, touched[max(0, len(touched) - _MOST_LOOKED_AT) :])
    return list(rows)[::-1]


def _newest(edges: Sequence[AssetDependency]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    with connection.cursor() as cursor:
        upstream = [edge.upstream for edge in edges]
        ids, identities = [one.pk for one in upstream], [one.identity for one in upstream]
        cursor.execute(_NEWEST, [ids, identities, _NEWEST_UPSTREAM])
        for asset_id, key in cursor.fetchall():
            found.setdefault(asset_id, []).append(key)
    return found


def _affordable(
    edges: Sequence[AssetDependency], rows: Sequence[PartitionRow], now: datetime
) -> Iterator[PartitionRow]:
    left = _MOST_NEEDED
    since = [needed_since(edge, now) for edge in edges]
    for row in rows:
        left -= sum(
            len(needed_of(edge, row, first, now)) for edge, first in zip(edges, since, strict=True)
        )
        if left < 0:
            return
        yield row


def _is_open(verdict: Verdict, now: datetime) -> bool:
    """Whether something is there of what it needs and something else keeps it from being due."""
    if not any(standing.there for standing in verdict.standings.values()):
        return False
    return not verdict.is_ready or (verdict.is_due and _is_early(verdict.row, now))


def _is_early(row: PartitionRow, now: datetime) -> bool:
    return row.end is not None and row.end > now


def _progress(verdict: Verdict, by_name: dict[str, Asset], now: datetime) -> Progress:
    upstream = [
        UpstreamProgress(
            by_name[name], standing.needed, standing.there,
            [(key, _is_key(by_name[name], key)) for key in standing.missing],
        )
        for name, standing in verdict.standings.items()
    ]  # fmt: skip
    return Progress(verdict.row, upstream, verdict.is_ready and _is_early(verdict.row, now))


def _is_key(asset: Asset, text: str) -> bool:
    definition = asset.definition
    return True if definition is None else bool(list(still_known(definition, [text])))
