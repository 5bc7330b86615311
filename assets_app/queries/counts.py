"""How many partitions of assets are in which state: two statements, whatever their number."""

from collections import defaultdict
from collections.abc import Iterable

from django.db.models import Count, Sum

from assets_app.models import Asset, AssetPartition, PartitionCount


class StateCounts:
    """Counts of the given assets under the definitions they have now."""

    def __init__(self, assets: Iterable[Asset]) -> None:
        ours = list(assets)
        self._settled: dict[int, dict[str, int]] = defaultdict(dict)
        counts = PartitionCount.objects.filter(asset__in=ours, count__gt=0).as_cut_now().order_by()
        for asset, state, count in counts.values_list("asset", "state").annotate(Sum("count")):
            self._settled[asset][state] = count
        held = AssetPartition.objects.filter(asset__in=ours, held_by__isnull=False).as_cut_now()
        self._held: dict[int, int] = dict(
            held.order_by().values_list("asset").annotate(Count("id"))
        )

    def settled(self, asset: Asset) -> dict[str, int]:
        """Partitions by what last became of them; those never touched are not counted."""
        return dict(sorted(self._settled[asset.pk].items()))

    def held(self, asset: Asset) -> int:
        """Partitions that a run holds now."""
        return self._held.get(asset.pk, 0)
