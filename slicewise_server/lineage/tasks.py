"""Tasks of lineage."""

from celery import shared_task

from assets_app.execution.queue.coalescing import Coalesced
from assets_app.queries.clock import database_now
from slicewise_server.lineage.client_settings import sends_events
from slicewise_server.lineage.forgetting_lineage import forget_lineage


def _send_due() -> None:
    if sends_events():
        from slicewise_server.lineage.posting import send_due

        send_due()


_send = Coalesced(_send_due)


@shared_task(name="slicewise_server.lineage.tasks.send")
def send() -> None:
    """Send the events that wait."""
    _send.request()


@shared_task(name="slicewise_server.lineage.tasks.forget")
def forget() -> None:
    """Delete events, writes and edges whose time to be kept has passed."""
    forget_lineage(database_now())
