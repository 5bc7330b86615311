"""Numbers of partitions of assets by state: three statements for any number of assets."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from django.db import connection
from django.db.models import Count

from assets_app.models import Asset, AssetPartition, PartitionCount, PartitionState
from assets_app.queries.present import Bounds, Gap, bounds_of, gaps_of, listed_segments

_COUNTED = """
WITH bound AS (
    SELECT * FROM unnest(
        %(assets)s::bigint[], %(identities)s::text[], %(firsts)s::date[], %(lasts)s::date[],
        %(widths)s::int[]
    ) AS bound(asset_id, identity, first, last, width)
), listed AS (
    SELECT * FROM unnest(%(listing)s::bigint[], %(places)s::int[], %(texts)s::text[])
        AS listed(asset_id, place, text)
), counted AS ({counted})
SELECT asset_id, state, sum(number), min(first), max(last) FROM counted
WHERE {is_listed} GROUP BY asset_id, state
"""
# Grouped by segment first, so that each segment is looked up in the list once.
_BY_BUCKET = """
    SELECT bound.asset_id, bound.width, total.segment, total.state,
           sum(total.count) AS number, min(total.bucket) AS first, max(total.bucket) AS last
    FROM bound JOIN assets_app_partitioncount AS total
        ON total.asset_id = bound.asset_id AND total.identity = bound.identity
    WHERE total.count > 0 AND total.state = ANY(%(states)s)
      AND (bound.first IS NULL OR total.bucket >= bound.first)
      AND (bound.last IS NULL OR total.bucket <= bound.last)
    GROUP BY 1, 2, 3, 4
"""
_IN_GAPS = """
    SELECT bound.asset_id, bound.width, slice.segment, slice.state,
           count(*) AS number, NULL::date AS first, NULL::date AS last
    FROM unnest(%(gaps)s::bigint[], %(sinces)s::timestamptz[], %(untils)s::timestamptz[])
        AS gap(asset_id, since, until)
    JOIN bound ON bound.asset_id = gap.asset_id
    JOIN assets_app_assetpartition AS slice
        ON slice.asset_id = bound.asset_id AND slice.identity = bound.identity
       AND slice.window_start >= gap.since AND slice.window_start < gap.until
    WHERE slice.state <> 'missing' AND slice.state = ANY(%(states)s)
      AND (bound.first IS NULL OR slice.bucket >= bound.first)
      AND (bound.last IS NULL OR slice.bucket <= bound.last)
    GROUP BY 1, 2, 3, 4
"""
_IS_LISTED = """(width < {place} OR (asset_id, {place}, split_part(segment, '|', {place})) IN (
    SELECT asset_id, place, text FROM listed
))"""


class StateCounts:
    """Counts of the partitions that the definitions of the given assets have now."""

    def __init__(self, assets: Iterable[Asset]) -> None:
        asset_list = list(assets)
        self._settled = _settled(asset_list)
        held_partitions = AssetPartition.objects.filter(
            asset__in=asset_list, held_by__isnull=False
        ).as_cut_now()
        self._held: dict[int, int] = dict(
            held_partitions.order_by().values_list("asset").annotate(Count("id"))
        )

    def settled(self, asset: Asset) -> dict[str, int]:
        """Count partitions by their settled state; partitions without a row are not counted."""
        counts = self._settled[asset.pk]
        return {state: number for state, number in sorted(counts.items()) if number > 0}

    def held(self, asset: Asset) -> int:
        """Count the partitions that a run holds now."""
        return self._held.get(asset.pk, 0)


def failed_counts() -> dict[int, int]:
    """Return how many partitions of declared assets have failed, by asset id, where any has: of the
    partitions that the definitions have now.
    """
    touched = PartitionCount.objects.filter(state=PartitionState.FAILED, count__gt=0)
    assets = Asset.objects.filter(
        active=True, pk__in=touched.as_cut_now().order_by().values("asset")
    ).select_related("partition_definition")
    settled = _settled(list(assets), [PartitionState.FAILED])
    counts = {asset_id: of_asset["failed"] for asset_id, of_asset in settled.items()}
    return {asset_id: number for asset_id, number in counts.items() if number > 0}


def _settled(
    assets: Sequence[Asset], states: Sequence[str] = tuple(PartitionState)
) -> dict[int, dict[str, int]]:
    """Count the partitions that the definitions of the assets have now, by asset id and state."""
    if not assets:
        return {}
    counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    bounds = [bounds_of(asset) for asset in assets]
    values = _values(assets, bounds) | {"states": list(map(str, states))}
    buckets: dict[int, list[date]] = defaultdict(list)
    for asset_id, state, number, first, last in _counted(_BY_BUCKET, bounds, values):
        counts[asset_id][state] = int(number)
        buckets[asset_id] += [day for day in (first, last) if day is not None]
    gaps = [
        gap
        for asset in assets
        if (days := buckets[asset.pk])
        for gap in gaps_of(asset, min(days), max(days))
    ]
    if gaps:
        for asset_id, state, number, *_ in _counted(_IN_GAPS, bounds, values | _columns(gaps)):
            counts[asset_id][state] -= int(number)
    return counts


def _counted(counted: str, bounds: Sequence[Bounds], values: dict[str, Any]) -> list[Any]:
    widest = max((bound.width for bound in bounds), default=0)
    is_listed = " AND ".join(_IS_LISTED.format(place=position) for position in range(1, widest + 1))
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
        "places": [segment.place for segment in listed],
        "texts": [segment.text for segment in listed],
    }


def _columns(gaps: Sequence[Gap]) -> dict[str, Any]:
    return {
        "gaps": [gap.asset_id for gap in gaps],
        "sinces": [gap.since for gap in gaps],
        "untils": [gap.until for gap in gaps],
    }
