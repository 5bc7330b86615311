"""The partitions of a backfill, a page at a time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assets_app.models import Run, SkipReason

if TYPE_CHECKING:
    from backfills_app.models import BackfillAsset


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition of a backfill, the state of its run if it has one, and why it was skipped, in
    words, if it was.
    """

    key: str
    state: str
    run_state: str | None
    because: str


@dataclass(frozen=True, slots=True)
class PartitionsPage:
    """A stretch of partitions in their order, and where those before and after it begin."""

    rows: tuple[PartitionRow, ...]
    previous: int | None
    following: int | None


def partitions_from(part: "BackfillAsset", first: int, size: int) -> PartitionsPage:
    """Return the next partitions from that position on; positions leave gaps. Two stretches of one
    index are read, however many partitions there are, and the runs of one page.
    """
    named = part.partitions.values_list("position", "key", "state", "run_id", "reason")
    rows = list(named.filter(position__gte=first).order_by("position")[: size + 1])
    # Joined, all of a million are read first: the planner knows nothing of what was just written.
    runs = Run.objects.filter(pk__in={row[3] for row in rows if row[3] is not None})
    run_states = dict(runs.values_list("pk", "state"))
    earlier = part.partitions.filter(position__lt=first).order_by("-position")
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


def interesting_position(part: "BackfillAsset", order: str) -> int:
    """Return the position of the next waiting partition in admission's order; else the first."""
    waiting = part.partitions.filter(state="waiting", ready=True)
    newest_first = order == "newest"
    order_by = ("-rank", "-position") if newest_first else ("rank", "position")
    first = waiting.order_by(*order_by).values_list("position", flat=True).first()
    return 0 if first is None else first
