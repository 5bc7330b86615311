"""How far partitions are that an asset's schedule by assets does not make due yet: "23 of 24"."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from django.db import connection

import slicewise
from assets_app.models import Asset, AssetDependency, AssetPartition
from assets_app.queries.keys import still_known
from assets_app.scheduling.queueing import scheduling_edges
from assets_app.scheduling.readiness import Verdict, judge, needed_of, needed_since
from assets_app.scheduling.tick_terms import tick_terms
from partitions_app.rules import (
    goes_by_windows,
    has_time,
    mapping_of,
    nonexistent_json,
    nonexistent_text,
)
from slicewise.keys import WHOLE
from slicewise.nonexistent import Nonexistent
from slicewise.rows import PartitionRow, partition_rows

# The newest upstream slices say which partitions are being filled now; older ones are history.
_NEWEST_UPSTREAM = 200
_MOST_LOOKED_AT = 20
_MOST_SHOWN = 10
# A year of minutes for one partition is not counted while somebody waits for a page.
_MOST_NEEDED = 20_000

# With whether a backfill has made them that is over: it makes nothing due, and makes no more of it.
_NEWEST = """
SELECT wanted.asset_id, newest.key, asked.kind = 'backfill' AND NOT EXISTS (
    SELECT FROM assets_app_run AS run WHERE run.group_id = asked.id
        AND run.state NOT IN ('succeeded', 'failed', 'canceled', 'skipped')
)
FROM unnest(%s::bigint[], %s::text[]) AS wanted(asset_id, identity)
CROSS JOIN LATERAL (
    SELECT id, version, key FROM assets_app_assetpartition
    WHERE asset_id = wanted.asset_id AND identity = wanted.identity COLLATE "C" AND version > 0
    ORDER BY window_start DESC NULLS LAST, segment DESC LIMIT %s
) AS newest
LEFT JOIN assets_app_materialization AS made
    ON made.slice_id = newest.id AND made.version = newest.version
LEFT JOIN assets_app_run AS maker ON maker.id = made.run_id
LEFT JOIN assets_app_rungroup AS asked ON asked.id = maker.group_id
"""


@dataclass(frozen=True, slots=True)
class UpstreamProgress:
    """How much of what a partition needs of one upstream asset is there."""

    asset: Asset
    needed: int
    there: int
    # Keys of the first few that are missing, and exist.
    missing: Sequence[str]
    # Needed, and outside of what the upstream asset has: keeps the partition from being made.
    nonexistent: Nonexistent
    # Partitions that the upstream asset excludes: none of them is needed.
    excluded: int

    @property
    def more(self) -> int:
        """How many are missing beside those that are named."""
        return self.needed - self.there - self.nonexistent.partitions - len(self.missing)

    @property
    def nonexistent_text(self) -> str:
        """``5 do not exist: 2024-01-01 to 2024-01-05``."""
        return nonexistent_text(self.nonexistent)

    @property
    def text(self) -> str:
        """``hourly 23 of 24``, with what does not exist and what is excluded."""
        text = f"{self.asset.name} {self.there} of {self.needed}"
        beside = [
            self.nonexistent_text,
            f"{self.excluded} excluded" if self.excluded else "",
        ]
        shown = "; ".join(filter(None, beside))
        return f"{text} ({shown})" if shown else text


@dataclass(frozen=True, slots=True)
class Progress:
    """A partition that something happened to upstream, and that is not due yet."""

    row: PartitionRow
    upstream: Sequence[UpstreamProgress]
    # All is there: it waits for its own window to be over.
    is_early: bool
    # It is made at the next tick of a time in its schedule, then if nothing changes.
    waits_for_tick: bool = False

    @property
    def counts(self) -> dict[str, dict[str, Any]]:
        """By upstream asset: how many are needed, how many there, and the first missing ones."""
        return {
            one.asset.name: {
                "needed": one.needed, "there": one.there,
                "missing": list(one.missing),
                "nonexistent": nonexistent_json(one.nonexistent), "excluded": one.excluded,
            }
            for one in self.upstream
        }  # fmt: skip

    @property
    def text(self) -> str:
        """``hourly 23 of 24, daily 1 of 1``, and whether it waits for the next tick."""
        there = [one.text for one in self.upstream]
        return ", ".join([*there, "due at the next tick"] if self.waits_for_tick else there)


def progress_of(asset: Asset, now: datetime) -> list[Progress]:
    """Return the newest partitions under way and not due yet, newest first: three statements.

    A partition is under way where one of its inputs was made by anything but a backfill that is
    over, or where a tick makes the partition due. The result is empty for schedules without such
    progress: an asset without time over an asset with time is due after each upstream run, whatever
    exists.
    """
    edges = list(scheduling_edges().filter(downstream=asset))
    if not edges or not all(map(_is_countable, edges)):
        return []
    row = None if asset.producer is None else getattr(asset.producer, "schedule", None)
    terms = None if row is None else tick_terms(row, now)
    newest = _newest(edges)
    under_way = _candidates(asset, edges, newest.under_way)
    rows = under_way if terms is None else _candidates(asset, edges, newest.all)
    rows = list(_affordable(edges, rows, now))
    verdicts = judge(asset, edges, rows, made=None, now=now, terms=terms)
    if terms is not None and row is not None:
        verdicts = _as_ticks_take_them(asset, verdicts, row.handled_until)
        keys = {row.key for row in under_way}
        verdicts = [one for one in verdicts if one.waits_for_tick or one.row.key in keys]
    by_name = {edge.upstream.name: edge.upstream for edge in edges}
    found = (_progress(verdict, by_name, now) for verdict in verdicts if _is_open(verdict, now))
    return list(islice(found, _MOST_SHOWN))


def _is_countable(edge: AssetDependency) -> bool:
    """Whether what a partition needs of the upstream asset has a bound that is not its history."""
    if not has_time(edge.upstream.definition):
        return edge.downstream.definition is not None or edge.upstream.definition is None
    return has_time(edge.downstream.definition) and goes_by_windows(mapping_of(edge.mapping))


def _candidates(
    asset: Asset, edges: Sequence[AssetDependency], newest: Mapping[int, Sequence[str]]
) -> list[PartitionRow]:
    """Partitions downstream of upstream slices by asset, newest first."""
    definition = asset.definition
    if definition is None:
        whole = [WHOLE] if newest else []
        return list(partition_rows(None, slicewise.PartitionSet.of(None, whole)))
    touched = slicewise.PartitionSet.of(definition, [])
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


class _Newest(NamedTuple):
    """Keys of the newest upstream slices by asset: all, and without those of past backfills."""

    all: Mapping[int, Sequence[str]]
    under_way: Mapping[int, Sequence[str]]


def _newest(edges: Sequence[AssetDependency]) -> _Newest:
    found: dict[int, list[str]] = {}
    under_way: dict[int, list[str]] = {}
    with connection.cursor() as cursor:
        upstream = [edge.upstream for edge in edges]
        ids, identities = [one.pk for one in upstream], [one.identity for one in upstream]
        cursor.execute(_NEWEST, [ids, identities, _NEWEST_UPSTREAM])
        for asset_id, key, is_of_past_backfill in cursor.fetchall():
            found.setdefault(asset_id, []).append(key)
            if not is_of_past_backfill:
                under_way.setdefault(asset_id, []).append(key)
    return _Newest(found, under_way)


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


def _as_ticks_take_them(
    asset: Asset, verdicts: Sequence[Verdict], handled_until: datetime
) -> list[Verdict]:
    """Return the partitions without those that a run makes now: they wait for no tick. Nor do those
    that no tick looks at any more: a window is looked at by the first tick after its end, and again
    only where it was put off.
    """
    keys = [verdict.row.key for verdict in verdicts if verdict.waits_for_tick]
    pieces = AssetPartition.objects.filter(asset=asset.pk, identity=asset.identity, key__in=keys)
    known = list(pieces.values_list("key", "held_by", "due_again")) if keys else []
    held = {key for key, held_by, _ in known if held_by is not None}
    put_off = {key for key, _, is_due_again in known if is_due_again}
    return [
        replace(
            verdict,
            waits_for_tick=verdict.waits_for_tick
            and (verdict.row.end is None or verdict.row.end > handled_until
                 or verdict.row.key in put_off),
        )
        for verdict in verdicts
        if verdict.row.key not in held
    ]  # fmt: skip


def _is_open(verdict: Verdict, now: datetime) -> bool:
    """Whether something is there of what it needs and something else keeps it from being due."""
    if not any(standing.there for standing in verdict.standings.values()):
        return False
    if not verdict.is_ready or verdict.waits_for_tick:
        return True
    return verdict.is_due and _is_early(verdict.row, now)


def _is_early(row: PartitionRow, now: datetime) -> bool:
    return row.end is not None and row.end > now


def _progress(verdict: Verdict, by_name: dict[str, Asset], now: datetime) -> Progress:
    upstream = [
        UpstreamProgress(
            by_name[name], standing.needed, standing.there, list(standing.missing),
            standing.nonexistent, standing.excluded,
        )
        for name, standing in verdict.standings.items()
    ]  # fmt: skip
    is_early = verdict.is_ready and _is_early(verdict.row, now)
    return Progress(verdict.row, upstream, is_early, verdict.waits_for_tick and not is_early)
