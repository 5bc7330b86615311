"""OpenLineage's client of this process, by which events are sent one after the other."""

import os
import time
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import RunEvent
from openlineage.client.transport.http import HttpTransport

from slicewise_server.alerts.stragglers import result_within
from slicewise_server.lineage.event_session import EventSession
from slicewise_server.lineage.transport_settings import transport_problem

# The client tries some times by itself, with a limit of time for each try.
_DEADLINE_SECONDS = 60.0
# Sent events are recorded after this time: a worker that dies meanwhile leaves these events to be
# sent again.
_TURN_SECONDS = 0.2
# No channel of alerts has this id: work of this room is distinguished from theirs.
_STRAGGLER = 0


class TransportIncomplete(Exception):
    """Settings of the client with which no event reaches a receiver; the message is for people."""


class Emission(NamedTuple):
    """The number of events that the receiver has taken, and the failure of the next event."""

    sent_count: int
    error: Exception | None


def emit(events: Sequence[RunEvent]) -> Emission:
    """Send events in order for some tenths of a second, or until the first failure.

    At least one event is tried. The failure is any exception of a transport.
    """
    sent_count = 0

    # A thread for each event would take longer than the event.
    def send() -> None:
        nonlocal sent_count
        ends_at = time.monotonic() + _TURN_SECONDS
        for event in events:
            client().emit(event)
            sent_count += 1
            if time.monotonic() >= ends_at:
                return

    try:
        result_within(_DEADLINE_SECONDS, _STRAGGLER, send)
    except Exception as error:  # a transport may raise anything
        # After the deadline the thread may still send the last event.
        count = sent_count
        return Emission(count, error if count < len(events) else None)
    return Emission(sent_count, None)


@cache
def client() -> OpenLineageClient:
    """Return the client of this process, with the settings of the environment. Raises
    TransportIncomplete: the client itself would print events, and the events would count as sent.
    """
    if problem := transport_problem(os.environ):
        raise TransportIncomplete(problem)
    created = OpenLineageClient()
    # Another class may need a session of its own, as for signatures.
    if type(created.transport) is HttpTransport:
        config = created.transport.config
        # A receiver may not hold the thread for the hours that its answer names.
        config.retry = {"respect_retry_after_header": False, **config.retry}
        created.transport.session = EventSession()
    return created
