"""Whose turn it is: the next waiting partitions of an asset, and how they are cut into runs."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from assets_app.execution.requests import batches, partitions_per_run
from assets_app.execution.waiting import waits_for_past
from backfills_app.models import BackfillOrder, BackfillPartition
from backfills_app.services.stored import StoredPart
from slicewise.rows import PartitionRow

# However many runs there is room for: rows that are read at a time.
_MOST_ROWS = 20_000
_COLUMNS = (
    "pk", "rank", "position", "ready", "key", "window_start", "window_end", "segment", "bucket",
)  # fmt: skip


class WaitingRow(NamedTuple):
    """A waiting partition, and whether nothing of its backfill holds it up."""

    pk: int
    rank: int
    position: int
    is_ready: bool
    partition: PartitionRow


@dataclass(frozen=True, slots=True)
class Turn:
    """The next waiting partitions, in their order; all of them if it ``is_last``.

    ``is_long`` says that no more are looked at at a time.
    """

    rows: Sequence[WaitingRow]
    is_last: bool
    is_long: bool

    @property
    def ready(self) -> list[WaitingRow]:
        """Those that nothing holds up."""
        return [row for row in self.rows if row.is_ready]


def next_turn(part: StoredPart, order: str, *, runs: int) -> Turn:
    """Return the partitions of the next so many runs.

    Blocked partitions are among them only where runs have several partitions, or come one after the
    other: a run starts only when all its partitions can be made, and before the partitions that
    come after it.
    """
    size = partitions_per_run(part.strategy)
    waiting = BackfillPartition.objects.filter(backfill_asset=part.row, state="waiting")
    if size is None:
        # One run for all: it waits for the last one.
        if part.upstream_parts and waiting.filter(ready=False).exists():
            return Turn((), is_last=True, is_long=True)
        return Turn(_read(waiting, order, None), is_last=True, is_long=True)
    # One more says that the last run is whole. Where some are held up, others may follow them.
    beyond = 0 if size == 1 else size if part.upstream_parts else 1
    most = min(runs * size, max(_MOST_ROWS, size)) + beyond
    is_long = runs * size >= _MOST_ROWS
    ready = _read(waiting.filter(ready=True), order, most)
    is_free = size == 1 and not waits_for_past(part.version)
    if is_free or not part.upstream_parts or not ready:
        return Turn(ready, is_last=len(ready) < most, is_long=is_long)
    held_up = _read(waiting.filter(ready=False), order, most)
    place = _place(order)
    if size == 1:
        held_up = [row for row in held_up if place(row) < place(ready[-1])]
    rows = sorted([*ready, *held_up], key=place)
    # What lies beyond the end of either list may have others between.
    ends = [place(some[-1]) for some in (ready, held_up) if len(some) == most]
    if ends:
        rows = [row for row in rows if place(row) <= min(ends)]
    return Turn(rows, is_last=not ends, is_long=is_long)


def chunks(
    part: StoredPart, turn: Turn, left_out: Collection[int], *, order: str, allow_holes: bool
) -> Iterator[list[WaitingRow]]:
    """Split partitions into runs, by time, without the positions that are left out.

    A run of several partitions does not reach over a hole, in the selection or of left-out
    partitions, unless ``allow_holes`` is set. A last run that may still grow is not made yet, and
    with ``depends_on_past`` no run that comes after a run which is not made yet.
    """
    rows = [row for row in turn.rows if row.position not in left_out]
    size = partitions_per_run(part.strategy)
    if size is None:
        if rows:
            yield sorted(rows, key=lambda row: row.position)
        return
    groups = _groups(part, rows, allow_holes=allow_holes or size == 1)
    last = turn.rows[-1] if turn.rows and not turn.is_last else None
    is_in_order = waits_for_past(part.version)
    held_up: set[str] = set()
    for group in groups:
        for chunk in batches(group, size):
            may_grow = last is not None and chunk[-1] is last and len(chunk) < size
            segments = {row.partition.segment for row in chunk} if is_in_order else set()
            if all(row.is_ready for row in chunk) and not may_grow and not segments & held_up:
                yield sorted(chunk, key=lambda row: row.position)
            else:
                held_up |= segments


def _groups(
    part: StoredPart, rows: Sequence[WaitingRow], *, allow_holes: bool
) -> Iterator[list[WaitingRow]]:
    holes = part.places.holes()
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


def _is_hole(holes: Sequence[int], one: int, other: int) -> bool:
    """Whether something lies between two places, or was left out there by the selection."""
    low, high = sorted((one, other))
    return high - low > 1 or bisect_right(holes, low) != bisect_right(holes, high)


def _place(order: str) -> Any:
    sign = -1 if order == BackfillOrder.NEWEST else 1
    return lambda row: (sign * row.rank, sign * row.position)


def _read(waiting: Any, order: str, most: int | None) -> list[WaitingRow]:
    by = ("-rank", "-position") if order == BackfillOrder.NEWEST else ("rank", "position")
    return [
        WaitingRow(pk, rank, position, ready, PartitionRow(*row))
        for pk, rank, position, ready, *row in waiting.order_by(*by).values_list(*_COLUMNS)[:most]
    ]
