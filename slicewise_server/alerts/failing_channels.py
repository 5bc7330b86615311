"""The channels whose last try has failed, with the messages that wait for these channels."""

from datetime import datetime
from typing import NamedTuple

from django.db.models import Count, Min, Q

from slicewise_server.alerts.models import Channel, DeliveryState


class FailingChannel(NamedTuple):
    """A channel whose last try has failed; the number of messages that wait, and the creation of
    the oldest.
    """

    name: str
    error: str
    waiting_count: int
    waiting_since: datetime | None


def failing_channels(most: int) -> list[FailingChannel]:
    """Return the first failing channels by name, without paused ones: one statement."""
    is_waiting = Q(deliveries__state=DeliveryState.WAITING)
    failing = Channel.objects.filter(active=True, failures__gt=0).order_by("name")
    rows = failing.values_list("name", "error").annotate(
        waiting_count=Count("deliveries", filter=is_waiting),
        waiting_since=Min("deliveries__created_at", filter=is_waiting),
    )
    return [FailingChannel(*row) for row in rows[:most]]
