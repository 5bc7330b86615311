"""The feed: positions for committed events, and the events after a position."""

import math
from collections.abc import Collection
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max, Q, QuerySet

from assets_app.models.gateways import GATEWAY_SILENCE
from slicewise_server.events.models import Event
from slicewise_server.events.reported_failures import forget_failures
from slicewise_server.web.advisory_locks import (
    AdvisoryLock,
    lock_until_commit,
    try_lock_until_commit,
)
from slicewise_server.web.deletion import delete_oldest

_AT_ONCE = 5_000
_DELETED_AT_ONCE = 5_000
# A worker that fell silent longer ago is old news, such as after the first start with events.
_NEWS = timedelta(hours=1)
_BREAK_SECONDS, _CALM_SECONDS = 5.0, 20.0

_POSITIONS = """
WITH fresh AS (
    SELECT id, row_number() OVER (ORDER BY id) AS place FROM (
        SELECT id FROM events_event WHERE position IS NULL ORDER BY id LIMIT %s
    ) AS next
), last AS (SELECT coalesce(max(position), 0) AS position FROM events_event)
UPDATE events_event AS event SET position = last.position + fresh.place
FROM fresh, last WHERE event.id = fresh.id
"""
_LOST_WORKERS = """
INSERT INTO events_event (kind, worker, detail)
SELECT 'worker_lost', gateway.name, jsonb_build_object(
    'host', gateway.host, 'queue', gateway.queue, 'last_seen', gateway.last_seen)
FROM assets_app_gateway AS gateway
WHERE NOT gateway.draining AND gateway.last_seen < %(silent)s AND gateway.last_seen > %(news)s
  AND NOT EXISTS (
    SELECT FROM events_event AS event
    WHERE event.kind = 'worker_lost' AND event.worker = gateway.name
      AND event.at > gateway.last_seen
  )
"""


class Calm:
    """Whether this process has reached the database for a while without a break.

    After a break the heartbeats of all workers are old, until each worker has written again.
    """

    def __init__(self) -> None:
        self._since = self._last = -math.inf

    def note(self, seconds: float) -> bool:
        """Note a call at this time of a clock that is never set; return whether all was calm."""
        if seconds - self._last > _BREAK_SECONDS:
            self._since = seconds
        self._last = seconds
        return seconds - self._since >= _CALM_SECONDS


def publish_events(now: datetime, *, looks_for_workers: bool = True) -> int:
    """Look for lost workers, and give positions to committed events; return their number."""
    with transaction.atomic():
        if not try_lock_until_commit(AdvisoryLock.EVENTS):
            return 0
        with connection.cursor() as cursor:
            if looks_for_workers:
                bounds = {"silent": now - GATEWAY_SILENCE, "news": now - _NEWS}
                cursor.execute(_LOST_WORKERS, bounds)
            cursor.execute(_POSITIONS, [_AT_ONCE])
            count: int = cursor.rowcount
            return count


def publish_first(count: int) -> None:
    """Give positions to so many committed events, the earliest first, for a transaction that has to
    see all events until now; wait for another transaction that gives positions.

    Until the transaction ends, no other transaction gives positions.
    """
    lock_until_commit(AdvisoryLock.EVENTS)
    with connection.cursor() as cursor:
        cursor.execute(_POSITIONS, [count])


def events_after(
    position: int, *, kinds: Collection[str] = (), assets: Collection[str] = ()
) -> QuerySet[Event]:
    """Return the events of the feed after a position, the earliest first."""
    events = Event.objects.filter(position__gt=position).order_by("position")
    if kinds:
        events = events.filter(kind__in=kinds)
    if not assets:
        return events
    # Events of backfills, and of functions that make several assets, list their assets.
    is_listed = Q(detail__has_key="assets", detail__assets__has_any_keys=list(assets))
    return events.filter(Q(asset__in=assets) | is_listed)


def end_of_feed() -> int:
    """Return the position of the newest event in the feed; 0 for an empty feed."""
    newest: int | None = Event.objects.aggregate(newest=Max("position"))["newest"]
    return newest or 0


def forget_events(now: datetime) -> int:
    """Delete events that are older than EVENT_DAYS, and failures without an end; return the number
    of deleted rows.

    The newest event stays, so that no position is given out twice.
    """
    before = now - timedelta(days=settings.EVENT_DAYS)
    too_old = Event.objects.filter(at__lt=before, position__lt=end_of_feed())
    return delete_oldest(too_old, _DELETED_AT_ONCE) + forget_failures(before)
