"""Events of attempts at a real receiver: valid, in order, one start and end for each attempt."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import requests
from django.utils import timezone

import slicewise
from accounts_app.models import User
from assets_app.execution.attempt import ending
from assets_app.execution.attempt.attempts import Attempt, take_inputs
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.gateway.recovery import recover
from assets_app.execution.request.reporting import ReportedWrite, report_write
from assets_app.models import Asset, Gateway, ValidationResult
from slicewise_server.lineage import event_client
from slicewise_server.lineage.forgetting_lineage import forget_lineage
from slicewise_server.lineage.models import LineageEvent, LineageReceiver
from slicewise_server.lineage.posting import send_due
from slicewise_server.lineage.run_ids import attempt_run_id
from tests.alerts.conftest import Receiver
from tests.attempts import begin_next, begun, publish
from tests.execution.conftest import lose_the_worker
from tests.factories import DAILY_2013, asset, external
from tests.lineage.conftest import one_try
from tests.lineage.openlineage_schemas import check_event

pytestmark = pytest.mark.django_db(transaction=True)
PARTITIONS = "slicewise_partitions"


@pytest.fixture
def raw(db: None) -> Asset:
    return external(
        "raw", DAILY_2013, uri="s3://lake/raw", canonical_uri="s3://lake/raw", owners=["ann"]
    )


@pytest.fixture
def delays(raw: Asset) -> Asset:
    return asset(
        "delays",
        DAILY_2013,
        upstream={"raw": slicewise.Offset(-1, 0)},
        options={
            "outlets": [
                {
                    "name": "delays",
                    "uri": "file:///lake/delays",
                    "columns": [{"name": "day", "type": "date"}, {"name": "delay", "type": None}],
                }
            ],
            "owners": ["bob"],
            "tags": ["daily"],
            "description": "Delays of a day.",
        },
    )


def sent_events(receiver: Receiver) -> list[dict[str, Any]]:
    """Send all events that wait; return the bodies at the receiver, each checked."""
    send_due()
    for event in receiver.bodies:
        check_event(event)
    return receiver.bodies


def finish(attempt: Attempt) -> None:
    """Read the inputs of the attempt, publish its data, and end it."""
    take_inputs(attempt)
    publish(attempt)


def test_an_attempt_has_a_start_and_an_end_with_its_datasets(
    lineage: Receiver, delays: Asset, raw: Asset, alice: User, gateway: Gateway
) -> None:
    report_write(ReportedWrite(asset=raw, selection="2013-01-02..2013-01-03"), user=alice)
    attempt = begun(delays, alice, gateway, "2013-01-03")
    finish(attempt)
    start, end = sent_events(lineage)
    assert [start["eventType"], end["eventType"]] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == end["run"]["runId"]
    assert UUID(start["run"]["runId"]).version == 7
    assert end["job"]["namespace"] == "slicewise"
    assert end["job"]["name"] == "delays"
    assert {"sourceCode", "ownership", "tags", "documentation"} <= end["job"]["facets"].keys()
    assert end["run"]["facets"]["nominalTime"]["nominalStartTime"] == "2013-01-03T00:00:00+00:00"
    assert end["run"]["facets"]["parent"]["job"]["name"] == "delays.request"
    (source,) = end["inputs"]
    assert (source["namespace"], source["name"]) == ("s3://lake", "raw")
    assert source["facets"][PARTITIONS]["selection"] == "2013-01-02..2013-01-03"
    assert source["facets"][PARTITIONS]["versions"] == {"2013-01-02": 1, "2013-01-03": 1}
    assert source["facets"][PARTITIONS]["mapping"]["kind"] == "offset"
    (output,) = end["outputs"]
    assert (output["namespace"], output["name"]) == ("file", "/lake/delays")
    assert output["facets"][PARTITIONS]["written"] is True
    assert output["facets"][PARTITIONS]["selection"] == "2013-01-03"
    assert output["facets"]["version"]["datasetVersion"] == "1"
    assert output["facets"]["schema"]["fields"][0]["type"] == "date"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 5
    assert output["outputFacets"]["outputStatistics"]["size"] == 50
    (planned,) = start["outputs"]
    assert planned["facets"][PARTITIONS]["written"] is False
    assert dict(lineage.requests[0][0])["authorization"] == "Bearer the-key-of-a-test"


def test_a_failure_is_told_without_secrets_and_each_attempt_has_a_run_of_its_own(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway
) -> None:
    attempt = begun(delays, alice, gateway)
    result = {"when": "inlet", "name": "fresh", "severity": "error", "evaluated": True}
    ValidationResult.objects.create(
        attempt=attempt.row, asset=Asset.objects.get(name="raw"), position=0, passed=False,
        message="raw is old", **result,
    )  # fmt: skip
    ending.fail(attempt.row, Failure(error="no login at postgres://ann:s3cret@db/x"))
    _, end = sent_events(lineage)
    assert end["eventType"] == "FAIL"
    assert "no login" in end["run"]["facets"]["errorMessage"]["message"]
    assert not any(b"s3cret" in body for _, body in lineage.requests)
    (source,) = end["inputs"]
    (assertion,) = source["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert (assertion["assertion"], assertion["success"]) == ("fresh", False)


def test_lost_attempts_end_and_the_next_attempt_is_another_run(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway
) -> None:
    attempt = begun(delays, alice, gateway)
    lose_the_worker()
    recover()
    finish(begin_next(attempt.run, gateway))
    events = sent_events(lineage)
    assert [event["eventType"] for event in events] == ["START", "ABORT", "START", "COMPLETE"]
    runs = Counter(event["run"]["runId"] for event in events)
    assert list(runs.values()) == [2, 2]


def test_nothing_is_written_where_no_receiver_is_named(
    delays: Asset, alice: User, gateway: Gateway
) -> None:
    finish(begun(delays, alice, gateway))
    assert not LineageEvent.objects.exists()
    assert send_due() == 0


def test_events_wait_for_a_receiver_that_is_away_and_keep_their_order(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_try(monkeypatch, lineage)
    lineage.statuses = [503]
    for day in range(1, 4):
        finish(begun(delays, alice, gateway, f"2013-01-{day:02}"))
    assert send_due() == 0
    receiver = LineageReceiver.objects.get()
    assert receiver.failures == 1
    assert receiver.error == "The receiver answered with status 503."
    assert receiver.retry_at is not None
    tries = len(lineage.requests)
    assert send_due() == 0  # the pause goes on
    assert len(lineage.requests) == tries
    lineage.statuses = [200]
    lineage.requests.clear()
    LineageReceiver.objects.update(retry_at=timezone.now() - timedelta(seconds=1))
    events = sent_events(lineage)
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"] * 3
    assert LineageReceiver.objects.get().failures == 0


def test_an_event_that_the_receiver_refuses_keeps_no_other_waiting(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway
) -> None:
    lineage.statuses = [422, 201]
    finish(begun(delays, alice, gateway))
    assert [event["eventType"] for event in sent_events(lineage)] == ["START", "COMPLETE"]
    refused = LineageEvent.objects.get(sent_at=None)
    assert (refused.kind, refused.refusals) == ("START", 1)
    assert "422" in refused.error
    LineageEvent.objects.update(not_before=timezone.now() - timedelta(seconds=1))
    assert [event["eventType"] for event in sent_events(lineage)] == ["START", "COMPLETE", "START"]


def test_refused_events_come_after_events_that_were_never_sent(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway
) -> None:
    lineage.statuses = [422, 422, 201]
    finish(begun(delays, alice, gateway, "2013-01-01"))
    assert send_due() == 2
    LineageEvent.objects.update(not_before=timezone.now() - timedelta(seconds=1))
    fresh = begun(delays, alice, gateway, "2013-01-02")
    lineage.requests.clear()
    assert send_due() == 3
    runs = [event["run"]["runId"] for event in lineage.bodies]
    assert runs[0] == attempt_run_id(fresh.row)
    assert runs[0] not in runs[1:]


def test_an_event_that_makes_the_receiver_fail_keeps_no_other_waiting_for_long(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_try(monkeypatch, lineage)
    for day in (1, 2):
        finish(begun(delays, alice, gateway, f"2013-01-{day:02}"))
    # The first start fails each time, and every other event is taken.
    lineage.statuses = [*[500] * 5, 500, 201]
    for _ in range(6):
        LineageReceiver.objects.update(retry_at=None)
        send_due()
    failing = LineageEvent.objects.get(sent_at=None)
    assert (failing.kind, failing.refusals) == ("START", 1)
    assert failing.error == "The receiver answered with status 500."
    assert LineageReceiver.objects.get().failures == 0


def test_an_event_that_makes_the_receiver_close_the_connection_keeps_no_other_waiting_for_long(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_try(monkeypatch, lineage)
    for day in (1, 2):
        finish(begun(delays, alice, gateway, f"2013-01-{day:02}"))
    # The sixth time another event is taken, and then the first start fails again.
    lineage.statuses = [*[0] * 5, 0, 201, 0, 201]
    for _ in range(6):
        LineageReceiver.objects.update(retry_at=None)
        send_due()
    failing = LineageEvent.objects.get(sent_at=None)
    assert (failing.kind, failing.refusals) == ("START", 1)
    assert failing.error == "The connection failed."


def test_an_event_is_tried_again_before_it_waits_alone_after_a_broken_connection(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_try(monkeypatch, lineage)
    for day in (1, 2):
        finish(begun(delays, alice, gateway, f"2013-01-{day:02}"))
    # The network comes back between the first event and the other one.
    lineage.statuses = [*[0] * 6, 201]
    for _ in range(6):
        LineageReceiver.objects.update(retry_at=None)
        send_due()
    assert not LineageEvent.objects.filter(sent_at=None).exists()
    assert not LineageEvent.objects.exclude(refusals=0).exists()


def test_a_redirect_is_a_failure_and_is_not_followed(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway
) -> None:
    lineage.statuses, lineage.location = [302], lineage.address
    begun(delays, alice, gateway)
    assert send_due() == 0
    assert len(lineage.requests) == 1
    assert LineageReceiver.objects.get().error == "The receiver answered with status 302."


def test_an_error_of_a_transport_without_an_answer_pauses_the_events(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(event: object) -> None:
        raise requests.HTTPError("the login failed")

    monkeypatch.setattr(event_client.client(), "emit", refuse)
    begun(delays, alice, gateway)
    assert send_due() == 0
    receiver = LineageReceiver.objects.get()
    assert (receiver.failures, bool(receiver.error)) == (1, True)


def test_a_receiver_that_fails_for_long_gets_all_events_in_order_afterwards(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_try(monkeypatch, lineage)
    for day in (1, 2):
        finish(begun(delays, alice, gateway, f"2013-01-{day:02}"))
    lineage.statuses = [503]
    for _ in range(8):
        LineageReceiver.objects.update(retry_at=None)
        send_due()
    assert not LineageEvent.objects.exclude(refusals=0).exists()
    lineage.statuses = [201]
    lineage.requests.clear()
    LineageReceiver.objects.update(retry_at=None)
    events = sent_events(lineage)
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"] * 2


def test_an_event_that_is_refused_for_too_long_is_forgotten(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway
) -> None:
    lineage.statuses = [422, 422, 503]
    finish(begun(delays, alice, gateway, "2013-01-01"))
    send_due()
    assert forget_lineage(timezone.now()) == 0
    assert forget_lineage(timezone.now() + timedelta(days=60)) == 2


def test_an_event_that_cannot_be_built_keeps_no_other_waiting(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway
) -> None:
    lost = begun(delays, alice, gateway, "2013-01-01")
    version = lost.run.producer_version
    version.definition = {**version.definition, "partition": {"kind": "of a lost plug-in"}}
    version.save()
    other = asset("other", DAILY_2013)
    begun(other, alice, gateway)
    assert [event["job"]["name"] for event in sent_events(lineage)] == ["other"]
    assert "could not be built" in LineageEvent.objects.get(sent_at=None).error


def test_one_worker_alone_sends_and_a_dead_one_is_followed(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway
) -> None:
    finish(begun(delays, alice, gateway))
    LineageReceiver.objects.create(pk=1, claim=UUID(int=1), claimed_until=_in(60))
    assert send_due() == 0
    LineageReceiver.objects.update(claimed_until=_in(-1))
    assert send_due() == 2


def test_sent_events_are_kept_for_a_while_and_waiting_events_until_they_are_sent(
    lineage: Receiver, delays: Asset, alice: User, gateway: Gateway
) -> None:
    finish(begun(delays, alice, gateway, "2013-01-01"))
    begun(delays, alice, gateway, "2013-01-02")
    send_due()
    finish(begun(delays, alice, gateway, "2013-01-03"))
    assert forget_lineage(timezone.now() + timedelta(days=60)) == 2
    kinds = list(LineageEvent.objects.values_list("kind", "is_open"))
    assert kinds == [("START", True), ("START", False), ("COMPLETE", False)]


def _in(seconds: float) -> Any:
    return timezone.now() + timedelta(seconds=seconds)
