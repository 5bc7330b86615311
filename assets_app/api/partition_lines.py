"""The lines of a list of partitions: keys come from the definition, states from rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from assets_app.models import Asset, AssetPartition
from assets_app.queries.late_inputs import LateInputFact
from partitions_app.labels import label_of
from partitions_app.state_badges import waits_for_slot
from slicewise import PartitionSet
from slicewise.partitions import PartitionRow, partition_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLine:
    """A partition as a line of a list."""

    key: str
    label: str
    start: datetime | None
    end: datetime | None
    segment: str
    state: str
    version: int = 0
    run: int | None = None
    rows: int | None = None
    bytes: int | None = None
    materialized_at: datetime | None = None
    stale: bool = False
    reason: str = ""
    # "late" or "overdue", and since or from when the partition is overdue.
    lateness: str = ""
    overdue_at: datetime | None = None
    late_inputs: Sequence[LateInputFact] = ()


def lines_of(asset: Asset, keys: Sequence[Any]) -> Iterator[PartitionLine]:
    """Return the lines of these keys, with or without a record: one statement."""
    key_rows = list(partition_rows(asset.definition, PartitionSet.of(asset.definition, keys)))
    rows_by_key = {
        row.key: row for row in rows_of(asset).filter(key__in=[row.key for row in key_rows])
    }
    for row in key_rows:
        yield _line(asset, row, rows_by_key.get(row.key))


def _line(asset: Asset, key: PartitionRow, row: AssetPartition | None) -> PartitionLine:
    if row is None:
        return PartitionLine(
            key=key.key,
            label=label_of(asset.definition, key.key),
            start=key.start,
            end=key.end,
            segment=key.segment,
            state="missing",
        )
    return line_of_row(asset, row)


def line_of_row(asset: Asset, row: AssetPartition) -> PartitionLine:
    """Return the line of a partition on record."""
    return PartitionLine(
        key=row.key,
        label=label_of(asset.definition, row.key),
        start=row.window_start,
        end=row.window_end,
        segment=row.segment,
        state=_state(row),
        version=row.version,
        run=row.held_by_id or row.last_run_id,
        rows=row.rows,
        bytes=row.bytes,
        materialized_at=row.materialized_at,
    )


def _state(row: AssetPartition) -> str:
    if row.held_by is None:
        return row.state
    return "queued" if waits_for_slot(row.held_by.state) else "running"


def rows_of(asset: Asset) -> QuerySet[AssetPartition]:
    """Select the partitions on record under the present definition."""
    rows = AssetPartition.objects.filter(asset=asset, identity=asset.identity)
    return rows.select_related("held_by")
