"""Events that are read and recorded together."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from django.db import transaction

from accounts_app.models import User
from assets_app.models import AssetDependency, Gateway
from slicewise_server.lineage import attempt_rows
from slicewise_server.lineage.models import LineageEvent, LineageReceiver
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
    for name in ("_GROUP", "_SMALL"):
        with monkeypatch.context() as patch:
            patch.setattr(attempt_rows, name, 1)
            LineageEvent.objects.update(sent_at=None)
            lineage.requests.clear()
            send_due()
        assert lineage.bodies == together


def test_events_that_others_have_locked_are_recorded_later_and_hold_no_others(
    lineage: Receiver, alice: User, gateway: Gateway
) -> None:
    flights = asset("flights", DAILY_2013)
    for day in range(1, 4):
        begun(flights, alice, gateway, f"2013-01-{day:02}")
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
