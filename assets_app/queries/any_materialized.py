"""Whether an asset has any materialized partition, and when the newest was materialized: schedules
and pages ask this of an upstream asset of which any one partition suffices.
"""

from datetime import datetime
from typing import NamedTuple

from assets_app.models import Asset, AssetPartition
from partitions_app.rules import has_time


class AnyMaterialized(NamedTuple):
    """Whether any partition was ever materialized, and when the newest was."""

    exists: bool
    newest_at: datetime | None


def any_materialized(asset: Asset) -> AnyMaterialized:
    """Return whether any partition of the asset's present definition was ever materialized, and
    when the newest was: one statement, which reads one row of an index.
    """
    # Two indexes have the materialized partitions in this order: with windows, and without.
    rows = AssetPartition.objects.materialized_of(asset).filter(
        window_start__isnull=not has_time(asset.definition)
    )
    newest = rows.order_by("-materialized_at", "-id").values_list("materialized_at", flat=True)
    times = list(newest[:1])
    return AnyMaterialized(bool(times), times[0] if times else None)
