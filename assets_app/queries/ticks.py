"""Recorded ticks of schedules, and what upstream writes left out, as all doors read them."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet

from assets_app.models import Asset, LeftOut, Schedule, ScheduleTick

# On the first page what was left out is news for so long.
_NEWS = timedelta(days=7)


def ticks_of(schedule: Schedule) -> QuerySet[ScheduleTick]:
    """Newest first."""
    return ScheduleTick.objects.filter(schedule=schedule).order_by("-at", "-id")


def left_out_of(asset: Asset, most: int = 20) -> list[LeftOut]:
    """What upstream writes made due of the asset and did not queue, the latest first."""
    return list(LeftOut.objects.filter(asset=asset)[:most])


def left_out_lately(now: datetime, most: int = 10) -> Sequence[LeftOut]:
    """The same of all declared assets, of the last days."""
    lately = LeftOut.objects.filter(at__gt=now - _NEWS, asset__active=True)
    return list(lately.select_related("asset")[:most])
