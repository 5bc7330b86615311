"""Progress of partitions that a schedule by assets does not make due yet, such as "23 of 24"."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from django.db import connection

import slicewise
from assets_app.models import Asset, AssetDependency, AssetPartition, Schedule, Target
from assets_app.queries.edges import edge_of, edge_without_bounds
from assets_app.queries.keys import still_known
from assets_app.scheduling.evaluations import Evaluation
from assets_app.scheduling.queueing import examined_edges
from assets_app.scheduling.readiness import evaluate
from assets_app.scheduling.tick_terms import tick_terms
from partitions_app.rules import has_time, nonexistent_json, nonexistent_text
from slicewise.keys import WHOLE
from slicewise.partitions import Nonexistent, PartitionRow, partition_rows

# The newest upstream partitions tell which partitions are being filled now; older ones are history.
_NEWEST_UPSTREAM = 200
_MOST_LOOKED_AT = 20
_MOST_SHOWN = 10
# A year of minutes for one partition is not counted while a page loads.
_MOST_NEEDED = 20_000

# Also whether an ended backfill materialized the partition: such a backfill makes no partition due,
# and materializes no further ones.
_NEWEST = """
SELECT requested.asset_id, newest.key, run_group.kind = 'backfill' AND NOT EXISTS (
    SELECT FROM assets_app_run AS run WHERE run.group_id = run_group.id
        AND run.state NOT IN ('succeeded', 'failed', 'canceled', 'skipped')
)
FROM unnest(%s::bigint[], %s::text[]) AS requested(asset_id, identity)
CROSS JOIN LATERAL (
    SELECT id, version, key FROM assets_app_assetpartition
    WHERE asset_id = requested.asset_id AND identity = requested.identity COLLATE "C"
      AND version > 0
    ORDER BY window_start DESC NULLS LAST, segment DESC LIMIT %s
) AS newest
LEFT JOIN assets_app_materialization AS materialization
    ON materialization.partition_id = newest.id AND materialization.version = newest.version
LEFT JOIN assets_app_run AS maker ON maker.id = materialization.run_id
LEFT JOIN assets_app_rungroup AS run_group ON run_group.id = maker.group_id
"""


@dataclass(frozen=True, slots=True)
class UpstreamProgress:
    """How many of the partitions that a partition needs of one upstream asset are materialized."""

    asset: Asset
    needed: int
    materialized: int
    # Keys of the first few partitions that exist and are missing.
    missing: Sequence[str]
    # Needed partitions outside of the upstream definition: keep the partition from being due.
    nonexistent: Nonexistent
    # Partitions that the upstream asset excludes: no partition needs these.
    excluded: int

    @property
    def more(self) -> int:
        """How many partitions are missing beside the named ones."""
        return self.needed - self.materialized - self.nonexistent.partitions - len(self.missing)

    @property
    def nonexistent_text(self) -> str:
        """``5 do not exist: 2024-01-01 to 2024-01-05``."""
        return nonexistent_text(self.nonexistent)

    @property
    def text(self) -> str:
        """``hourly 23 of 24``, with the partitions that do not exist or are excluded."""
        text = f"{self.asset.name} {self.materialized} of {self.needed}"
        remarks = [
            self.nonexistent_text,
            f"{self.excluded} excluded" if self.excluded else "",
        ]
        remark_text = "; ".join(filter(None, remarks))
        return f"{text} ({remark_text})" if remark_text else text


@dataclass(frozen=True, slots=True)
class Progress:
    """A partition with changed upstream partitions that is not due yet."""

    row: PartitionRow
    upstream: Sequence[UpstreamProgress]
    # All needed partitions are materialized: the partition waits for the end of its window.
    is_early: bool
    # A tick to come makes the partition due, if nothing else changes.
    waits_for_tick: bool = False

    @property
    def counts(self) -> dict[str, dict[str, Any]]:
        """Needed and materialized partitions by upstream asset, and the first missing keys."""
        return {
            status.asset.name: {
                "needed": status.needed, "materialized": status.materialized,
                "missing": list(status.missing),
                "nonexistent": nonexistent_json(status.nonexistent), "excluded": status.excluded,
            }
            for status in self.upstream
        }  # fmt: skip

    @property
    def text(self) -> str:
        """``hourly 23 of 24, daily 1 of 1``, and whether the partition waits for a tick."""
        texts = [upstream.text for upstream in self.upstream]
        return ", ".join([*texts, "waits for a tick"] if self.waits_for_tick else texts)


def progress_of(asset: Asset, now: datetime) -> list[Progress]:
    """Return the newest partitions under way and not due yet, newest first: three statements, or
    five where the schedule joins times.

    A partition is under way where an input was materialized by anything but an ended backfill, or
    where a tick makes the partition due. The result is empty for schedules without such progress:
    an asset without time over an asset with time is due after each upstream run, whichever
    partitions exist.
    """
    edges = list(examined_edges().filter(downstream=asset))
    if not edges or not all(map(_is_countable, edges)):
        return []
    schedule = Schedule.of(asset)
    try:
        schedule_times = None if schedule is None else tick_terms(schedule, now)
    except slicewise.DefinitionError:
        # An old rule, which this version or this host cannot read any more: no tick is to come.
        return []
    newest = _newest(edges)
    under_way = _candidates(asset, edges, newest.under_way)
    rows = under_way if schedule_times is None else _candidates(asset, edges, newest.all)
    rows = list(_affordable(edges, rows, now))
    evaluations = evaluate(Target(asset), edges, rows, made=None, now=now, terms=schedule_times)
    if schedule_times is not None and schedule is not None:
        evaluations = _as_ticks_see(asset, evaluations, schedule.handled_until)
        keys = {row.key for row in under_way}
        evaluations = [
            evaluation
            for evaluation in evaluations
            if evaluation.waits_for_tick or evaluation.row.key in keys
        ]
    by_name = {edge.upstream.name: edge.upstream for edge in edges}
    open_partitions = (
        _progress(evaluation, by_name, now)
        for evaluation in evaluations
        if _is_open(evaluation, now)
    )
    return list(islice(open_partitions, _MOST_SHOWN))


def _is_countable(dependency: AssetDependency) -> bool:
    """Return whether the needed upstream partitions have a bound other than the asset's history."""
    edge = edge_without_bounds(dependency)
    if not has_time(edge.upstream):
        return edge.downstream is not None or edge.upstream is None
    return not edge.needs_all_of_time


def _candidates(
    asset: Asset, edges: Sequence[AssetDependency], newest: Mapping[int, Sequence[str]]
) -> list[PartitionRow]:
    """Return the partitions downstream of the newest upstream partitions, newest first."""
    definition = asset.definition
    if definition is None:
        whole_keys = [WHOLE] if newest else []
        return list(partition_rows(None, slicewise.PartitionSet.of(None, whole_keys)))
    downstream_partitions = slicewise.PartitionSet.of(definition, [])
    for dependency in edges:
        edge = edge_without_bounds(dependency, asset)
        # Where only the downstream asset has time, all windows follow, and ticks decide which of
        # the windows are due.
        if edge.upstream is None or has_time(edge.upstream) != has_time(definition):
            continue
        keys = still_known(edge.upstream, newest.get(dependency.upstream_id, ()))
        newest_upstream = slicewise.PartitionSet.of(edge.upstream, list(keys))
        downstream_partitions |= edge.following(newest_upstream)
    rows = partition_rows(
        definition, downstream_partitions[max(0, len(downstream_partitions) - _MOST_LOOKED_AT) :]
    )
    return list(rows)[::-1]


class _Newest(NamedTuple):
    """Keys of the newest upstream partitions by asset: all, and all but those of past backfills."""

    all: Mapping[int, Sequence[str]]
    under_way: Mapping[int, Sequence[str]]


def _newest(edges: Sequence[AssetDependency]) -> _Newest:
    """Read the keys of the newest materialized partitions of the upstream assets."""
    all_keys: dict[int, list[str]] = {}
    keys_under_way: dict[int, list[str]] = {}
    with connection.cursor() as cursor:
        upstream_assets = [edge.upstream for edge in edges]
        ids, identities = (
            [asset.pk for asset in upstream_assets],
            [asset.identity for asset in upstream_assets],
        )
        cursor.execute(_NEWEST, [ids, identities, _NEWEST_UPSTREAM])
        for asset_id, key, is_of_past_backfill in cursor.fetchall():
            all_keys.setdefault(asset_id, []).append(key)
            if not is_of_past_backfill:
                keys_under_way.setdefault(asset_id, []).append(key)
    return _Newest(all_keys, keys_under_way)


def _affordable(
    dependencies: Sequence[AssetDependency], rows: Sequence[PartitionRow], now: datetime
) -> Iterator[PartitionRow]:
    """Yield the first rows that together need at most `_MOST_NEEDED` upstream partitions."""
    room = _MOST_NEEDED
    edges = [edge_of(dependency, now) for dependency in dependencies]
    for row in rows:
        room -= sum(len(edge.needed_by_texts([row.key])) for edge in edges)
        if room < 0:
            return
        yield row


def _as_ticks_see(
    asset: Asset, evaluations: Sequence[Evaluation], handled_until: datetime
) -> list[Evaluation]:
    """Return the evaluations without partitions that a run holds now, which wait for no tick.

    A window that no tick examines any more waits for none either: the first tick after its end
    examines a window, and a later tick only a window that was put off.
    """
    keys = [evaluation.row.key for evaluation in evaluations if evaluation.waits_for_tick]
    rows = AssetPartition.objects.filter(asset=asset.pk, identity=asset.identity, key__in=keys)
    row_facts = list(rows.values_list("key", "held_by", "due_again")) if keys else []
    held_keys = {key for key, held_by, _ in row_facts if held_by is not None}
    postponed_keys = {key for key, _, is_due_again in row_facts if is_due_again}
    return [
        replace(
            evaluation,
            waits_for_tick=evaluation.waits_for_tick
            and (evaluation.row.end is None or evaluation.row.end > handled_until
                 or evaluation.row.key in postponed_keys),
        )
        for evaluation in evaluations
        if evaluation.row.key not in held_keys
    ]  # fmt: skip


def _is_open(evaluation: Evaluation, now: datetime) -> bool:
    """Return whether a needed partition is materialized, and something keeps the partition from
    being due.
    """
    if not any(status.materialized for status in evaluation.upstream_statuses.values()):
        return False
    if not evaluation.is_ready or evaluation.waits_for_tick:
        return True
    return evaluation.is_due and _is_early(evaluation.row, now)


def _is_early(row: PartitionRow, now: datetime) -> bool:
    return row.end is not None and row.end > now


def _progress(evaluation: Evaluation, by_name: dict[str, Asset], now: datetime) -> Progress:
    upstream = [
        UpstreamProgress(
            by_name[name], status.needed, status.materialized, list(status.missing),
            status.nonexistent, status.excluded,
        )
        for name, status in evaluation.upstream_statuses.items()
    ]  # fmt: skip
    is_early = evaluation.is_ready and _is_early(evaluation.row, now)
    return Progress(evaluation.row, upstream, is_early, evaluation.waits_for_tick and not is_early)
