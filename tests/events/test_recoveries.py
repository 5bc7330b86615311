"""Reported failures, and the one event that reports the end of each."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue import settling
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.execution.request.retrying import retry_run
from assets_app.models import Asset, Gateway, Run
from backfills_app.services import request_from_text, retry_failed
from slicewise_server.events.feed import forget_events
from slicewise_server.events.models import Event, EventKind, FailedPartition, ReportedFailure
from tests.attempts import begin_next, begun, publish
from tests.backfills.driven_backfills import run_all
from tests.created_backfills import create_backfill
from tests.factories import DAILY_2013, asset
from tests.threads import wait_for_end_or_lock

pytestmark = pytest.mark.django_db
NO_ROWS = Failure(error="ValueError: no rows")


def written_events() -> list[tuple[str, int | None]]:
    """List the kinds of the written events with their runs, the earliest first."""
    return list(Event.objects.order_by("id").values_list("kind", "run_id"))


def failed_runs() -> list[list[int]]:
    recovered = Event.objects.filter(kind=EventKind.RUN_RECOVERED).order_by("id")
    return [event.detail["failed_runs"] for event in recovered]


def fail(attempt: attempts.Attempt) -> int:
    """Fail an attempt; return the number of its run."""
    ending.fail(attempt.row, NO_ROWS)
    return attempt.run.pk


@pytest.fixture
def flights(db: None) -> Asset:
    return asset("flights", DAILY_2013)


def test_a_run_that_a_person_retries_tells_its_success(
    flights: Asset, alice: User, gateway: Gateway
) -> None:
    run_id = fail(begun(flights, alice, gateway))
    retry_run(Run.objects.get(pk=run_id), user=alice)
    publish(begin_next(Run.objects.get(pk=run_id), gateway))
    assert written_events() == [("run_failed", run_id), ("run_recovered", run_id)]
    assert failed_runs() == [[run_id]]


def test_a_run_that_fails_again_after_a_retry_tells_one_success(
    flights: Asset, alice: User, gateway: Gateway
) -> None:
    run_id = fail(begun(flights, alice, gateway))
    retry_run(Run.objects.get(pk=run_id), user=alice)
    fail(begin_next(Run.objects.get(pk=run_id), gateway))
    retry_run(Run.objects.get(pk=run_id), user=alice)
    publish(begin_next(Run.objects.get(pk=run_id), gateway))
    kinds = [kind for kind, _ in written_events()]
    assert kinds == ["run_failed", "run_failed", "run_recovered"]


def test_retries_of_the_run_itself_tell_nothing(alice: User, gateway: Gateway) -> None:
    flights = asset("flights", DAILY_2013, options={"retries": 1})
    failing = begun(flights, alice, gateway)
    fail(failing)
    Run.objects.update(not_before=None)
    publish(begin_next(failing.run, gateway))
    assert written_events() == []


def test_a_success_of_its_own_retries_tells_the_end_of_an_earlier_failure(
    alice: User, gateway: Gateway
) -> None:
    flights = asset("flights", DAILY_2013, options={"retries": 1})
    first = begun(flights, alice, gateway)
    Run.objects.filter(pk=first.run.pk).update(code_failures=1)
    fail(first)
    second = begun(flights, alice, gateway)
    fail(second)
    Run.objects.update(not_before=None)
    publish(begin_next(second.run, gateway))
    assert written_events() == [("run_failed", first.run.pk), ("run_recovered", second.run.pk)]


def test_a_success_of_another_partition_tells_no_end(
    flights: Asset, alice: User, gateway: Gateway
) -> None:
    first = fail(begun(flights, alice, gateway, "2013-01-01"))
    publish(begun(flights, alice, gateway, "2013-01-02"))
    assert written_events() == [("run_failed", first)]
    third = begun(flights, alice, gateway, "2013-01-01")
    publish(third)
    publish(begun(flights, alice, gateway, "2013-01-01"))
    assert written_events() == [("run_failed", first), ("run_recovered", third.run.pk)]


def test_failures_of_several_runs_of_a_partition_end_at_once(
    flights: Asset, alice: User, gateway: Gateway
) -> None:
    runs = [fail(begun(flights, alice, gateway)) for _ in range(3)]
    publish(begun(flights, alice, gateway))
    assert failed_runs() == [runs]
    assert Event.objects.get(kind="run_recovered").detail["failures"] == 3


def test_a_failure_of_several_partitions_is_over_when_the_last_is_materialized(
    flights: Asset, alice: User, gateway: Gateway
) -> None:
    flights = asset("days", DAILY_2013, options={"strategy": "range"})
    failing = fail(begun(flights, alice, gateway, "2013-01-01..2013-01-03"))
    publish(begun(flights, alice, gateway, "2013-01-01"))
    publish(begun(flights, alice, gateway, "2013-01-03"))
    assert written_events() == [("run_failed", failing)]
    last = begun(flights, alice, gateway, "2013-01-02")
    publish(last)
    assert written_events() == [("run_failed", failing), ("run_recovered", last.run.pk)]


def test_partitions_of_a_partial_publication_end_earlier_failures(
    alice: User, gateway: Gateway
) -> None:
    days = asset("days", DAILY_2013, options={"strategy": "range"})
    first = fail(begun(days, alice, gateway, "2013-01-01"))
    partial = begun(days, alice, gateway, "2013-01-01..2013-01-02")
    run_id, row = partial.run.pk, partial.row
    partial.run.partitions.update(path="x")
    partial.run.partitions.filter(partition__key="2013-01-01").update(path="published")
    with transaction.atomic():
        Run.objects.filter(pk=run_id).update(state="publishing")
        Run.objects.filter(pk=run_id).update(state="failed", ended_at=timezone.now())
        settling.record_partial_success(run_id, row.pk, {days.pk: ["published"]})
    assert sorted(written_events()) == sorted(
        [("run_failed", first), ("run_failed", run_id), ("run_recovered", run_id)]
    )
    assert failed_runs() == [[first]]
    assert FailedPartition.objects.get().run_id == run_id


def test_failures_of_a_backfill_end_with_its_retry(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    request = request_from_text("raw_flights", "2013-01-01", "2013-01-03")
    backfill = create_backfill(request, user=alice)
    run_all(worker, failing=("2013-01-02",))
    retry_failed(backfill, user=alice)
    run_all(worker)
    recovered = Event.objects.get(kind=EventKind.RUN_RECOVERED)
    assert recovered.backfill_id == backfill.pk
    failed = Event.objects.get(kind=EventKind.RUN_FAILED)
    assert recovered.detail["failed_runs"] == [failed.run_id]


def test_a_backfill_that_ends_a_failure_of_a_request_tells_it_to_the_rules_of_the_failure(
    flights: Asset, alice: User, gateway: Gateway, worker: Gateway
) -> None:
    failed = fail(begun(flights, alice, gateway))
    create_backfill(request_from_text("flights", "2013-01-01", "2013-01-02"), user=alice)
    run_all(worker)
    recovered = Event.objects.get(kind=EventKind.RUN_RECOVERED)
    # A rule without single runs of backfills has reported the failure.
    assert recovered.backfill_id is None
    assert recovered.detail["trigger"] == "backfill"
    assert recovered.detail["failed_runs"] == [failed]


def test_a_partition_that_another_run_publishes_first_stays_open_for_a_later_failure(
    flights: Asset, alice: User, gateway: Gateway
) -> None:
    publish(begun(flights, alice, gateway))
    failed = fail(begun(flights, alice, gateway))
    canceled = begun(flights, alice, gateway)
    Run.objects.filter(pk=canceled.run.pk).update(state="canceling")
    assert ending.cancel(canceled.row)
    assert written_events() == [("run_failed", failed)]
    assert ReportedFailure.objects.get().open_partitions == 1


def test_failures_without_an_end_are_forgotten_with_their_events(
    flights: Asset, alice: User, gateway: Gateway
) -> None:
    fail(begun(flights, alice, gateway))
    days = timedelta(days=settings.EVENT_DAYS)
    forget_events(timezone.now() + days - timedelta(hours=1))
    assert FailedPartition.objects.count() == ReportedFailure.objects.count() == 1
    forget_events(timezone.now() + days + timedelta(hours=1))
    assert not FailedPartition.objects.exists()
    assert not ReportedFailure.objects.exists()
    publish(begun(flights, alice, gateway))
    assert not Event.objects.filter(kind=EventKind.RUN_RECOVERED).exists()


@pytest.mark.django_db(transaction=True)
def test_runs_that_end_at_the_same_time_tell_the_end_once(alice: User, gateway: Gateway) -> None:
    days = asset("days", DAILY_2013, options={"strategy": "range"})
    group = materialize(
        MaterializeRequest(asset=days, selection="2013-01-01..2013-01-02"), user=alice
    )
    fail(begin_next(group.runs.get(), gateway))
    ends = [begun(days, alice, gateway, f"2013-01-0{day}") for day in (1, 2)]
    has_ended, may_commit = threading.Event(), threading.Event()

    def end_first() -> None:
        try:
            with transaction.atomic():
                publish(ends[0])
                has_ended.set()
                assert may_commit.wait(60)
        finally:
            connection.close()

    def end_second() -> None:
        try:
            publish(ends[1])
        finally:
            connection.close()

    threads = [threading.Thread(target=end_first), threading.Thread(target=end_second)]
    threads[0].start()
    assert has_ended.wait(60)
    threads[1].start()
    wait_for_end_or_lock(threads[1])
    may_commit.set()
    for thread in threads:
        thread.join(60)
    assert Event.objects.filter(kind=EventKind.RUN_RECOVERED).count() == 1
