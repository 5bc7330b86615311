"""How many partitions of assets are in which state: two statements, whatever their number."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from django.db.models import Count, Sum

from assets_app.models import Asset, AssetPartition, PartitionCount
from slicewise import UnboundedPartitionsError


class StateCounts:
    """Counts of the given assets under the definitions they have now."""

    def __init__(self, assets: Iterable[Asset]) -> None:
        # Slices of a definition that the asset had before are kept, and not counted.
        present = {asset.pk: asset.identity for asset in assets}
        ours = {"asset__in": present, "identity__in": set(present.values())}
        self._settled: dict[int, dict[str, int]] = defaultdict(dict)
        counts = PartitionCount.objects.filter(count__gt=0, **ours).order_by()
        for asset, identity, state, count in counts.values_list(
            "asset", "identity", "state"
        ).annotate(Sum("count")):
            if present[asset] == identity:
                self._settled[asset][state] = count
        held = AssetPartition.objects.filter(held_by__isnull=False, **ours).order_by()
        self._held: dict[int, int] = {
            asset: count
            for asset, identity, count in held.values_list("asset", "identity").annotate(
                Count("id")
            )
            if present[asset] == identity
        }

    def settled(self, asset: Asset) -> dict[str, int]:
        """Partitions by what last became of them; those never touched are not counted."""
        return dict(sorted(self._settled[asset.pk].items()))

    def held(self, asset: Asset) -> int:
        """Partitions that a run holds now."""
        return self._held.get(asset.pk, 0)


def expected_count(asset: Asset, *, now: datetime) -> int | None:
    """How many partitions are over by ``now``; None where the definition has no first one."""
    if asset.definition is None:
        return 1
    try:
        return int(asset.definition.count(until=now))
    except UnboundedPartitionsError:
        return None
