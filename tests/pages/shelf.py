"""Partitions and their counts put on record directly, as if runs had made the partitions."""

from collections import Counter
from collections.abc import Callable
from datetime import date

from assets_app.models import Asset, AssetPartition, PartitionCount
from slicewise.partitions.rows import partition_rows


def record(
    asset: Asset, selection: str, state_of: Callable[[int], str] = lambda n: "materialized"
) -> int:
    """Put the selected partitions on record in the states that the function gives; how many."""
    rows = list(partition_rows(asset.definition, asset.definition.select(selection)))
    counts: Counter[tuple[date | None, str, str]] = Counter()
    slices = []
    for place, row in enumerate(rows):
        state = state_of(place)
        counts[(row.bucket, row.segment, state)] += 1
        slices.append(
            AssetPartition(
                asset=asset,
                identity=asset.identity,
                key=row.key,
                window_start=row.start,
                window_end=row.end,
                segment=row.segment,
                bucket=row.bucket,
                state=state,
                version=1 if state == "materialized" else 0,
            )
        )
    AssetPartition.objects.bulk_create(slices, batch_size=5000)
    PartitionCount.objects.bulk_create(
        PartitionCount(
            asset=asset,
            identity=asset.identity,
            bucket=bucket,
            segment=segment,
            state=state,
            count=number,
        )
        for (bucket, segment, state), number in counts.items()
    )
    return len(rows)
