"""Recorded ticks of schedules, and left-out partitions, for pages, API and commands."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet

from assets_app.models import Asset, LeftOut, Schedule, ScheduleTick

# The first page shows left-out partitions for so long.
_NEWS = timedelta(days=7)


def ticks_of(schedule: Schedule) -> QuerySet[ScheduleTick]:
    """Select the ticks of a schedule, newest first."""
    return ScheduleTick.objects.filter(schedule=schedule).order_by("-at", "-id")


def left_out_of(asset: Asset, most: int = 20) -> list[LeftOut]:
    """Return the due partitions of the asset that were not queued, the latest first."""
    return list(LeftOut.objects.filter(asset=asset)[:most])


def left_out_lately(now: datetime, most: int = 10) -> Sequence[LeftOut]:
    """Return the due partitions of all declared assets that were not queued in the last days."""
    lately = LeftOut.objects.filter(at__gt=now - _NEWS, asset__active=True)
    return list(lately.select_related("asset")[:most])
