"""The events that changes write, in the transaction of the change."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import transaction
from django.utils import timezone

from accounts_app.models import User
from assets_app.catalogue.services import retire_bundles, sync_bundle
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.validations import ResultKeeper
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.execution.request.retrying import retry_run
from assets_app.models import Asset, FailureKind, Gateway, Run
from assets_app.scheduling.recording import record_truncation
from backfills_app.services import request_from_text
from slicewise_server.events.feed import Calm, publish_events
from slicewise_server.events.models import Event, EventKind
from slicewise_server.events.serializers import EventSerializer
from slicewise_server.events.writing import ERROR_LENGTH, shortened
from tests.attempts import begin_next, publish
from tests.backfills.driven_backfills import run_all
from tests.created_backfills import create_backfill
from tests.factories import DAILY_2013, asset, together
from tests.scheduling.scheduled_assets import begin, fail, publish_part

pytestmark = pytest.mark.django_db

FAILED_CHECK = {
    "name": "row_count",
    "severity": "error",
    "passed": False,
    "evaluated": True,
    "message": "The data has 1 row instead of at least 2 rows.",
    "description": "The data has at least 2 rows.",
    "observed": {"rows": 1},
}


def kinds(**fields: object) -> list[str]:
    """List the kinds of the written events, the earliest first."""
    return list(Event.objects.filter(**fields).order_by("id").values_list("kind", flat=True))


def attempt_at(made: Asset, alice: User, gateway: Gateway) -> attempts.Attempt:
    """Begin a new run of an asset that is not partitioned."""
    run = materialize(MaterializeRequest(asset=made), user=alice).runs.get()
    return begin_next(run, gateway)


def test_a_run_that_fails_for_good_and_the_next_success_are_two_events(
    alice: User, gateway: Gateway
) -> None:
    sales = asset("sales")
    failing = attempt_at(sales, alice, gateway)
    ending.fail(failing.row, Failure(error="ValueError: no rows"))
    publish(attempt_at(sales, alice, gateway))
    publish(attempt_at(sales, alice, gateway))
    assert kinds() == [EventKind.RUN_FAILED, EventKind.RUN_RECOVERED]
    event = Event.objects.get(kind=EventKind.RUN_FAILED)
    assert (event.asset, event.run_id, event.backfill_id) == ("sales", failing.run.pk, None)
    assert event.error == "ValueError: no rows"
    assert event.detail["error_kind"] == "code"


def test_a_failure_that_is_tried_again_is_no_event(alice: User, gateway: Gateway) -> None:
    failing = attempt_at(asset("sales", options={"retries": 1}), alice, gateway)
    ending.fail(failing.row, Failure(error="ValueError: no rows"))
    assert Run.objects.get().state == "queued"
    assert kinds() == []


def test_a_canceled_run_is_no_event(alice: User, gateway: Gateway) -> None:
    running = attempt_at(asset("sales"), alice, gateway)
    Run.objects.filter(pk=running.run.pk).update(state="canceling")
    assert ending.cancel(running.row)
    assert kinds() == []


def test_validations_that_fail_are_one_event_for_each_severity(
    alice: User, gateway: Gateway
) -> None:
    checked = attempt_at(asset("sales"), alice, gateway)
    warning = FAILED_CHECK | {"name": "unique", "severity": "warn", "message": "2 twice"}
    results = [FAILED_CHECK, warning, FAILED_CHECK | {"name": "passes", "passed": True}]
    message = {"type": "validated", "when": "outlet", "asset": "sales", "results": results}
    ResultKeeper(checked, lambda: True).hear(message)
    failure = Failure(error="sales does not pass row_count", kind=FailureKind.DATA)
    ending.fail(checked.row, failure)
    assert sorted(kinds()) == ["run_failed", "validation_failed", "validation_warned"]
    names = {event.kind: event.detail.get("validations") for event in Event.objects.all()}
    assert names["validation_failed"] == ["row_count"]
    assert names["validation_warned"] == ["unique"]


def test_a_backfill_is_one_event_with_its_counts_beside_its_failed_runs(
    alice: User, worker: Gateway
) -> None:
    asset("raw_flights", DAILY_2013)
    request = request_from_text("raw_flights", "2013-01-01", "2013-01-03")
    backfill = create_backfill(request, user=alice)
    run_all(worker, failing=("2013-01-02",))
    assert kinds(backfill_id=backfill.pk) == ["run_failed", "backfill_failed"]
    ended = Event.objects.get(kind=EventKind.BACKFILL_FAILED)
    assert ended.asset == "raw_flights"
    assert ended.detail["state"] == "partially_failed"
    counts = {"total": 3, "succeeded": 2, "failed": 1, "canceled": 0, "skipped": 0}
    assert ended.detail["partitions"] == counts
    assert ended.detail["assets"] == ["raw_flights"]


def test_the_failed_partitions_of_several_assets_are_counted_once(
    alice: User, gateway: Gateway
) -> None:
    one, two = together("both", ["one", "two"], DAILY_2013, options={"strategy": "range"})
    days = [f"2013-01-0{day}" for day in range(1, 6)]
    request = MaterializeRequest(asset=one, selection=f"{days[0]}..{days[-1]}", strategy="range")
    run = materialize(request, user=alice).runs.get()
    publish_part(begin(run, gateway), {one: days, two: days[:3]})
    assert failed_partitions_of_last_event() == (2, days[3:])
    # A retry takes these partitions of both assets back.
    run.refresh_from_db()
    fail(retry_run(run, user=alice), gateway)
    assert failed_partitions_of_last_event() == (2, days[3:])


def failed_partitions_of_last_event() -> tuple[int, list[str]]:
    detail = Event.objects.latest("id").detail
    return detail["failed"], detail["failed_partitions"]


def test_an_event_goes_with_its_transaction(alice: User, gateway: Gateway) -> None:
    failing = attempt_at(asset("sales"), alice, gateway)
    with transaction.atomic():
        ending.fail(failing.row, Failure(error="ValueError: no rows"))
        assert kinds() == [EventKind.RUN_FAILED]
        transaction.set_rollback(True)
    assert kinds() == []


def test_a_bundle_that_breaks_and_loads_again_is_two_events(
    bundle: Callable[..., Path],
) -> None:
    folder = bundle(good="from slicewise import asset\n\n@asset()\ndef greeting(): ...\n")
    sync_bundle("trials", folder)
    sync_bundle("trials", folder)
    assert kinds() == []
    (folder / "bad.py").write_text("1 / 0\n")
    sync_bundle("trials", folder)
    sync_bundle("trials", folder)
    (folder / "bad.py").unlink()
    sync_bundle("trials", folder)
    assert kinds(bundle="trials") == [EventKind.BUNDLE_BROKEN, EventKind.BUNDLE_MENDED]
    broken = Event.objects.get(kind=EventKind.BUNDLE_BROKEN)
    assert broken.error.startswith("bad.py: ")
    assert "division by zero" in broken.error


def test_a_bundle_that_is_retired_has_no_errors_any_more(bundle: Callable[..., Path]) -> None:
    folder = bundle(good="from slicewise import asset\n\n@asset()\ndef greeting(): ...\n")
    (folder / "bad.py").write_text("1 / 0\n")
    sync_bundle("trials", folder)
    retire_bundles(["another"])
    retire_bundles(["another"])
    assert kinds(bundle="trials") == [EventKind.BUNDLE_BROKEN, EventKind.BUNDLE_MENDED]


@pytest.mark.parametrize("before", ["", "\n", "ValueError: ", "word " * 300])
def test_a_cut_error_shows_no_password(alice: User, gateway: Gateway, before: str) -> None:
    text = f"{before}postgres://ann:{'s3cret' * 400}@db/x"
    failing = attempt_at(asset("sales"), alice, gateway)
    ending.fail(failing.row, Failure(error=text))
    event = Event.objects.get()
    assert event.error == before + "…" == shortened(text)
    assert "s3cret" not in EventSerializer(event).data["error"]


def test_an_error_of_the_greatest_length_is_whole(alice: User, gateway: Gateway) -> None:
    text = "ValueError: " + "x" * (ERROR_LENGTH - 12)
    failing = attempt_at(asset("sales"), alice, gateway)
    ending.fail(failing.row, Failure(error=text))
    assert Event.objects.get().error == text == shortened(text)


def test_a_truncation_of_a_schedule_is_an_event() -> None:
    raw = asset("raw_flights", DAILY_2013)
    partitions = DAILY_2013.select("2013-01-01..2013-01-10")
    record_truncation(raw, partitions, queued=5, now=timezone.now())
    record_truncation(raw, partitions, queued=6, now=timezone.now())
    (event,) = Event.objects.all()
    assert (event.kind, event.asset) == ("schedule_truncated", "raw_flights")
    assert event.detail["partitions"] == len(partitions)


def test_a_silent_worker_is_one_event_each_time_it_falls_silent(gateway: Gateway) -> None:
    now = timezone.now()
    publish_events(now)
    assert kinds() == []
    Gateway.objects.update(last_seen=now - timedelta(minutes=2))
    publish_events(now)
    publish_events(now)
    assert kinds(worker=gateway.name) == [EventKind.WORKER_LOST]
    Gateway.objects.update(last_seen=timezone.now() + timedelta(seconds=1))
    publish_events(timezone.now() + timedelta(minutes=2))
    assert kinds() == [EventKind.WORKER_LOST, EventKind.WORKER_LOST]


def test_a_worker_that_signed_off_is_no_event(gateway: Gateway) -> None:
    now = timezone.now()
    Gateway.objects.update(last_seen=now - timedelta(minutes=2), draining=True)
    publish_events(now)
    assert kinds() == []


def test_lost_workers_are_looked_for_only_after_a_calm_time() -> None:
    calm = Calm()
    assert [calm.note(moment) for moment in [0.0, *map(float, range(1, 20))]] == [False] * 20
    assert calm.note(20.0)
    assert not calm.note(30.0)
