"""Starts of attempts: written by the sender for attempts under way, and else with the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from accounts_app.models import User
from assets_app.execution.attempt.attempts import Attempt
from assets_app.models import Asset, Gateway, RunAttempt
from slicewise_server.lineage import outbox
from slicewise_server.lineage.models import LineageEvent
from slicewise_server.lineage.posting import send_due
from tests.alerts.conftest import Receiver
from tests.attempts import begun, publish
from tests.factories import DAILY_2013, asset
from tests.query_plans import rows_read
from tests.threads import elsewhere, wait_for_end_or_lock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def flights(db: None) -> Asset:
    return asset("flights", DAILY_2013)


def kinds_of(receiver: Receiver) -> list[str]:
    return [event["eventType"] for event in receiver.bodies]


def kinds_by_run(receiver: Receiver) -> list[list[str]]:
    """Return the kinds of the events of each run, in the order of the first events."""
    kinds: dict[str, list[str]] = {}
    for event in receiver.bodies:
        kinds.setdefault(event["run"]["runId"], []).append(event["eventType"])
    return list(kinds.values())


def without_receiver(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> None:
    """Do the work as a process does that has no receiver in its environment."""
    with monkeypatch.context() as patch:
        patch.setattr("slicewise_server.lineage.receivers.sends_events", lambda: False)
        work()


def test_the_start_of_an_attempt_under_way_is_sent_once(
    lineage: Receiver, flights: Asset, alice: User, gateway: Gateway
) -> None:
    attempt = begun(flights, alice, gateway)
    assert [send_due(), send_due()] == [1, 0]
    assert lineage.bodies[0]["eventTime"] == attempt.row.started_at.isoformat()
    publish(attempt)
    assert [send_due(), send_due()] == [1, 0]
    assert kinds_of(lineage) == ["START", "COMPLETE"]
    assert not LineageEvent.objects.filter(is_open=True).exists()


def test_an_end_that_a_process_without_receiver_wrote_not_is_sent_nevertheless(
    lineage: Receiver,
    flights: Asset,
    alice: User,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempt = begun(flights, alice, gateway)
    send_due()
    without_receiver(monkeypatch, lambda: publish(attempt))
    send_due()
    assert kinds_of(lineage) == ["START", "COMPLETE"]


def test_an_attempt_of_a_process_without_receiver_has_no_end_without_a_start(
    lineage: Receiver,
    flights: Asset,
    alice: User,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempt = begun(flights, alice, gateway)
    without_receiver(monkeypatch, lambda: publish(attempt))
    assert send_due() == 0


def ended_later(attempt: Attempt, may_end: threading.Event) -> threading.Thread:
    """Lock and end the attempt on a thread; the transaction ends when ``may_end`` is set."""
    is_ended = threading.Event()

    def end() -> None:
        with transaction.atomic():
            publish(attempt)
            is_ended.set()
            may_end.wait(120)

    thread = elsewhere(end)
    assert is_ended.wait(60)
    return thread


def test_the_sender_waits_for_no_attempt_that_another_transaction_ends(
    lineage: Receiver, flights: Asset, alice: User, gateway: Gateway
) -> None:
    ending = begun(flights, alice, gateway, "2013-01-01")
    under_way = begun(flights, alice, gateway, "2013-01-02")
    may_end = threading.Event()
    thread = ended_later(ending, may_end)
    try:
        writing = elsewhere(outbox.write_starts)
        writing.join(60)
        assert not writing.is_alive()
        (start,) = LineageEvent.objects.all()
        assert start.attempt_id == under_way.row.pk
    finally:
        may_end.set()
        thread.join()
    send_due()
    assert sorted(kinds_by_run(lineage)) == [["START"], ["START", "COMPLETE"]]


def test_an_attempt_that_ends_while_its_start_is_written_has_one_start(
    lineage: Receiver, flights: Asset, alice: User, gateway: Gateway
) -> None:
    attempt = begun(flights, alice, gateway)
    with transaction.atomic():
        assert outbox.write_starts() == 1
        ending = elsewhere(lambda: publish(attempt))
        wait_for_end_or_lock(ending)
        assert ending.is_alive()
    ending.join()
    send_due()
    assert kinds_of(lineage) == ["START", "COMPLETE"]


@pytest.mark.usefixtures("lineage")
def test_a_look_for_starts_reads_attempts_under_way_alone(
    flights: Asset, alice: User, gateway: Gateway
) -> None:
    for day in range(1, 21):
        publish(begun(flights, alice, gateway, f"2013-01-{day:02}"))
    begun(flights, alice, gateway, "2013-02-01")
    outbox.write_starts()
    begun(flights, alice, gateway, "2013-02-02")
    assert RunAttempt.objects.count() == 22
    assert rows_read(outbox._STARTS) <= 6
