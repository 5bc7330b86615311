"""The partitions of a backfill, a page at a time."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from assets_app.models import Run, SkipReason

if TYPE_CHECKING:
    from backfills_app.models import BackfillAsset


_COLUMNS = ("position", "key", "state", "run_id", "reason")


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition of a backfill, the state of its run if it has one, and the reason in words if
    it was skipped.
    """

    key: str
    state: str
    run_state: str | None
    because: str


@dataclass(frozen=True, slots=True)
class PartitionsPage:
    """The rows of a page in order, and the positions at which the previous and the next
    page begin.
    """

    rows: tuple[PartitionRow, ...]
    previous: int | None
    following: int | None


def partitions_from(asset_row: "BackfillAsset", first: int, size: int) -> PartitionsPage:
    """Return the page of partitions from a position on; not every position has a partition.

    The queries read two ranges of one index, however many partitions there are, and the runs of one
    page.
    """
    columns = asset_row.partitions.values_list(*_COLUMNS)
    rows = list(columns.filter(position__gte=first).order_by("position")[: size + 1])
    earlier = asset_row.partitions.filter(position__lt=first).order_by("-position")
    before = list(earlier.values_list("position", flat=True)[:size])
    return PartitionsPage(
        _with_run_states(rows[:size]),
        before[-1] if before else None,
        rows[size][0] if len(rows) > size else None,
    )


def partitions_at(
    asset_row: "BackfillAsset", ranges: Iterable[tuple[int, int]]
) -> tuple[PartitionRow, ...]:
    """Return the partitions at the positions of a page: two queries, by an index."""
    positions = [position for first, stop in ranges for position in range(first, stop)]
    if not positions:
        return ()
    rows = asset_row.partitions.filter(position__in=positions)
    return _with_run_states(list(rows.order_by("position").values_list(*_COLUMNS)))


def next_waiting_start(asset_row: "BackfillAsset", order: str) -> datetime | None:
    """Return the start of the next waiting partition in admission's order; None if no partition
    waits, or without windows.
    """
    waiting = asset_row.partitions.filter(state="waiting", ready=True)
    newest_first = order == "newest"
    order_by = ("-rank", "-position") if newest_first else ("rank", "position")
    return waiting.order_by(*order_by).values_list("window_start", flat=True).first()


def first_failed_start(asset_row: "BackfillAsset") -> datetime | None:
    """Return the start of the first failed partition; None without one, or without windows."""
    if not asset_row.failed:
        return None
    failed = asset_row.partitions.filter(state="failed").order_by("position")
    return failed.values_list("window_start", flat=True).first()


def _with_run_states(rows: list[Any]) -> tuple[PartitionRow, ...]:
    # A join would read all of a million runs first: the planner has no statistics of rows just
    # written.
    runs = Run.objects.filter(pk__in={row[3] for row in rows if row[3] is not None})
    run_states = dict(runs.values_list("pk", "state"))
    reasons = dict(SkipReason.choices)
    return tuple(
        PartitionRow(key, state, run_states.get(run_id), reasons.get(reason, ""))
        for _, key, state, run_id, reason in rows
    )
