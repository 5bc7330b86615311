"""Tasks of events."""

from celery import shared_task

from assets_app.execution.queue.coalescing import Coalesced
from assets_app.queries.clock import database_now
from slicewise_server.events.feed import forget_events, publish_events

_publish = Coalesced(publish_events)


@shared_task(name="slicewise_server.events.tasks.publish")
def publish() -> None:
    """Give committed events their places in the feed."""
    _publish.request(database_now())


@shared_task(name="slicewise_server.events.tasks.forget")
def forget() -> None:
    """Delete events whose time to be kept has passed."""
    forget_events(database_now())
