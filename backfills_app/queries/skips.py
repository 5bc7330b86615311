"""The skipped partitions of a backfill, and the reasons."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db import connection, models
from django.db.models import Count

from assets_app.models import SkipReason
from backfills_app.models import BackfillAsset, BackfillPartition
from partitions_app.rules import UpstreamGap

# Skipped because an upstream partition, or the partition before, was missing: a retry takes the
# skipped partition, since the missing one may be materialized by now, or by the retry itself.
RETRIED_REASONS = (
    SkipReason.UPSTREAM_FAILED,
    SkipReason.UPSTREAM_MISSING,
    SkipReason.UPSTREAM_NONEXISTENT,
    SkipReason.WAIT_TIMEOUT,
)


@dataclass(frozen=True, slots=True)
class Skipped:
    """The number of an asset's partitions that were skipped for one reason.

    ``others`` are the backfills that materialize or have materialized some of these partitions, by
    number and name. ``upstream_gaps`` are the needed upstream partitions that do not exist, if that
    is the reason and the caller has looked for upstream gaps.
    """

    asset: str
    reason: str
    number: int
    others: tuple[tuple[int, str], ...] = ()
    upstream_gaps: tuple[UpstreamGap, ...] = ()

    @property
    def label(self) -> str:
        """The reason in words."""
        return str(SkipReason(self.reason).label)

    @property
    def hint(self) -> str:
        """The remedy in words; empty where upstream definitions are still the frozen ones."""
        names = [
            upstream_gap.asset for upstream_gap in self.upstream_gaps if upstream_gap.is_outdated
        ]
        if not names:
            return ""
        return (
            f"Partition definition changed since: {', '.join(names)}."
            " A retry with the latest code uses the new definition."
        )


# The run that a partition was left to is recorded at the skip. Without a record, for instance after
# the deletion of that run, the present or last run of the partition stands in.
_OTHERS = """
SELECT DISTINCT skipped.backfill_asset_id, other.id, other.name
FROM (
    SELECT backfill_asset_id, key, run_id FROM backfills_app_backfillpartition
    WHERE backfill_asset_id = ANY(%(backfill_assets)s)
        AND state = 'skipped' AND reason = 'in_flight'
    LIMIT %(most)s
) AS skipped
JOIN backfills_app_backfillasset AS backfill_asset ON backfill_asset.id = skipped.backfill_asset_id
JOIN assets_app_asset AS asset ON asset.id = backfill_asset.asset_id
LEFT JOIN partitions_app_partitiondefinition AS rule ON rule.id = asset.partition_definition_id
LEFT JOIN assets_app_assetpartition AS partition
    ON skipped.run_id IS NULL AND partition.asset_id = asset.id
        AND partition.identity = coalesce(rule.identity, 'whole') AND partition.key = skipped.key
JOIN assets_app_run AS run
    ON run.id = coalesce(skipped.run_id, partition.held_by_id, partition.last_run_id)
JOIN backfills_app_backfill AS other ON other.group_id = run.group_id
WHERE other.id <> backfill_asset.backfill_id
ORDER BY 1, 2 LIMIT 20
"""
_MOST_LOOKED_UP = 200


def skipped_by_reason(asset_rows: Iterable[BackfillAsset]) -> list[Skipped]:
    """Return the skipped partitions by reason and asset: two queries.

    A million partitions may be skipped because they exist; their number is the rest of the stored
    count, and no query counts it. The runs that had `in_flight` partitions are looked up for some
    of these partitions.
    """
    skipped = {asset_row.pk: asset_row for asset_row in asset_rows if asset_row.skipped}
    if not skipped:
        return []
    asset_names = {pk: asset_row.asset.name for pk, asset_row in skipped.items()}
    counted_rows = _count_by_reason(skipped)
    other_backfills: dict[int, list[tuple[int, str]]] = {}
    if any(reason == SkipReason.IN_FLIGHT for _, reason, _ in counted_rows):
        with connection.cursor() as cursor:
            cursor.execute(_OTHERS, {"backfill_assets": list(asset_names), "most": _MOST_LOOKED_UP})
            for asset_row_id, other_id, name in cursor.fetchall():
                other_backfills.setdefault(asset_row_id, []).append((other_id, name))
    return [
        Skipped(
            asset_names[asset_row_id],
            reason,
            number,
            tuple(other_backfills.get(asset_row_id, ())) if reason == SkipReason.IN_FLIGHT else (),
        )
        for asset_row_id, reason, number in counted_rows
    ]


def _count_by_reason(asset_rows: Mapping[int, BackfillAsset]) -> list[tuple[int, str, int]]:
    """Return asset, reason and number of skipped partitions, the largest number of each asset
    first.
    """
    counted_reasons = [reason for reason in SkipReason if reason != SkipReason.EXISTS]
    skipped_rows = _skipped_for(asset_rows, counted_reasons).values_list("backfill_asset", "reason")
    rows = list(skipped_rows.annotate(number=Count("pk")).order_by())
    for pk, asset_row in asset_rows.items():
        existing_count = asset_row.skipped - sum(
            number for asset_row_id, _, number in rows if asset_row_id == pk
        )
        if existing_count > 0:
            rows.append((pk, SkipReason.EXISTS.value, existing_count))
    asset_order = list(asset_rows)
    return sorted(rows, key=lambda row: (asset_order.index(row[0]), -row[2], row[1]))


def retried_skips(asset_rows: Iterable[BackfillAsset]) -> models.QuerySet[BackfillPartition]:
    """Return the skipped partitions of these assets that a retry takes."""
    skipped = [asset_row.pk for asset_row in asset_rows if asset_row.skipped]
    return _skipped_for(skipped, RETRIED_REASONS)


def _skipped_for(
    asset_row_ids: Iterable[int], reasons: Iterable[str]
) -> models.QuerySet[BackfillPartition]:
    return BackfillPartition.objects.filter(
        backfill_asset__in=list(asset_row_ids), state="skipped", reason__in=list(reasons)
    )
