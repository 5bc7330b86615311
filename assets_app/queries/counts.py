"""Numbers of partitions of assets by state: seven statements for any number of assets."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Exists, OuterRef

from assets_app.models import Asset, AssetPartition, PartitionCount, PartitionState, RunState
from assets_app.queries.present import (
    Bounds,
    WindowlessSpan,
    bounds_of,
    listed_segments,
    windowless_spans_of,
)
from partitions_app.state_badges import waits_for_slot

_COUNTED = """
WITH bound AS (
    SELECT * FROM unnest(
        %(assets)s::bigint[], %(identities)s::text[], %(firsts)s::date[], %(lasts)s::date[],
        %(widths)s::int[]
    ) AS bound(asset_id, identity, first, last, width)
), listed AS (
    SELECT * FROM unnest(%(listing)s::bigint[], %(positions)s::int[], %(texts)s::text[])
        AS listed(asset_id, position, text)
), counted AS ({counted})
SELECT asset_id, state, sum(number), min(first), max(last) FROM counted
WHERE {is_listed} GROUP BY asset_id, state
"""
_WITHIN = """(bound.first IS NULL OR {row}.bucket >= bound.first)
      AND (bound.last IS NULL OR {row}.bucket <= bound.last)"""
# Grouped by segment first, so that each segment is looked up in the list once.
_NOT_RETRIED = (PartitionState.MISSING, PartitionState.MATERIALIZED)
_BY_BUCKET = f"""
    SELECT bound.asset_id, bound.width, total.segment, total.state,
           sum(total.count) AS number, min(total.bucket) AS first, max(total.bucket) AS last
    FROM bound JOIN assets_app_partitioncount AS total
        ON total.asset_id = bound.asset_id AND total.identity = bound.identity
    WHERE total.count > 0 AND total.state = ANY(%(states)s)
      AND {_WITHIN.format(row="total")}
    GROUP BY 1, 2, 3, 4
"""  # noqa: S608  (a part of the statement that has one home)
_HELD_BY_RUN = """JOIN assets_app_run AS run ON run.id = partition.held_by_id
    WHERE partition.held_by_id IS NOT NULL AND run.state = ANY(%(states)s)"""
# An index has exactly these partitions, so that the count costs nothing where there are none.
_RETRIED = """WHERE partition.held_by_id IS NOT NULL
    AND partition.state NOT IN ('missing', 'materialized') AND partition.state = ANY(%(states)s)"""


def _held_statement(state: str, of_states: str) -> str:
    """Return the statement that counts partitions that runs hold, by an index of these alone."""
    return f"""
    SELECT bound.asset_id, bound.width, partition.segment, {state},
           count(*) AS number, min(partition.bucket) AS first, max(partition.bucket) AS last
    FROM bound JOIN assets_app_assetpartition AS partition
        ON partition.asset_id = bound.asset_id AND partition.identity = bound.identity
    {of_states}
      AND {_WITHIN.format(row="partition")}
    GROUP BY 1, 2, 3, 4
"""  # noqa: S608


def _in_windowless_spans(state: str, of_states: str) -> str:
    """Return the statement that counts partitions in some states, in the spans of definitions
    without a window.
    """
    return f"""
    SELECT bound.asset_id, bound.width, partition.segment, {state},
           count(*) AS number, NULL::date AS first, NULL::date AS last
    FROM unnest(%(assets_of_spans)s::bigint[], %(sinces)s::timestamptz[], %(untils)s::timestamptz[])
        AS windowless_span(asset_id, since, until)
    JOIN bound ON bound.asset_id = windowless_span.asset_id
    JOIN assets_app_assetpartition AS partition
        ON partition.asset_id = bound.asset_id AND partition.identity = bound.identity
       AND partition.window_start >= windowless_span.since
       AND partition.window_start < windowless_span.until
    {of_states}
      AND {_WITHIN.format(row="partition")}
    GROUP BY 1, 2, 3, 4
"""  # noqa: S608


_IN_WINDOWLESS_SPANS = _in_windowless_spans(
    "partition.state",
    "WHERE partition.state <> 'missing' AND partition.state = ANY(%(states)s)",
)
# "queued missing": the state of the run, and the settled state of the partition.
_BOTH_STATES = "run.state || ' ' || partition.state AS state"
_HELD = _held_statement(_BOTH_STATES, _HELD_BY_RUN)
_HELD_IN_WINDOWLESS_SPANS = _in_windowless_spans(_BOTH_STATES, _HELD_BY_RUN)
_RETRIED_BY_BUCKET = _held_statement("partition.state", _RETRIED)
_RETRIED_IN_WINDOWLESS_SPANS = _in_windowless_spans("partition.state", _RETRIED)
_IS_LISTED = """(width < {number}
    OR (asset_id, {number}, split_part(segment, '|', {number})) IN (
    SELECT asset_id, position, text FROM listed
))"""


class HeldCounts(NamedTuple):
    """Numbers of partitions that runs hold: of runs that have not begun, and of other runs."""

    queued: int = 0
    running: int = 0


class StateCounts:
    """Counts of the partitions that the definitions of the given assets have now."""

    def __init__(self, assets: Iterable[Asset]) -> None:
        asset_list = list(assets)
        held_assets = _with_held_partitions(asset_list)
        self._settled = _settled(asset_list)
        self._held = _held(held_assets)
        self._retried = _retried(held_assets)

    def settled(self, asset: Asset) -> dict[str, int]:
        """Count partitions by their settled state, without those that are retried; partitions
        without a row are not counted.
        """
        counts = _difference(self._settled[asset.pk], self._retried.get(asset.pk, {}))
        return {state: number for state, number in sorted(counts.items()) if number > 0}

    def retried(self, asset: Asset) -> int:
        """Count the partitions that failed, were canceled or were skipped, and that a run holds
        again.
        """
        return sum(self._retried[asset.pk].values()) if asset.pk in self._retried else 0

    def held(self, asset: Asset) -> int:
        """Count the partitions that a run holds now."""
        return sum(self._held[asset.pk].values()) if asset.pk in self._held else 0

    def queued(self, asset: Asset) -> int:
        """Count the partitions of runs that wait: for an earlier partition, or for a worker."""
        return sum(held_counts.queued for held_counts in self.held_by_state(asset).values())

    def held_by_state(self, asset: Asset) -> dict[str, HeldCounts]:
        """Count the partitions that a run holds now by their settled state; "retried" stands for
        failed, canceled and skipped.
        """
        counts: dict[str, HeldCounts] = {}
        for states, number in self._held.get(asset.pk, {}).items():
            run_state, settled_state = states.split(" ")
            name = settled_state if settled_state in _NOT_RETRIED else "retried"
            queued, running = counts.get(name, HeldCounts())
            if waits_for_slot(run_state):
                counts[name] = HeldCounts(queued + number, running)
            else:
                counts[name] = HeldCounts(queued, running + number)
        return counts


def assets_in_progress(*, queued: bool) -> set[int]:
    """Return the ids of the assets of which a run holds a partition that the definition has now: a
    run that has not begun, or one that has.
    """
    run_states = [state for state in RunState if waits_for_slot(state) is queued]
    held_partitions = AssetPartition.objects.filter(
        held_by__state__in=run_states
    ).under_current_definition()
    assets = Asset.objects.filter(pk__in=held_partitions.order_by().values("asset"))
    held = _held(list(assets.select_related("partition_definition")), run_states)
    return {asset_id for asset_id, counts in held.items() if any(counts.values())}


def failed_counts() -> dict[int, int]:
    """Return how many partitions of declared assets have failed, by asset id, where any has: of the
    partitions that the definitions have now, without those that a run holds again.
    """
    touched = PartitionCount.objects.filter(state=PartitionState.FAILED, count__gt=0)
    assets = Asset.objects.filter(
        active=True, pk__in=touched.under_current_definition().order_by().values("asset")
    ).select_related("partition_definition")
    failed_assets, states = list(assets), [PartitionState.FAILED]
    settled = _settled(failed_assets, states)
    retried = _retried(_with_held_partitions(failed_assets), states)
    counts = {
        asset_id: _difference(of_asset, retried.get(asset_id, {}))["failed"]
        for asset_id, of_asset in settled.items()
    }
    return {asset_id: number for asset_id, number in counts.items() if number > 0}


def _settled(
    assets: Sequence[Asset], states: Sequence[str] = tuple(PartitionState)
) -> dict[int, dict[str, int]]:
    """Count the partitions that the definitions of the assets have now, by asset id and state."""
    return _counts_of(assets, states, _BY_BUCKET, _IN_WINDOWLESS_SPANS)


def _with_held_partitions(assets: Sequence[Asset]) -> list[Asset]:
    """Return the assets of which a run holds a partition: most have none, and need no bounds."""
    held_partitions = AssetPartition.objects.filter(asset=OuterRef("pk"), held_by__isnull=False)
    chosen = Asset.objects.filter(pk__in=[asset.pk for asset in assets])
    ids = set(chosen.filter(Exists(held_partitions)).order_by().values_list("pk", flat=True))
    return [asset for asset in assets if asset.pk in ids]


def _held(
    assets: Sequence[Asset], run_states: Sequence[str] = tuple(RunState)
) -> dict[int, dict[str, int]]:
    """Count the partitions that runs hold and the definitions have now, by asset id and by the
    states of run and partition: "queued missing".
    """
    return _counts_of(assets, run_states, _HELD, _HELD_IN_WINDOWLESS_SPANS)


def _retried(
    assets: Sequence[Asset], states: Sequence[str] = tuple(PartitionState)
) -> dict[int, dict[str, int]]:
    """Count the partitions of these settled states that runs hold again and the definitions have
    now, by asset id and state.
    """
    return _counts_of(assets, states, _RETRIED_BY_BUCKET, _RETRIED_IN_WINDOWLESS_SPANS)


def _difference(counts: Mapping[str, int], less: Mapping[str, int]) -> dict[str, int]:
    return {state: number - less.get(state, 0) for state, number in counts.items()}


def _counts_of(
    assets: Sequence[Asset], states: Sequence[str], all_counted: str, counted_in_spans: str
) -> dict[int, dict[str, int]]:
    """Count by asset id and state: all partitions within the buckets of the bounds, less the
    partitions in spans of the definitions without a window.
    """
    if not assets:
        return {}
    counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    bounds = [bounds_of(asset) for asset in assets]
    values = _values(assets, bounds) | {"states": list(map(str, states))}
    buckets: dict[int, list[date]] = defaultdict(list)
    for asset_id, state, number, first, last in _counted(all_counted, bounds, values):
        counts[asset_id][state] = int(number)
        buckets[asset_id] += [day for day in (first, last) if day is not None]
    windowless_spans = [
        span
        for asset in assets
        if (days := buckets[asset.pk])
        for span in windowless_spans_of(asset, min(days), max(days))
    ]
    if windowless_spans:
        span_values = values | _columns(windowless_spans)
        for asset_id, state, number, *_ in _counted(counted_in_spans, bounds, span_values):
            counts[asset_id][state] -= int(number)
    return counts


def _counted(counted: str, bounds: Sequence[Bounds], values: dict[str, Any]) -> list[Any]:
    widest = max((bound.width for bound in bounds), default=0)
    is_listed = " AND ".join(_IS_LISTED.format(number=number) for number in range(1, widest + 1))
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED.format(counted=counted, is_listed=is_listed or "true"), values)
        rows: list[Any] = cursor.fetchall()
        return rows


def _values(assets: Sequence[Asset], bounds: Sequence[Bounds]) -> dict[str, Any]:
    listed = list(listed_segments(assets))
    return {
        "assets": [bound.asset_id for bound in bounds],
        "identities": [bound.identity for bound in bounds],
        "firsts": [bound.first for bound in bounds],
        "lasts": [bound.last for bound in bounds],
        "widths": [bound.width for bound in bounds],
        "listing": [segment.asset_id for segment in listed],
        "positions": [segment.position for segment in listed],
        "texts": [segment.text for segment in listed],
    }


def _columns(spans: Sequence[WindowlessSpan]) -> dict[str, Any]:
    return {
        "assets_of_spans": [span.asset_id for span in spans],
        "sinces": [span.since for span in spans],
        "untils": [span.until for span in spans],
    }
