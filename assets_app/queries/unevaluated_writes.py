"""Upstream writes that a schedule has not evaluated yet."""

from datetime import datetime

from django.db.models import Min, Q
from django.db.models.functions import Least

from assets_app.models import Outbox


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
