"""The receiver of a signal, which writes events in the transaction of the sender."""

from typing import Any

from django.dispatch import receiver

from assets_app.signals import attempt_ended
from slicewise_server.lineage import outbox
from slicewise_server.lineage.client_settings import sends_events


@receiver(attempt_ended)
def receive_end(attempt_id: int, **_: Any) -> None:
    if sends_events():
        outbox.write_ends([attempt_id])
