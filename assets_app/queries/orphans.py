"""Orphans: partitions on record with data that the present definition of the asset does not have.

Segments were removed from the definition, windows were excluded, bounds were moved, or the asset is
partitioned otherwise now.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Max, Min, OuterRef, Subquery, Sum

from assets_app.models import Asset, AssetPartition, PartitionCount, PartitionState
from assets_app.models.targets import DISCOVERY
from assets_app.queries.present import bounds_of, listed_segments, span_of, windowless_spans_of

# With the last publication of each partition, and its location; of data that another program has
# written, no location is known.
_ORPHANS = """
SELECT partition.id, partition.identity, partition.key, partition.rows, partition.bytes,
    partition.materialized_at,
       partition.held_by_id IS NOT NULL, record.run_id,
       coalesce(run_partition.path, ''), coalesce(outlet.root, ''),
       coalesce(outlet.name_on_disk, '')
FROM assets_app_assetpartition AS partition
LEFT JOIN assets_app_materialization AS record
    ON record.partition_id = partition.id AND record.version = partition.version
LEFT JOIN assets_app_runpartition AS run_partition
    ON run_partition.run_id = record.run_id AND run_partition.partition_id = partition.id
LEFT JOIN assets_app_attemptoutlet AS outlet
    ON outlet.attempt_id = record.attempt_id AND outlet.asset_id = partition.asset_id
WHERE partition.asset_id = %(asset)s AND partition.version > 0
    AND partition.identity <> %(discovery)s
  AND (%(partitions)s::bigint[] IS NULL OR partition.id = ANY(%(partitions)s))
  AND (partition.identity <> %(identity)s OR partition.window_start < %(since)s
       OR partition.window_start >= %(until)s OR {is_unlisted}
       OR EXISTS (
           SELECT FROM unnest(%(sinces)s::timestamptz[], %(untils)s::timestamptz[])
               AS windowless_span(since, until)
           WHERE partition.window_start >= windowless_span.since
             AND partition.window_start < windowless_span.until
       ))
ORDER BY partition.window_start, partition.segment, partition.id
LIMIT %(limit)s
"""
_IS_UNLISTED = "split_part(partition.segment, '|', {position}) <> ALL(%(listed{position})s::text[])"


class OrphanRow(NamedTuple):
    """A partition with data that the definition does not have, and its last publication.

    ``root`` is where the data was published; empty for data that no run has written.
    """

    partition_id: int
    identity: str
    key: str
    rows: int | None
    bytes: int | None
    materialized_at: datetime | None
    is_held: bool
    run_id: int | None
    path: str
    root: str
    attempt: str


def orphan_rows(
    asset: Asset, *, partitions: Sequence[int] | None = None, limit: int | None = None
) -> list[OrphanRow]:
    """Return the partitions with data that the definition does not have, by window and segment.

    ``partitions`` are the ids of the only partitions to look at.
    """
    since, until = span_of(asset)
    windowless_spans = _windowless_spans(asset)
    values: dict[str, Any] = {
        "asset": asset.pk,
        "identity": asset.identity,
        "discovery": DISCOVERY,
        "partitions": None if partitions is None else list(partitions),
        "since": since,
        "until": until,
        "sinces": [span.since for span in windowless_spans],
        "untils": [span.until for span in windowless_spans],
        "limit": limit,
    }
    width = bounds_of(asset).width
    for position in range(1, width + 1):
        values[f"listed{position}"] = []
    for segment in listed_segments([asset]):
        values[f"listed{segment.position}"].append(segment.text)
    is_unlisted = " OR ".join(
        _IS_UNLISTED.format(position=position) for position in range(1, width + 1)
    )
    with connection.cursor() as cursor:
        cursor.execute(_ORPHANS.format(is_unlisted=is_unlisted or "false"), values)
        return [OrphanRow(*row) for row in cursor.fetchall()]


def materialized_total() -> Subquery:
    """Return a subquery for the number of an asset's materialized partitions, under any definition.

    The subquery is part of the statement that reads the asset, and reads counts, not rows.
    """
    counts = PartitionCount.objects.filter(asset=OuterRef("pk"), state=PartitionState.MATERIALIZED)
    by_asset = counts.exclude(identity=DISCOVERY).order_by().values("asset")
    return Subquery(by_asset.annotate(total=Sum("count")).values("total"))


def orphan_count(asset: Asset, present: int) -> int:
    """Return how many materialized partitions of an asset, read with `materialized_total`, are not
    among the ``present`` partitions, which the definition has.
    """
    total: int | None = vars(asset)["materialized_total"]
    return max((total or 0) - present, 0)


def _windowless_spans(asset: Asset) -> list[Any]:
    rows = AssetPartition.objects.filter(
        asset=asset, identity=asset.identity, window_start__isnull=False
    )
    ends = rows.aggregate(first=Min("window_start"), last=Max("window_start"))
    if ends["first"] is None:
        return []
    return list(windowless_spans_of(asset, ends["first"].date(), ends["last"].date()))
