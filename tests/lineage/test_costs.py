"""The cost of events for a run: one statement at the end of an attempt."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.models import Gateway
from slicewise_server.lineage import event_client
from slicewise_server.lineage.posting import send_due
from tests.alerts.conftest import Receiver
from tests.attempts import begun, publish
from tests.factories import DAILY_2013, asset

pytestmark = pytest.mark.django_db


def statements_of_a_run(alice: User, gateway: Gateway, name: str) -> list[str]:
    """Return the statements of a run from the request to the end."""
    flights = asset(name, DAILY_2013)
    with CaptureQueriesContext(connection) as captured:
        publish(begun(flights, alice, gateway))
    return [query["sql"] for query in captured.captured_queries]


def test_an_attempt_takes_one_statement_more_where_events_are_sent(
    alice: User, gateway: Gateway, request: pytest.FixtureRequest
) -> None:
    statements_of_a_run(alice, gateway, "warm")
    without = statements_of_a_run(alice, gateway, "without")
    assert not any("lineage" in statement for statement in without)
    request.getfixturevalue("lineage")
    with_events = statements_of_a_run(alice, gateway, "with")
    assert len(with_events) == len(without) + 1
    assert sum("lineage" in statement for statement in with_events) == 1


def test_a_receiver_that_hangs_is_no_part_of_a_run(
    lineage: Receiver, alice: User, gateway: Gateway
) -> None:
    lineage.pause_seconds = 60.0
    statements_of_a_run(alice, gateway, "flights")
    assert not lineage.requests


def test_many_events_are_read_by_as_few_statements_as_one(
    lineage: Receiver, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a slow machine, events of a group are recorded in between.
    monkeypatch.setattr(event_client, "_TURN_SECONDS", 1_000.0)
    flights = asset("flights", DAILY_2013)

    def statements_of_sending(*days: int) -> int:
        for day in days:
            publish(begun(flights, alice, gateway, f"2013-01-{day:02}"))
        with CaptureQueriesContext(connection) as captured:
            assert send_due() == 2 * len(days)
        return len(captured.captured_queries)

    statements_of_sending(1)
    of_one = statements_of_sending(2)
    assert statements_of_sending(*range(3, 32)) <= of_one
    assert of_one <= 25
    assert len(lineage.bodies) == 62
