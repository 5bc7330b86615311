"""Events that are read and recorded together."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from accounts_app.models import User
from assets_app.models import AssetDependency, Gateway
from slicewise_server.alerts import stragglers
from slicewise_server.lineage import attempt_rows, event_client
from slicewise_server.lineage.models import LineageEvent, LineageReceiver
from slicewise_server.lineage.outbox import write_starts
from slicewise_server.lineage.posting import send_due
from tests.alerts.conftest import Receiver
from tests.attempts import begun, publish
from tests.factories import DAILY_2013, asset
from tests.lineage.conftest import one_try
from tests.threads import elsewhere
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_events_read_together_are_those_read_one_by_one(
    lineage: Receiver, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = asset("raw", DAILY_2013)
    delays = asset("delays", DAILY_2013, upstream={"raw": None})
    AssetDependency.objects.create(upstream=raw, downstream=delays, inlet=True)
    for day in ("2013-01-01", "2013-01-02"):
        publish(begun(raw, alice, gateway, day))
        publish(begun(delays, alice, gateway, day))
    send_due()
    together = lineage.bodies
    assert len(together) == 8
    for name in ("_GROUP", "_MOST_ROWS"):
        with monkeypatch.context() as patch:
            patch.setattr(attempt_rows, name, 1)
            LineageEvent.objects.update(sent_at=None)
            lineage.requests.clear()
            send_due()
        assert lineage.bodies == together


class Requests(list[Any]):
    """The requests of a receiver; each is followed by some work on a thread of its own."""

    def __init__(self, work: Any) -> None:
        super().__init__()
        self._work = work

    def append(self, request: Any) -> None:
        super().append(request)
        elsewhere(self._work).join()


def test_events_that_come_while_others_are_sent_are_read_together_later(
    lineage: Receiver, alice: User, gateway: Gateway
) -> None:
    flights = asset("flights", DAILY_2013)
    for day in ("2013-01-01", "2013-01-02"):
        publish(begun(flights, alice, gateway, day))
    *_, start, end = LineageEvent.objects.order_by("id")
    later = LineageEvent.objects.filter(pk__in=[start.pk, end.pk])
    later.update(sent_at=timezone.now())
    lineage.requests = Requests(lambda: later.update(sent_at=None))
    assert send_due() == 2
    assert later.filter(sent_at=None).count() == 2
    lineage.requests = []
    assert send_due() == 2
    assert [event["eventType"] for event in lineage.bodies] == ["START", "COMPLETE"]


def test_events_of_many_partitions_are_in_groups_of_their_own(
    lineage: Receiver, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    flights = asset("flights", DAILY_2013, options={"strategy": "range"})
    for selection in ("2013-01-01", "2013-01-02..2013-01-05", "2013-01-06", "2013-01-07"):
        begun(flights, alice, gateway, selection)
    assert write_starts() == 4
    events = list(LineageEvent.objects.order_by("id"))
    monkeypatch.setattr(attempt_rows, "_MOST_ROWS", 3)
    groups = list(attempt_rows.groups_of(events))
    assert groups == [events[:1], events[1:2], events[2:]]


def test_events_are_sent_by_one_thread_until_they_are_recorded(
    lineage: Receiver, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_client, "_TURN_SECONDS", 1_000.0)
    threads = []

    class Counted(threading.Thread):
        def start(self) -> None:
            threads.append(self)
            super().start()

    monkeypatch.setattr(stragglers, "Thread", Counted)
    flights = asset("flights", DAILY_2013)
    for day in ("2013-01-01", "2013-01-02", "2013-01-03"):
        publish(begun(flights, alice, gateway, day))
    assert send_due() == 6
    assert len(threads) == 1


def test_sent_events_are_recorded_before_the_group_is_sent(
    lineage: Receiver, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_client, "_TURN_SECONDS", 0.0)
    flights = asset("flights", DAILY_2013)
    for day in ("2013-01-01", "2013-01-02", "2013-01-03"):
        begun(flights, alice, gateway, day)
    counts: list[int] = []
    sent = LineageEvent.objects.filter(sent_at__isnull=False)
    lineage.requests = Requests(lambda: counts.append(sent.count()))
    assert send_due() == 3
    assert counts == [0, 1, 2]


def test_tags_that_the_client_adds_are_in_each_event_once(
    lineage: Receiver,
    alice: User,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "openlineage")
    monkeypatch.setenv("OPENLINEAGE__TAGS__JOB", '{"team": "blue"}')
    flights = asset("flights", DAILY_2013, options={"tags": ["daily"]})
    for day in ("2013-01-01", "2013-01-02"):
        publish(begun(flights, alice, gateway, day))
    assert send_due() == 4
    assert len(lineage.bodies) == 4
    for event in lineage.bodies:
        tags = [tag["key"] for tag in event["job"]["facets"]["tags"]["tags"]]
        assert tags == ["daily", "team"]
        (output,) = event["outputs"]
        assert [tag["key"] for tag in output["facets"]["tags"]["tags"]] == ["daily"]
    assert "Overriding" not in caplog.text


def test_events_that_others_have_locked_are_recorded_later_and_hold_no_others(
    lineage: Receiver, alice: User, gateway: Gateway
) -> None:
    flights = asset("flights", DAILY_2013)
    for day in range(1, 4):
        begun(flights, alice, gateway, f"2013-01-{day:02}")
    assert write_starts() == 3
    first, *others = LineageEvent.objects.order_by("id")
    may_end, is_locked = threading.Event(), threading.Event()

    def lock() -> None:
        with transaction.atomic():
            LineageEvent.objects.select_for_update().get(pk=first.pk)
            is_locked.set()
            may_end.wait(120)

    locking = elsewhere(lock)
    assert is_locked.wait(60)
    sending = elsewhere(send_due)
    sent = LineageEvent.objects.filter(sent_at__isnull=False)
    assert wait_until(lambda: sent.count() == len(others))
    assert first.pk not in sent.values_list("pk", flat=True)
    may_end.set()
    locking.join()
    sending.join()
    assert sent.count() == 3
    assert len(lineage.bodies) == 3


@pytest.mark.parametrize("events_together", [1, 20])
def test_an_event_that_was_sent_as_a_probe_is_not_sent_again(
    lineage: Receiver,
    alice: User,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    events_together: int,
) -> None:
    one_try(monkeypatch, lineage)
    monkeypatch.setattr(attempt_rows, "_GROUP", events_together)
    flights = asset("flights", DAILY_2013)
    for day in ("2013-01-01", "2013-01-02"):
        publish(begun(flights, alice, gateway, day))
    # The first start fails each time, and every other event is taken.
    lineage.statuses = [*[500] * 6, 201]
    for _ in range(6):
        LineageReceiver.objects.update(retry_at=None)
        send_due()
    sent = Counter((body["run"]["runId"], body["eventType"]) for body in lineage.bodies)
    assert sorted(sent.values()) == [1, 1, 1, 6]
