"""The partitions of a backfill, a page at a time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assets_app.models import Run, SkipReason

if TYPE_CHECKING:
    from backfills_app.models import BackfillAsset


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
    """Return the page of partitions from a position on; positions may have gaps.

    The queries read two ranges of one index, however many partitions there are, and the runs of one
    page.
    """
    columns = asset_row.partitions.values_list("position", "key", "state", "run_id", "reason")
    rows = list(columns.filter(position__gte=first).order_by("position")[: size + 1])
    # A join would read all of a million runs first: the planner has no statistics of rows just
    # written.
    runs = Run.objects.filter(pk__in={row[3] for row in rows if row[3] is not None})
    run_states = dict(runs.values_list("pk", "state"))
    earlier = asset_row.partitions.filter(position__lt=first).order_by("-position")
    before = list(earlier.values_list("position", flat=True)[:size])
    reasons = dict(SkipReason.choices)
    return PartitionsPage(
        tuple(
            PartitionRow(key, state, run_states.get(run_id), reasons.get(reason, ""))
            for _, key, state, run_id, reason in rows[:size]
        ),
        before[-1] if before else None,
        rows[size][0] if len(rows) > size else None,
    )


def interesting_position(asset_row: "BackfillAsset", order: str) -> int:
    """Return the position of the next waiting partition in admission's order; 0 if no partition
    waits.
    """
    waiting = asset_row.partitions.filter(state="waiting", ready=True)
    newest_first = order == "newest"
    order_by = ("-rank", "-position") if newest_first else ("rank", "position")
    first = waiting.order_by(*order_by).values_list("position", flat=True).first()
    return 0 if first is None else first
