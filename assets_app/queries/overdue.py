"""Late and overdue partitions, for pages, API, commands and metrics.

A partition without data is late from the earliest mark of the asset's freshness on, and overdue
from ``within`` on. The beat notes late partitions (`assets_app.scheduling.freshness`); the queries
here leave out partitions that have come meanwhile, so that no reader waits for the beat.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from assets_app.models import Asset, AssetPartition, LatePartition

# Few rows: only of partitions that are late now, or have come since the last beat.
_COUNTS = """
SELECT late.asset_id, count(*) FILTER (WHERE late.overdue_at <= %(now)s), count(*)
FROM assets_app_latepartition AS late
JOIN assets_app_asset AS asset ON asset.id = late.asset_id AND asset.active
LEFT JOIN assets_app_assetpartition AS partition
    ON partition.asset_id = late.asset_id AND partition.identity = late.identity
        AND partition.key = late.key
   AND partition.version > 0
WHERE late.late_at <= %(now)s AND partition.id IS NULL
  AND (%(assets)s::bigint[] IS NULL OR late.asset_id = ANY(%(assets)s::bigint[]))
GROUP BY late.asset_id
"""


@dataclass(frozen=True, slots=True)
class LateCounts:
    """The numbers of overdue partitions, and of partitions that are late and not overdue yet."""

    overdue: int = 0
    late: int = 0


@dataclass(frozen=True, slots=True)
class LateMark:
    """The marks of one late partition."""

    late_at: datetime
    overdue_at: datetime
    is_overdue: bool

    @property
    def word(self) -> str:
        """``late`` or ``overdue``."""
        return "overdue" if self.is_overdue else "late"


NONE_LATE = LateCounts()


def late_counts(now: datetime, assets: Collection[Asset] | None = None) -> dict[int, LateCounts]:
    """Return the numbers of overdue and late partitions by asset id, of declared assets that have
    any; of all assets, or of the given ones. One statement.
    """
    ids = None if assets is None else [asset.pk for asset in assets]
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, {"now": now, "assets": ids})
        return {
            asset_id: LateCounts(overdue, total - overdue)
            for asset_id, overdue, total in cursor.fetchall()
        }


def late_total(now: datetime) -> LateCounts:
    """Return the numbers of overdue and late partitions of all declared assets: one statement."""
    counts = late_counts(now).values()
    return LateCounts(sum(count.overdue for count in counts), sum(count.late for count in counts))


def late_count_columns(now: datetime) -> tuple[Coalesce, Coalesce]:
    """Return the numbers of overdue partitions, and of partitions that are late and not overdue
    yet, as columns of a query of assets.
    """
    rows = _missing_rows(now).filter(asset=OuterRef("pk"), asset__active=True)
    return (
        _counted(rows.filter(overdue_at__lte=now)),
        _counted(rows.filter(overdue_at__gt=now)),
    )


def overdue_by_asset(now: datetime) -> dict[int, int]:
    """Return how many partitions of declared assets are overdue, by asset id, where any is: one
    statement.
    """
    return {pk: counts.overdue for pk, counts in late_counts(now).items() if counts.overdue}


def late_marks(asset: Asset, keys: Sequence[str], now: datetime) -> dict[str, LateMark]:
    """Return the marks of the partitions among these keys that are late now: one statement."""
    rows = _late_rows(asset, now).filter(key__in=keys)
    return {
        key: LateMark(late_at, overdue_at, overdue_at <= now)
        for key, late_at, overdue_at in rows.values_list("key", "late_at", "overdue_at")
    }


def overdue_partitions(asset: Asset, now: datetime) -> QuerySet[LatePartition]:
    """Select the overdue partitions of an asset, in the order of windows."""
    rows = _late_rows(asset, now).filter(overdue_at__lte=now)
    return rows.order_by("window_start", "key", "pk")


def freshness_of(asset: Asset) -> dict[str, int] | None:
    """Return the freshness of an asset in seconds, as declared; None without one."""
    return dict(asset.freshness_watch.freshness) if is_watched(asset) else None


def is_watched(asset: Asset) -> bool:
    """Return whether an asset has a freshness: no statement if the row was read with its watch."""
    return asset.active and hasattr(asset, "freshness_watch")


def _late_rows(asset: Asset, now: datetime) -> QuerySet[LatePartition]:
    rows = _missing_rows(now).filter(asset=asset, identity=asset.identity)
    return rows if asset.active else rows.none()


def _missing_rows(now: datetime) -> QuerySet[LatePartition]:
    come = AssetPartition.objects.filter(
        asset=OuterRef("asset"), identity=OuterRef("identity"), key=OuterRef("key"), version__gt=0
    )
    return LatePartition.objects.filter(~Exists(come), late_at__lte=now)


def _counted(rows: QuerySet[LatePartition]) -> Coalesce:
    counted = rows.order_by().values("asset").annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counted), 0)
