"""Tasks of events."""

from time import monotonic

from celery import shared_task

from assets_app.execution.queue.coalescing import Coalesced
from assets_app.queries.clock import database_now
from slicewise_server.events.feed import Calm, forget_events, publish_events

_calm = Calm()


def _publish_events() -> None:
    now = database_now()
    publish_events(now, looks_for_workers=_calm.note(monotonic()))


_publish = Coalesced(_publish_events)


@shared_task(name="slicewise_server.events.tasks.publish")
def publish() -> None:
    """Give committed events their places in the feed."""
    _publish.request()


@shared_task(name="slicewise_server.events.tasks.forget")
def forget() -> None:
    """Delete events whose time to be kept has passed."""
    forget_events(database_now())
