"""A worker that is asked to end reports so at once, and sends heartbeats until its end."""

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock, patch
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.conf import settings as django_settings
from django.db import connections
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.gateway import worker
from assets_app.execution.gateway.worker import GatewayWorker
from assets_app.execution.queue.dispatch import live_gateways
from assets_app.models import Gateway, Lease, RunAttempt
from assets_app.models.gateways import GatewayState
from tests.attempts import begun
from tests.execution.conftest import lose_the_worker
from tests.factories import DAILY_2013, asset
from tests.supervised_runs import played_spark

pytestmark = pytest.mark.django_db(transaction=True)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def hear(beats: int = 2) -> None:
    """Wait for so many heartbeats. Of two, the second heartbeat has begun after the call."""
    for _ in range(beats):
        before = Gateway.objects.get().last_seen
        wait_for(lambda before=before: Gateway.objects.get().last_seen > before)  # type: ignore[misc]


@pytest.fixture
def spark(settings: Any) -> Iterator[socket.socket]:
    with played_spark() as server:
        settings.SPARK_REMOTE = f"sc://localhost:{server.getsockname()[1]}/;token=x"
        settings.SPARK_CHECK_SECONDS = 0.05
        yield server


@pytest.fixture
def working(spark: socket.socket) -> Iterator[GatewayWorker]:
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
        started._heart.join(120)
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
        return Lease.objects.get(attempt=attempt).until > timezone.now()

    with working.watching(attempt) as watched:
        lose_the_worker()
        wait_for(is_renewed)
        # Whoever held it before lets go of what is its own.
        before = RunAttempt(pk=attempt.pk, token=uuid4())
        with working.watching(before) as lost:
            wait_for(lost.lease_lost.is_set)
        lose_the_worker()
        wait_for(is_renewed)
        assert not watched.lease_lost.is_set()
    # The heartbeat that is under way may still hold it.
    hear()
    lose_the_worker()
    hear()
    assert not is_renewed()


def test_a_gateway_tells_since_when_its_spark_server_does_not_answer(
    working: GatewayWorker, spark: socket.socket
) -> None:
    time.sleep(0.5)
    assert not working.spark_away.is_set()
    assert Gateway.objects.get().spark_away_since is None
    spark.close()
    wait_for(lambda: Gateway.objects.get().spark_away_since is not None)
    since = Gateway.objects.get().spark_away_since
    time.sleep(0.3)
    assert Gateway.objects.get().spark_away_since == since
    with socket.create_server(("127.0.0.1", spark_port()), reuse_port=True):
        wait_for(lambda: Gateway.objects.get().spark_away_since is None)
        assert not working.spark_away.is_set()


def spark_port() -> int:
    return urlsplit(django_settings.SPARK_REMOTE).port or 0


def test_who_has_ended_is_heard_no_more(working: GatewayWorker) -> None:
    working.close()
    working._heart.join(120)
    ended = Gateway.objects.get()
    time.sleep(0.3)
    assert Gateway.objects.get().last_seen == ended.last_seen
    assert ended.draining
