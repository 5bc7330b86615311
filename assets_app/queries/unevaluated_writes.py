"""Upstream writes and marked partitions that a schedule has yet to evaluate."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import F, Min, Q, QuerySet
from django.db.models.functions import Least

from assets_app.models import AssetPartition, Outbox

_MOST_MARKED = 1_000
"""The number of marked partitions that a pause records."""


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


def marked_partitions(producer_id: int) -> dict[str, Any]:
    """Return the partitions that are marked to be examined again, of all assets of a producer:
    ``ids`` of those that a run holds, then of the first ones by the time of the examination;
    ``is_cut`` says whether further partitions are marked. Empty without such partitions.
    """
    marked = AssetPartition.objects.filter(asset__producer=producer_id, due_again=True)
    # Held partitions and free partitions have an index each.
    held_rows = marked.filter(held_by__isnull=False).order_by("-window_start", "-id")
    free_rows = marked.filter(held_by__isnull=True)
    free_rows = free_rows.order_by(F("due_at").asc(nulls_first=True), "id")
    ids = [
        pk
        for rows in (held_rows, free_rows)
        for pk in rows.values_list("id", flat=True)[: _MOST_MARKED + 1]
    ]
    return {"ids": ids[:_MOST_MARKED], "is_cut": len(ids) > _MOST_MARKED} if ids else {}


def no_longer_marked(recorded: Mapping[str, Any]) -> QuerySet[AssetPartition]:
    """Select those of the recorded partitions that are no longer marked."""
    return AssetPartition.objects.filter(pk__in=recorded.get("ids", ()), due_again=False)


def without_marked(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded partitions without those that are still marked."""
    if not recorded:
        return {}
    return {**recorded, "ids": list(no_longer_marked(recorded).values_list("pk", flat=True))}
