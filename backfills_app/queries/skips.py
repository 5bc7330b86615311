"""What a backfill skipped, and why."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import connection, models
from django.db.models import Count

from assets_app.models import SkipReason
from partitions_app.rules import UpstreamGap

if TYPE_CHECKING:
    from backfills_app.models import BackfillAsset, BackfillPartition


@dataclass(frozen=True, slots=True)
class Skipped:
    """How many partitions of an asset were skipped for one reason; ``others`` are the backfills
    that make or have made some of them instead, by number and name. ``gaps`` say of what they need
    which partitions do not exist, where that is the reason and somebody has looked.
    """

    asset: str
    reason: str
    number: int
    others: tuple[tuple[int, str], ...] = ()
    gaps: tuple[UpstreamGap, ...] = ()

    @property
    def label(self) -> str:
        """The reason in words."""
        return str(SkipReason(self.reason).label)

    @property
    def hint(self) -> str:
        """What helps, in words: empty where upstream definitions are those that were frozen."""
        names = [gap.asset for gap in self.gaps if gap.is_outdated]
        if not names:
            return ""
        return (
            f"Partition definition changed since: {', '.join(names)}."
            " A retry with the latest code uses the new definition."
        )


_OTHERS = """
SELECT DISTINCT skipped.backfill_asset_id, other.id, other.name
FROM (
    SELECT backfill_asset_id, key FROM backfills_app_backfillpartition
    WHERE backfill_asset_id = ANY(%(parts)s) AND state = 'skipped' AND reason = 'in_flight'
    LIMIT %(most)s
) AS skipped
JOIN backfills_app_backfillasset AS piece ON piece.id = skipped.backfill_asset_id
JOIN assets_app_asset AS asset ON asset.id = piece.asset_id
JOIN partitions_app_partitiondefinition AS rule ON rule.id = asset.partition_definition_id
JOIN assets_app_assetpartition AS slice
    ON slice.asset_id = asset.id AND slice.identity = rule.identity AND slice.key = skipped.key
JOIN assets_app_run AS run ON run.id = coalesce(slice.held_by_id, slice.last_run_id)
JOIN backfills_app_backfill AS other ON other.group_id = run.group_id
WHERE other.id <> piece.backfill_id
ORDER BY 1, 2 LIMIT 20
"""
_MOST_LOOKED_UP = 200


def skipped_by_reason(parts: Iterable["BackfillAsset"]) -> list[Skipped]:
    """Return the skipped partitions by reason and asset: two statements.

    A million may be skipped since they exist; their number is the rest of the stored count, and is
    not counted again. The runs that had `in_flight` partitions are looked up for some of these.
    """
    skipped = {part.pk: part for part in parts if part.skipped}
    if not skipped:
        return []
    named = {pk: part.asset.name for pk, part in skipped.items()}
    found = _counted(skipped)
    others: dict[int, list[tuple[int, str]]] = {}
    if any(reason == SkipReason.IN_FLIGHT for _, reason, _ in found):
        with connection.cursor() as cursor:
            cursor.execute(_OTHERS, {"parts": list(named), "most": _MOST_LOOKED_UP})
            for part, other, name in cursor.fetchall():
                others.setdefault(part, []).append((other, name))
    return [
        Skipped(
            named[part],
            reason,
            number,
            tuple(others.get(part, ())) if reason == SkipReason.IN_FLIGHT else (),
        )
        for part, reason, number in found
    ]


def _counted(parts: Mapping[int, "BackfillAsset"]) -> list[tuple[int, str, int]]:
    """Asset, reason and number, the most first for each asset."""
    rare = [reason for reason in SkipReason if reason != SkipReason.EXISTS]
    counted = _skipped_for(parts, rare).values_list("backfill_asset", "reason")
    found = list(counted.annotate(number=Count("pk")).order_by())
    for pk, part in parts.items():
        rest = part.skipped - sum(number for of, _, number in found if of == pk)
        if rest > 0:
            found.append((pk, SkipReason.EXISTS.value, rest))
    places = list(parts)
    return sorted(found, key=lambda row: (places.index(row[0]), -row[2], row[1]))


def lacks_upstream(parts: Iterable["BackfillAsset"]) -> bool:
    """Return whether partitions were skipped for a missing upstream or earlier partition, which may
    be there by now.
    """
    skipped = [part.pk for part in parts if part.skipped]
    wanting = [
        SkipReason.UPSTREAM_FAILED,
        SkipReason.UPSTREAM_MISSING,
        SkipReason.UPSTREAM_NONEXISTENT,
        SkipReason.WAIT_TIMEOUT,
    ]
    return bool(skipped) and _skipped_for(skipped, wanting).exists()


def _skipped_for(
    parts: Iterable[int], reasons: Iterable[str]
) -> models.QuerySet["BackfillPartition"]:
    from backfills_app.models import BackfillPartition

    return BackfillPartition.objects.filter(
        backfill_asset__in=list(parts), state="skipped", reason__in=list(reasons)
    )
