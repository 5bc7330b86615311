"""Recorded ticks of schedules, as pages, commands and the API read them."""

from django.db.models import OuterRef, QuerySet, Subquery

from assets_app.models import Schedule, ScheduleTick


def ticks_of(schedule: Schedule) -> QuerySet[ScheduleTick]:
    """Newest first, each with ``until``: when the tick after it was, and None for the last.

    A tick's runs are those that were made from then on and before the next one.
    """
    later = ScheduleTick.objects.filter(schedule=OuterRef("schedule"), at__gt=OuterRef("at"))
    ticks = ScheduleTick.objects.filter(schedule=schedule)
    return ticks.annotate(until=Subquery(later.order_by("at").values("at")[:1])).order_by(
        "-at", "-id"
    )
