"""The channels whose last try has failed, with the messages that wait for these channels."""

from datetime import datetime
from typing import NamedTuple

from django.db import connection

MOST_COUNTED = 1_000
"""The number of waiting messages up to which the messages of a channel are counted."""
# The overview asks every few seconds, and a webhook has a message for each event: millions may
# wait. The index `delivery_to_send` has the waiting messages of a channel in the order of the next
# try.
_FAILING = """
SELECT channel.name, channel.error, least(waiting.number, %(counted)s), waiting.since,
       waiting.number > %(counted)s
FROM (
    SELECT id, name, error FROM alerts_channel
    WHERE active AND failures > 0 ORDER BY name LIMIT %(channels)s
) AS channel
CROSS JOIN LATERAL (
    SELECT count(*) AS number, min(created_at) AS since
    FROM (
        SELECT created_at FROM alerts_delivery
        WHERE channel_id = channel.id AND state = 'waiting'
        ORDER BY send_at LIMIT %(counted)s + 1
    ) AS next_messages
) AS waiting
ORDER BY channel.name
"""


class FailingChannel(NamedTuple):
    """A channel whose last try has failed; the number of messages that wait, and the creation of
    the oldest. If more messages wait than are counted, an older message may wait too: a message
    that was tried is behind others.
    """

    name: str
    error: str
    waiting_count: int
    waiting_since: datetime | None
    more_waiting: bool


def failing_channels(most: int) -> list[FailingChannel]:
    """Return the first failing channels by name, without paused ones: one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_FAILING, {"channels": most, "counted": MOST_COUNTED})
        return [FailingChannel(*row) for row in cursor.fetchall()]
