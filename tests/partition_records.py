"""Partitions put on record without a run, and a check of the stored counts of partitions."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from django.db.models import Count

from assets_app.models import Asset, AssetPartition, PartitionCount
from slicewise.partitions.rows import partition_rows
from tests.factories import definition_of


def counts_agree_with_partitions() -> bool:
    """Return whether the stored counts per asset, bucket and state agree with the partitions."""
    keys = ("asset", "identity", "bucket", "segment", "state")
    counted = {
        tuple(row[key] for key in keys): row["number"]
        for row in AssetPartition.objects.exclude(state="missing")
        .order_by()
        .values(*keys)
        .annotate(number=Count("pk"))
    }
    rolled_up = {
        tuple(row[key] for key in keys): row["count"]
        for row in PartitionCount.objects.exclude(count=0).values(*keys, "count")
    }
    return counted == rolled_up


def made(of: Asset, selection: str, *, version: int = 1, minute: int = 0) -> None:
    """Create partitions with data, whose settled state stays missing; ``minute`` orders the
    partitions by their last materialization.
    """
    rows = partition_rows(of.definition, definition_of(of).select(selection))
    instant = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
    AssetPartition.objects.bulk_create(
        AssetPartition(
            asset=of,
            identity=of.identity,
            key=row.key,
            window_start=row.start,
            window_end=row.end,
            segment=row.segment,
            bucket=row.bucket,
            version=version,
            materialized_at=instant if version else None,
        )
        for row in rows
    )


def record(
    asset: Asset, selection: str, state_of: Callable[[int], str] = lambda n: "materialized"
) -> int:
    """Put the selected partitions on record in the states that the function gives; how many."""
    rows = list(partition_rows(asset.definition, definition_of(asset).select(selection)))
    counts: Counter[tuple[date | None, str, str]] = Counter()
    partitions = []
    for place, row in enumerate(rows):
        state = state_of(place)
        counts[(row.bucket, row.segment, state)] += 1
        partitions.append(
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
    AssetPartition.objects.bulk_create(partitions, batch_size=5000)
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
