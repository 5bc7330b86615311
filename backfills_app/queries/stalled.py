"""Backfills whose work fails again and again, for the overview."""

from datetime import datetime
from typing import NamedTuple

from backfills_app.models import ENDED_STATES, Backfill


class StalledBackfill(NamedTuple):
    """A backfill that has not ended, and the error that stops the backfill."""

    pk: int
    name: str
    error: str
    since: datetime


def stalled_backfills(most: int) -> list[StalledBackfill]:
    """Return the stalled backfills, the longest stalled first: one statement.

    The errors may contain secrets.
    """
    stalled = Backfill.objects.filter(deleted=False, stalled_since__isnull=False)
    rows = stalled.exclude(state__in=ENDED_STATES).order_by("stalled_since", "pk")
    columns = rows.values_list("pk", "name", "stalled_error", "stalled_since")
    return [
        StalledBackfill(pk, name, error, since)
        for pk, name, error, since in columns[:most]
        if since is not None
    ]
