"""Upstream writes and marked partitions that a schedule has yet to evaluate."""

from datetime import datetime

from django.db.models import Min, Q
from django.db.models.functions import Least

from assets_app.models import FRESH_AGAIN, AssetPartition, Outbox

# One more than the list of missed partitions examines, so that the list is known to be incomplete.
_MOST_PARTITIONS = 1_001


def oldest_unevaluated(schedule_id: int | None) -> datetime | None:
    """Return when the oldest write was recorded that a schedule still has to evaluate; None without
    such a write, and for a schedule that is not stored yet. The call reads the outbox, and no
    history.

    An entry that cannot be read is left out: such an entry stays in the outbox for as long as the
    error lasts, and would be the oldest write of each schedule.
    """
    if schedule_id is None:
        return None
    entries = Outbox.objects.filter(Q(schedule=None, failures=0) | Q(schedule=schedule_id))
    # An entry that is kept for a failing schedule is newer than the write, and an entry of a run
    # that recorded some partitions early is older than the end of the run.
    recorded_at = Least("created_at", "run__ended_at", "report__created_at")
    oldest: datetime | None = entries.aggregate(oldest=Min(recorded_at))["oldest"]
    return oldest


def partitions_to_examine(producer_id: int) -> list[int]:
    """Return the ids of partitions that are marked to be examined after a run, at the end of a
    window or after a failure, of all assets of a producer: the newest windows.
    """
    marked = AssetPartition.objects.filter(asset__producer=producer_id, due_again=True)
    rows = marked.filter(Q(due_at=None) | Q(due_at__lt=FRESH_AGAIN)).order_by("-window_start", "id")
    # Held partitions and free partitions have an index each.
    held_rows, free_rows = rows.filter(held_by__isnull=False), rows.filter(held_by__isnull=True)
    return [
        *held_rows.values_list("id", flat=True)[:_MOST_PARTITIONS],
        *free_rows.values_list("id", flat=True)[:_MOST_PARTITIONS],
    ]
