"""A worker that is asked to end says so at once, and is heard of until it has."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from unittest.mock import Mock, patch
from uuid import uuid4

import pytest
from django.db import connections
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution import worker
from assets_app.execution.dispatch import live_gateways
from assets_app.execution.worker import GatewayWorker
from assets_app.models import Gateway, RunAttempt
from assets_app.models.gateways import GatewayState
from tests.cast import DAILY_2013, asset
from tests.execution.test_attempts import begun

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


def test_an_attempt_is_held_whether_or_not_it_has_a_process(
    working: GatewayWorker, alice: User
) -> None:
    attempt = begun(asset("raw_flights", DAILY_2013), alice, working.gateway).row

    def is_renewed() -> bool:
        attempt.refresh_from_db()
        return attempt.lease_until > timezone.now()

    with working.watching(attempt) as watched:
        RunAttempt.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        wait_for(is_renewed)
        # Whoever held it before lets go of what is its own.
        before = RunAttempt(pk=attempt.pk, token=uuid4())
        with working.watching(before) as lost:
            wait_for(lost.lease_lost.is_set)
        RunAttempt.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        wait_for(is_renewed)
        assert not watched.lease_lost.is_set()
    RunAttempt.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    time.sleep(0.3)
    assert not is_renewed()


def test_who_has_ended_is_heard_no_more(working: GatewayWorker) -> None:
    working.close()
    working._heart.join(10)
    ended = Gateway.objects.get()
    time.sleep(0.3)
    assert Gateway.objects.get().last_seen == ended.last_seen
    assert ended.draining
