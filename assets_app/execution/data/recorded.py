"""Records of the data of partitions that runs have published."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import F

from assets_app.models import Asset, Materialization, RunState
from slicewise.io import Measured, PartitionRecord

Totals = Mapping[int, Mapping[str, Measured]]
"""The measures of whole partitions after an addition, by the id of the asset and by path."""

# The run that holds the partitions has just recorded them: no other statement reads these rows yet.
_RECORD_TOTALS = """
UPDATE assets_app_materialization AS record
SET total_files = total.files, total_rows = total.rows, total_bytes = total.bytes
FROM unnest(%(paths)s::text[], %(files)s::bigint[], %(rows)s::bigint[], %(bytes)s::bigint[])
         AS total(path, files, rows, bytes),
     assets_app_runpartition AS run_partition, assets_app_assetpartition AS partition
WHERE run_partition.run_id = %(run)s AND run_partition.path = total.path
  AND partition.id = run_partition.partition_id
  AND partition.asset_id = %(asset)s
  AND record.run_id = run_partition.run_id AND record.partition_id = run_partition.partition_id
  AND record.version = partition.version
"""


class _Recorded(NamedTuple):
    key: str
    rows: int | None
    bytes: int | None
    total_files: int | None
    total_rows: int | None
    total_bytes: int | None
    write_mode: str | None

    @property
    def has_totals(self) -> bool:
        totals = (self.total_files, self.total_rows, self.total_bytes)
        return any(total is not None for total in totals)


def record_totals(run_id: int, totals: Totals) -> None:
    """Add the measures of whole partitions to the records that the run has just written; the caller
    provides the transaction.
    """
    for asset_id, sizes in totals.items():
        measures = list(sizes.values())
        parameters: dict[str, Any] = {
            "paths": list(sizes),
            "files": [measure.files for measure in measures],
            "rows": [measure.rows for measure in measures],
            "bytes": [measure.bytes for measure in measures],
            "run": run_id,
            "asset": asset_id,
        }
        with connection.cursor() as cursor:
            cursor.execute(_RECORD_TOTALS, parameters)


def records_of(asset: Asset, keys: Sequence[str]) -> dict[str, PartitionRecord]:
    """Return the records of the asset's partitions, by key: one statement, two for appended data.

    Left out are partitions without data, partitions that are being published, and partitions that
    another program has written, whose files need not lie as runs leave files.
    """
    latest = Materialization.objects.filter(
        partition__asset=asset,
        partition__identity=asset.identity,
        partition__key__in=keys,
        partition__version=F("version"),
        run__isnull=False,
    ).exclude(partition__held_by__state=RunState.PUBLISHING)
    columns = (
        *("partition__key", "rows", "bytes", "total_files", "total_rows", "total_bytes"),
        "producer_version__definition__write_mode",
    )
    rows: Iterable[tuple[object, ...]] = latest.order_by().values_list(*columns)
    recorded = [_Recorded._make(row) for row in rows]
    is_shared = any(record.has_totals for record in recorded) and _is_shared(asset)
    return {record.key: _partition_record(record, is_shared=is_shared) for record in recorded}


def _partition_record(record: _Recorded, *, is_shared: bool) -> PartitionRecord:
    if record.write_mode != "append":
        return PartitionRecord(rows=record.rows, bytes=record.bytes)
    if not record.has_totals:
        # Of an earlier release, or of data that could not be measured: the rows appended last.
        return PartitionRecord(rows=record.rows, bytes=record.bytes, is_least=True)
    return PartitionRecord(
        rows=record.total_rows,
        bytes=record.total_bytes,
        files=record.total_files,
        is_least=is_shared,
    )


def _is_shared(asset: Asset) -> bool:
    """Return whether another asset has the same location, and may have appended since."""
    namesakes = Asset.objects.filter(canonical_uri=asset.canonical_uri).exclude(pk=asset.pk)
    return namesakes.exists()
