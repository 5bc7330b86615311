"""The facts of deliveries that the page of alerts shows: subjects of messages, and losses."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count
from django.db.models.fields.json import KT

from slicewise_server.alerts.models import Channel, Delivery, DeliveryState
from slicewise_server.events.models import Event

RECENT = timedelta(days=7)
"""How long the page counts a message that was given up."""
# A webhook has a delivery for each event: millions may be younger than seven days.
_MOST_COUNTED = 1_000


class MessageSubject(NamedTuple):
    """The last event of a message: its partitions, its run or backfill, and the number of earlier
    events. `partitions` is empty for an event without partitions.
    """

    partitions: str
    run_id: int | None
    backfill_id: int | None
    earlier_count: int


class GivenUp(NamedTuple):
    """A channel, and the number of its messages that were given up."""

    channel: Channel
    given_up_count: int


def subjects_of(deliveries: Sequence[Delivery]) -> dict[int, MessageSubject]:
    """Return the subjects of messages by the id of the delivery, without test messages and
    forgotten events: one statement.
    """
    positions = [delivery.last_position for delivery in deliveries if delivery.last_position]
    rows = Event.objects.filter(position__in=positions).values_list(
        *("position", KT("detail__selection"), KT("detail__partition"), "run_id", "backfill_id")
    )
    rows_by_position = {row[0]: row for row in rows}
    subjects = {}
    for delivery in deliveries:
        if row := rows_by_position.get(delivery.last_position):
            _, selection, partition, run_id, backfill_id = row
            subjects[delivery.pk] = MessageSubject(
                selection or partition or "", run_id, backfill_id, delivery.event_count - 1
            )
    return subjects


def with_given_up(channels: Iterable[Channel], now: datetime) -> list[GivenUp]:
    """Return each channel with the number of its recent messages that were given up, of the newest
    deliveries of all channels: one statement. Test messages do not count: nothing is lost.
    """
    newest = Delivery.objects.order_by("-id").values("pk")[:_MOST_COUNTED]
    lost = Delivery.objects.filter(
        pk__in=newest,
        state=DeliveryState.FAILED,
        created_at__gte=now - RECENT,
        first_position__isnull=False,
    )
    counts = dict(lost.order_by().values_list("channel").annotate(Count("pk")))
    return [GivenUp(channel, counts.get(channel.pk, 0)) for channel in channels]
