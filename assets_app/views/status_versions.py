"""Versions of the status of assets, by which polled fragments tell whether anything changed."""

from collections.abc import Sequence
from datetime import datetime

from assets_app.models import Schedule
from assets_app.queries.overview import AssetStatus
from assets_app.queries.ticks import is_tick_overdue
from slicewise_server.web.listing import version_of


def version_of_statuses(statuses: Sequence[AssetStatus], now: datetime, *more: object) -> str:
    """Return a digest of the values that pages show of the assets."""
    shown = [
        (
            status.asset.pk,
            status.asset.paused,
            status.counts,
            status.held,
            status.queued,
            status.retried,
            status.expected,
            status.last_success,
            status.stale,
            status.late,
            status.warned,
            status.strip and [look.name for look in status.strip.looks],
            next_at := next_tick(status),
            is_tick_overdue(next_at, now),
        )
        for status in statuses
    ]
    return version_of((shown, more))


def next_tick(status: AssetStatus) -> datetime | None:
    """Return the next tick of the asset's schedule; None without a schedule, or in a pause."""
    return None if (row := Schedule.of(status.asset)) is None else row.next_at
