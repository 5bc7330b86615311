"""Deletion of old rows: sent and refused events, received writes, and old edges."""

from datetime import datetime, timedelta

from django.conf import settings

from slicewise_server.lineage.models import (
    LineageEdge,
    LineageEvent,
    ReceivedWrite,
    TruncatedJob,
)
from slicewise_server.web.deletion import delete_oldest

# A job may run once a year.
_EDGES_KEPT = timedelta(days=400)
_AT_ONCE = 5_000


def forget_lineage(now: datetime) -> int:
    """Delete rows older than EVENT_DAYS, and old edges; return the number of deleted rows.

    Events that wait are kept, and so is the start of an attempt under way. Events that the receiver
    has refused for so long are deleted: each is sent again and again, and their number only grows.
    """
    before = now - timedelta(days=settings.EVENT_DAYS)
    sent = LineageEvent.objects.filter(sent_at__lt=before, is_open=False)
    refused = LineageEvent.objects.filter(
        sent_at__isnull=True, not_before__isnull=False, at__lt=before, is_open=False
    )
    return (
        delete_oldest(sent, _AT_ONCE)
        + delete_oldest(refused, _AT_ONCE)
        + delete_oldest(ReceivedWrite.objects.filter(received_at__lt=before), _AT_ONCE)
        + delete_oldest(LineageEdge.objects.filter(last_seen_at__lt=now - _EDGES_KEPT), _AT_ONCE)
        + delete_oldest(TruncatedJob.objects.filter(at__lt=now - _EDGES_KEPT), _AT_ONCE)
    )
