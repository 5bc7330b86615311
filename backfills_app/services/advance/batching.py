"""Batches of an asset's waiting partitions, and the split of a batch into runs."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from assets_app.execution.queue.waiting import waits_for_past
from assets_app.execution.request.requests import batches, partitions_per_run
from backfills_app.models import BackfillOrder, BackfillPartition
from backfills_app.services.partitions.stored import StoredScope
from slicewise.partitions import PartitionRow

# Rows that are read at a time, however many runs there is room for.
_MOST_ROWS = 20_000
_COLUMNS = (
    "pk", "rank", "position", "ready", "key", "window_start", "window_end", "segment", "bucket",
)  # fmt: skip


class WaitingRow(NamedTuple):
    """A waiting partition; ``is_ready`` says that no partition of the backfill blocks it."""

    pk: int
    rank: int
    position: int
    is_ready: bool
    partition: PartitionRow


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """A batch of the next waiting partitions, in order; ``is_last`` says that no waiting partition
    is left, ``is_long`` that the batch has the most rows that are read at a time.
    """

    rows: Sequence[WaitingRow]
    is_last: bool
    is_long: bool

    @property
    def ready(self) -> list[WaitingRow]:
        """The rows of partitions that are not blocked."""
        return [row for row in self.rows if row.is_ready]


def next_batch(scope: StoredScope, order: str, *, runs: int) -> WaitingBatch:
    """Return a batch with the partitions of the next ``runs`` runs.

    Blocked partitions are in the batch only where runs have several partitions, or come one after
    the other: a run starts only when all its partitions can be materialized, and before the
    partitions that come after it.
    """
    size = partitions_per_run(scope.strategy)
    waiting = BackfillPartition.objects.filter(backfill_asset=scope.row, state="waiting")
    if size is None:
        # One run has all partitions, and waits until the last one is ready.
        if scope.upstream_scopes and waiting.filter(ready=False).exists():
            return WaitingBatch((), is_last=True, is_long=True)
        return WaitingBatch(_read(waiting, order, None), is_last=True, is_long=True)
    # One row more shows that the last run is complete. Where partitions are blocked, ready
    # partitions may follow these.
    beyond = 0 if size == 1 else size if scope.upstream_scopes else 1
    most = min(runs * size, max(_MOST_ROWS, size)) + beyond
    is_long = runs * size >= _MOST_ROWS
    ready = _read(waiting.filter(ready=True), order, most)
    is_free = size == 1 and not waits_for_past(scope.version)
    if is_free or not scope.upstream_scopes or not ready:
        return WaitingBatch(ready, is_last=len(ready) < most, is_long=is_long)
    blocked = _read(waiting.filter(ready=False), order, most)
    sort_key = _sort_key(order)
    if size == 1:
        blocked = [row for row in blocked if sort_key(row) < sort_key(ready[-1])]
    rows = sorted([*ready, *blocked], key=sort_key)
    # Beyond the end of either list, rows of that list may lie between rows of the other list.
    ends = [sort_key(row_list[-1]) for row_list in (ready, blocked) if len(row_list) == most]
    if ends:
        rows = [row for row in rows if sort_key(row) <= min(ends)]
    return WaitingBatch(rows, is_last=not ends, is_long=is_long)


def split_into_runs(
    scope: StoredScope,
    batch: WaitingBatch,
    skipped_positions: Collection[int],
    *,
    order: str,
    allow_holes: bool,
) -> Iterator[list[WaitingRow]]:
    """Split a batch into runs, by time, without the skipped positions.

    A run of several partitions does not span a hole, in the selection or of skipped
    partitions, unless ``allow_holes`` is set. A last run that may still grow is not created yet,
    nor with ``depends_on_past`` a run that comes after a run which is not created yet.
    """
    rows = [row for row in batch.rows if row.position not in skipped_positions]
    size = partitions_per_run(scope.strategy)
    if size is None:
        if rows:
            yield sorted(rows, key=lambda row: row.position)
        return
    groups = _groups(scope, rows, allow_holes=allow_holes or size == 1)
    last = batch.rows[-1] if batch.rows and not batch.is_last else None
    is_in_order = waits_for_past(scope.version)
    blocked_segments: set[str] = set()
    for group in groups:
        for chunk in batches(group, size):
            may_grow = last is not None and chunk[-1] is last and len(chunk) < size
            segments = {row.partition.segment for row in chunk} if is_in_order else set()
            if (
                all(row.is_ready for row in chunk)
                and not may_grow
                and not segments & blocked_segments
            ):
                yield sorted(chunk, key=lambda row: row.position)
            else:
                blocked_segments |= segments


def _groups(
    scope: StoredScope, rows: Sequence[WaitingRow], *, allow_holes: bool
) -> Iterator[list[WaitingRow]]:
    holes = scope.positions.holes()
    group: list[WaitingRow] = []
    for row in rows:
        if group and (
            row.rank != group[-1].rank
            or (not allow_holes and _is_hole(holes, group[-1].position, row.position))
        ):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _is_hole(holes: Sequence[int], position: int, next_position: int) -> bool:
    """Return whether positions lie between two positions, or the selection left windows out between
    them.
    """
    low, high = sorted((position, next_position))
    return high - low > 1 or bisect_right(holes, low) != bisect_right(holes, high)


def _sort_key(order: str) -> Any:
    sign = -1 if order == BackfillOrder.NEWEST else 1
    return lambda row: (sign * row.rank, sign * row.position)


def _read(waiting: Any, order: str, most: int | None) -> list[WaitingRow]:
    by = ("-rank", "-position") if order == BackfillOrder.NEWEST else ("rank", "position")
    return [
        WaitingRow(pk, rank, position, ready, PartitionRow(*row))
        for pk, rank, position, ready, *row in waiting.order_by(*by).values_list(*_COLUMNS)[:most]
    ]
