"""Versions of the status of assets, by which polled fragments tell whether anything changed."""

from collections.abc import Sequence
from datetime import datetime

from assets_app.queries.overview import AssetStatus
from assets_app.queries.ticks import LATE_AFTER
from slicewise_server.web.listing import version_of


def version_of_statuses(statuses: Sequence[AssetStatus], now: datetime, *more: object) -> str:
    """Return a digest of the values that pages show of the assets."""
    due_before = now - LATE_AFTER
    shown = [
        (
            status.asset.pk,
            status.asset.paused,
            status.counts,
            status.held,
            status.queued,
            status.expected,
            status.last_success,
            status.stale,
            status.late,
            status.warned,
            status.strip and [look.name for look in status.strip.looks],
            next_at := next_tick(status),
            next_at is not None and next_at < due_before,
        )
        for status in statuses
    ]
    return version_of((shown, more))


def next_tick(status: AssetStatus) -> datetime | None:
    """Return the next tick of the asset's schedule; None without a schedule, or in a pause."""
    return getattr(getattr(status.asset.producer, "schedule", None), "next_at", None)
