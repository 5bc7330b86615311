"""Tasks of alerts."""

from datetime import timedelta

from celery import shared_task
from django.conf import settings

from assets_app.execution.queue.coalescing import Coalesced
from assets_app.queries.clock import database_now
from slicewise_server.alerts.declared_rules import SyncFollower
from slicewise_server.alerts.delivering import forget_deliveries, send_due
from slicewise_server.alerts.matching import match_events

_follower = SyncFollower()


def _match_and_send() -> None:
    match_events(database_now())
    _follower.look()
    send_due()


_deliver = Coalesced(_match_and_send)


@shared_task(name="slicewise_server.alerts.tasks.deliver")
def deliver() -> None:
    """Write deliveries for new events, and send the deliveries that are due."""
    _deliver.request()


@shared_task(name="slicewise_server.alerts.tasks.forget")
def forget() -> None:
    """Delete deliveries that ended longer ago than events are kept."""
    forget_deliveries(database_now() - timedelta(days=settings.EVENT_DAYS))
