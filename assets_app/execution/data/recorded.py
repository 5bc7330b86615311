"""Records of the data of partitions that runs have published."""

from collections.abc import Iterable, Sequence

from django.db.models import F

from assets_app.models import Asset, Materialization, RunState
from slicewise.io.recorded import PartitionRecord


def records_of(asset: Asset, keys: Sequence[str]) -> dict[str, PartitionRecord]:
    """Return the records of the asset's partitions, by key: one statement.

    Left out are partitions without data, partitions that are being published, and partitions that
    another program has written, whose files need not lie as runs leave files.
    """
    latest = Materialization.objects.filter(
        slice__asset=asset,
        slice__identity=asset.identity,
        slice__key__in=keys,
        slice__version=F("version"),
        run__isnull=False,
    ).exclude(slice__held_by__state=RunState.PUBLISHING)
    rows: Iterable[tuple[str, int | None, int | None, str | None]] = latest.order_by().values_list(
        "slice__key", "rows", "bytes", "producer_version__definition__write_mode"
    )
    return {
        key: PartitionRecord(rows=count, bytes=size, is_least=write_mode == "append")
        for key, count, size, write_mode in rows
    }
