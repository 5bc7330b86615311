"""What happens at the same moment, on connections of their own."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connections, transaction
from django.utils import timezone

from assets_app.execution import control, ending, transitions, worker
from assets_app.execution.control import cancel_group
from assets_app.execution.ending import Failure
from assets_app.models import FailureKind, Run, RunAttempt, RunState
from tests.cast import DAILY_2013, asset, person
from tests.execution.conftest import make_gateway
from tests.execution.test_attempts import begun

pytestmark = pytest.mark.django_db(transaction=True)


def elsewhere(work: Callable[[], Any]) -> threading.Thread:
    """The work, begun on a connection of its own."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_run_that_goes_back_to_the_queue_meanwhile_is_canceled_all_the_same() -> None:
    alice = person("alice", is_superuser=True)
    attempt = begun(asset("raw_flights", DAILY_2013), alice, make_gateway("scheduled"))
    others: list[threading.Thread] = []

    def fail() -> None:
        ending.fail(attempt.row, Failure(error="gone", kind=FailureKind.PLATFORM))

    def move_all(run_ids: list[int], old: RunState, new: RunState, **fields: Any) -> list[int]:
        moved = transitions.move_all(run_ids, old, new, **fields)
        if old == RunState.QUEUED:
            others.append(elsewhere(fail))
            others[0].join(1)
        return moved

    with patch.object(control, "move_all", move_all):
        assert cancel_group(attempt.run.group, user=alice) == 1
    others[0].join()
    assert Run.objects.get().state == RunState.CANCELING


def test_an_attempt_that_is_being_ended_keeps_no_other_from_its_lease() -> None:
    alice, gateway = person("alice", is_superuser=True), make_gateway("scheduled")
    flights = asset("raw_flights", DAILY_2013)
    ending = begun(flights, alice, gateway, "2013-01-01")
    other = begun(flights, alice, gateway, "2013-01-02")
    RunAttempt.objects.update(lease_until=timezone.now())
    is_held, may_go = threading.Event(), threading.Event()

    def settle() -> None:
        with transaction.atomic():
            RunAttempt.objects.select_for_update().get(pk=ending.row.pk)
            is_held.set()
            may_go.wait(10)

    thread = elsewhere(settle)
    is_held.wait(10)
    began = time.monotonic()
    states = worker._renew_leases([ending.row, other.row])
    took = time.monotonic() - began
    may_go.set()
    thread.join()
    assert took < 5
    assert states == {ending.row.token: "running", other.row.token: "running"}
    other.row.refresh_from_db()
    assert other.row.lease_until > timezone.now() + timedelta(seconds=5)
