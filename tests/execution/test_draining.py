"""A worker that is asked to end says so at once, and is heard of until it has."""

import time
from collections.abc import Callable, Iterator
from unittest.mock import Mock, patch

import pytest
from django.db import connections

from assets_app.execution import worker
from assets_app.execution.dispatch import live_gateways
from assets_app.execution.worker import GatewayWorker
from assets_app.models import Gateway
from assets_app.models.gateways import GatewayState

pytestmark = pytest.mark.django_db(transaction=True)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def working() -> Iterator[GatewayWorker]:
    beat = GatewayWorker._beat

    def beat_and_close(self: GatewayWorker) -> None:
        try:
            beat(self)
        finally:
            connections.close_all()

    with (
        patch.object(worker, "WarmParent", Mock()),
        patch.object(worker, "_HEARTBEAT_SECONDS", 0.1),
        patch.object(GatewayWorker, "_beat", beat_and_close),
    ):
        started = GatewayWorker("scheduled@test", "scheduled", 3)
        yield started
        started.close()
        started._heart.join(10)
        assert not started._heart.is_alive()


def test_who_is_asked_to_end_gets_nothing_more_and_goes_on_being_heard(
    working: GatewayWorker,
) -> None:
    assert live_gateways("scheduled")
    working.drain()
    wait_for(lambda: Gateway.objects.get().draining)
    assert live_gateways("scheduled") == []
    draining = Gateway.objects.get()
    assert draining.state_at(draining.last_seen) == GatewayState.DRAINING
    wait_for(lambda: Gateway.objects.get().last_seen > draining.last_seen)


def test_who_has_ended_is_heard_no_more(working: GatewayWorker) -> None:
    working.close()
    working._heart.join(10)
    ended = Gateway.objects.get()
    time.sleep(0.3)
    assert Gateway.objects.get().last_seen == ended.last_seen
    assert ended.draining
