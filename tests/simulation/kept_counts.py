"""Numbers that the product keeps for its pages, against rows counted plainly and the reference."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from django.core.cache import cache
from django.db.models import Count

from assets_app.models import Asset, AssetPartition, PartitionCount, Run
from assets_app.queries.counts import StateCounts, failed_counts
from assets_app.queries.stale_counts import MOST_COUNTED, stale_counts
from slicewise_server.metrics.counting import count_runs
from slicewise_server.metrics.models import RunCount
from tests.simulation.reference import Reference


def wrong_counts(reference: Reference) -> list[str]:
    """Return the kept counts that are wrong."""
    assets = list(Asset.objects.select_related("partition_definition").filter(active=True))
    cache.clear()  # a count that took long is kept for a while
    pages, failed, stale = StateCounts(assets), failed_counts(), stale_counts(assets)
    count_runs()
    return [
        *_differing("kept count of partitions", _kept(), _rows()),
        *_differing(
            "count of partitions on pages",
            {(asset.name, state): number
             for asset in assets for state, number in pages.settled(asset).items()},
            reference.state_counts(),
        ),
        *_differing(
            "count of failed partitions",
            {(asset.name, "failed"): failed[asset.pk] for asset in assets if asset.pk in failed},
            {key: number for key, number in reference.state_counts().items() if "failed" in key},
        ),
        *_differing(
            "count of partitions in progress",
            {asset.name: number for asset in assets if (number := pages.held(asset))},
            reference.held_counts(),
        ),
        *_differing(
            "count of stale partitions",
            {
                asset.name: (stale[asset.pk].number, stale[asset.pk].is_cut)
                for asset in assets
                if asset.pk in stale
            },
            {
                name: (min(number, MOST_COUNTED), number > MOST_COUNTED)
                for name, number in reference.stale_counts().items()
            },
        ),
        *_differing(
            "kept count of runs",
            _numbers(RunCount.objects.exclude(runs=0).values_list(*_RUNS, "runs")),
            _numbers(Run.objects.order_by().values_list(*_RUNS).annotate(Count("pk"))),
        ),
    ]  # fmt: skip


_RUNS = ("asset_id", "queue", "state")


def _kept() -> dict[Any, int]:
    kept = PartitionCount.objects.exclude(count=0)
    return _numbers(
        kept.values_list("asset__name", "identity", "bucket", "segment", "state", "count")
    )


def _rows() -> dict[Any, int]:
    rows = AssetPartition.objects.exclude(state="missing").values_list(
        "asset__name", "identity", "bucket", "segment", "state"
    )
    return Counter(rows)


def _numbers(rows: Iterable[tuple[Any, ...]]) -> dict[Any, int]:
    return {tuple(facts): number for *facts, number in rows}


def _differing(kind: str, actual: Mapping[Any, Any], expected: Mapping[Any, Any]) -> list[str]:
    return [
        f"{kind} {key}: {actual.get(key, 0)}, and should be {expected.get(key, 0)}"
        for key in sorted({*actual, *expected}, key=repr)
        if actual.get(key, 0) != expected.get(key, 0)
    ]
