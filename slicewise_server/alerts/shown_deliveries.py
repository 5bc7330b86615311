"""The facts of deliveries that the page of alerts shows: subjects of messages, and losses."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import connection
from django.db.models.fields.json import KT

from slicewise_server.alerts.models import Channel, Delivery
from slicewise_server.events.models import Event

RECENT = timedelta(days=7)
"""How long the page counts a message that was given up."""
MOST_COUNTED = 1_000
"""The number of messages up to which the messages of a channel that were given up are counted."""
# A webhook has a delivery for each event: a day without a receiver may lose a million. The index
# `delivery_given_up` has these deliveries of a channel in the order of time.
_GIVEN_UP = """
SELECT channel.id, least(lost.number, %(counted)s), lost.number > %(counted)s
FROM alerts_channel AS channel
CROSS JOIN LATERAL (
    SELECT count(*) AS number
    FROM (
        SELECT FROM alerts_delivery
        WHERE channel_id = channel.id AND state = 'failed' AND first_position IS NOT NULL
          AND created_at >= %(since)s
        LIMIT %(counted)s + 1
    ) AS recent_messages
) AS lost
WHERE lost.number > 0
"""


class MessageSubject(NamedTuple):
    """The last event of a message: its partitions, its run or backfill, and the number of earlier
    events. `partitions` is empty for an event without partitions.
    """

    partitions: str
    run_id: int | None
    backfill_id: int | None
    earlier_count: int


class GivenUp(NamedTuple):
    """A channel, the number of its messages that were given up, and whether more than the counted
    ones were.
    """

    channel: Channel
    given_up_count: int = 0
    more_given_up: bool = False


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
    """Return each channel with the number of its recent messages that were given up: one statement.
    Test messages do not count: nothing is lost.
    """
    with connection.cursor() as cursor:
        cursor.execute(_GIVEN_UP, {"counted": MOST_COUNTED, "since": now - RECENT})
        counts = {channel_id: (number, is_more) for channel_id, number, is_more in cursor}
    return [GivenUp(channel, *counts.get(channel.pk, ())) for channel in channels]
