"""Pauses of backfills: the person who paused a backfill, and the time, from the audit trail."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from accounts_app.models import AuditEntry
from backfills_app.models import Backfill


@dataclass(frozen=True, slots=True)
class Pause:
    """The present pause of a backfill; the name of the person outlives the account."""

    paused_by: str
    paused_at: datetime


def pauses_of(backfills: Iterable[Backfill]) -> dict[int, Pause]:
    """Return the present pauses by backfill id: one statement, none if no backfill is paused.

    The audit entry is written in the transaction of the pause, and is never changed or deleted.
    """
    ids = {backfill.name: backfill.pk for backfill in backfills if _is_paused(backfill)}
    if not ids:
        return {}
    entries = AuditEntry.objects.filter(
        subject_type="backfill", subject__in=list(ids), action="pause"
    )
    latest = entries.order_by("subject", "-id").distinct("subject")
    rows = latest.values_list("subject", "actor_name", "at")
    return {ids[name]: Pause(actor_name, paused_at) for name, actor_name, paused_at in rows}


def _is_paused(backfill: Backfill) -> bool:
    return backfill.paused and not backfill.ended
