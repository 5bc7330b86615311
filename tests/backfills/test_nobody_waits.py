"""Requests about a backfill while others claim, expand and record: no request waits for them."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue.control import cancel_group
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.execution.request.retrying import retry_run
from assets_app.models import AssetPartition, Gateway, Run, RunState
from backfills_app.models import Backfill, BackfillAsset, BackfillPartition
from backfills_app.services import (
    cancel_backfill,
    change_backfill,
    delete_backfill,
    pause_backfill,
    resume_backfill,
    retry_failed,
)
from backfills_app.services.advance import admission
from backfills_app.services.advance.admission import admit
from backfills_app.services.advance.admitted_rows import mark_skipped
from backfills_app.services.advance.advancing import advance
from backfills_app.services.advance.expansion import expand
from backfills_app.services.advance.waiting import mark_all_ready
from backfills_app.services.bookkeeping import counting
from backfills_app.services.bookkeeping.locks import lock
from backfills_app.services.control import retrying_failed
from backfills_app.services.partitions.stored import stored_scopes
from slicewise_server.web.request_errors import ConflictingRequest
from tests.backfills.driven_backfills import ask, drive, end, failing_keys, following, state_of
from tests.factories import DAILY_2013, asset
from tests.threads import elsewhere, locked_partitions

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def in_the_way(backfill: Backfill) -> Iterator[None]:
    """Lock the backfill, its runs and assets on another connection, as a long admission does."""
    is_locked, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            lock(backfill.pk)
            list(Run.objects.filter(group=backfill.group).select_for_update())
            list(BackfillAsset.objects.filter(backfill=backfill).select_for_update())
            is_locked.set()
            may_go.wait(120)

    thread = elsewhere(hold)
    assert is_locked.wait(120)
    try:
        # Whoever waits for a lock longer than this is refused, which no test here expects.
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '60s'")
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = 0")
        may_go.set()
        thread.join()


def test_partitions_that_a_large_run_records_keep_no_backfill_from_its_turn(
    alice: User, worker: Gateway
) -> None:
    busy, free = asset("raw_flights", DAILY_2013), asset("weather", DAILY_2013)
    materialize(MaterializeRequest(asset=busy, selection="2013-01-01"), user=alice)
    cancel_group(Run.objects.get().group, user=alice)
    ask(alice, busy.name, selection="2013-01")
    ask(alice, free.name, selection="2013-01")
    may_end = threading.Event()
    holder = locked_partitions(busy, may_end)

    def move_on() -> None:
        for _ in range(3):
            advance()

    moving = elsewhere(move_on)
    moving.join(60)
    is_over, names = not moving.is_alive(), set(Run.objects.values_list("asset__name", flat=True))
    admitted = Run.objects.filter(state=RunState.QUEUED).values_list("asset__name", flat=True)
    queued = set(admitted)
    may_end.set()
    holder.join()
    moving.join()
    assert is_over
    assert names == {busy.name, free.name}
    assert queued == {free.name}
    drive(worker)
    assert set(Backfill.objects.values_list("state", flat=True)) == {"succeeded"}


def test_a_backfill_waits_longer_each_time_for_locked_partitions_and_says_so(
    alice: User, worker: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_REPORTED_AFTER", 3)
    flights = asset("raw_flights", DAILY_2013)
    materialize(MaterializeRequest(asset=flights, selection="2013-01-01"), user=alice)
    cancel_group(Run.objects.get().group, user=alice)
    backfill = ask(alice, flights.name, selection="2013-01-01..2013-01-03")
    may_end = threading.Event()
    holder, waits = locked_partitions(flights, may_end), list[float]()
    while not backfill.stalled_error and len(waits) < 5:
        began = time.monotonic()
        advance()
        waits.append(time.monotonic() - began)
        backfill.refresh_from_db()
    may_end.set()
    holder.join()
    assert "had locked the next partitions 3 times in a row" in backfill.stalled_error
    assert backfill.try_again_at
    assert waits[-1] > 0.75
    Backfill.objects.update(try_again_at=None)
    drive(worker)
    backfill.refresh_from_db()
    assert (backfill.state, backfill.stalled_error) == ("succeeded", "")
    assert backfill.pk not in admission._lock_timeouts


def nobody_holds_a_partition() -> bool:
    return not AssetPartition.objects.filter(held_by__isnull=False).exists()


def test_a_pause_is_answered_at_once_and_gives_its_partitions_back(
    alice: User, worker: Gateway
) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = ask(alice, "raw_flights", selection="2013-01")
    advance()
    with in_the_way(backfill):
        assert pause_backfill(backfill, user=alice).state == "paused"
        # Nothing of it starts from now on.
        assert dispatch() == 0
    assert not nobody_holds_a_partition()
    advance()
    assert nobody_holds_a_partition()
    with in_the_way(backfill):
        change_backfill(backfill, user=alice, order="newest", max_active_runs=1)
        assert resume_backfill(backfill, user=alice).state == "scheduled"
    drive(worker)
    assert state_of(backfill) == "succeeded"


def test_a_cancel_is_answered_at_once_and_ends_all_of_it(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = ask(alice, "raw_flights", selection="2013-01")
    advance()
    with in_the_way(backfill):
        assert cancel_backfill(backfill, user=alice).state == "canceling"
        assert dispatch() == 0
    advance()
    assert state_of(backfill) == "canceled"
    assert nobody_holds_a_partition()
    assert set(Run.objects.values_list("state", flat=True)) == {RunState.CANCELED}


def test_a_retry_and_a_deletion_are_answered_at_once(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = ask(alice, "raw_flights", selection="2013-01-01..2013-01-02")
    drive(worker, failing=failing_keys("2013-01-01"))
    with in_the_way(backfill):
        assert retry_failed(backfill, user=alice).state == "running"
        with pytest.raises(ConflictingRequest, match="cancel the backfill first"):
            delete_backfill(backfill, user=alice)
    drive(worker)
    assert state_of(backfill) == "succeeded"
    with in_the_way(backfill):
        assert delete_backfill(backfill, user=alice).deleted


def test_a_retried_run_is_waited_for_whoever_had_the_lock(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None})
    backfill = ask(alice, "raw_flights", selection="2013-01-01..2013-01-02", downstream="all")
    advance()
    dispatch()
    run = Run.objects.order_by("pk")[0]
    attempt = attempts.begin(run.pk, worker)
    assert attempt is not None
    ending.fail(attempt.row, Failure(error="ValueError: no"))
    # Its downstream partition may be admitted by now, and has not been.
    mark_all_ready(stored_scopes(backfill))
    downstream = BackfillPartition.objects.filter(backfill_asset__asset__name="delays")
    assert downstream.filter(ready=True).exists()
    admitting = threading.Event(), threading.Event()

    def admit_slowly() -> None:
        with transaction.atomic():
            lock(backfill.pk)
            admitting[0].set()
            admitting[1].wait(120)

    thread = elsewhere(admit_slowly)
    assert admitting[0].wait(120)
    retry_run(run, user=alice)
    admitting[1].set()
    thread.join()
    advance()
    assert set(downstream.values_list("state", "reason")) == {("waiting", "")}
    drive(worker)
    assert state_of(backfill) == "succeeded"


def test_the_end_of_another_run_is_seen_however_close_it_is_to_the_decision(
    alice: User, worker: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    asset("raw_flights", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None})
    ask(alice, "raw_flights", selection="2013-01-01")
    advance()
    dispatch()
    other_run = Run.objects.get()
    backfill = ask(alice, "raw_flights", selection="2013-01-01..2013-01-02", downstream="all")

    def ended_meanwhile(rows: Any, reasons: Any, holders: Any) -> None:
        if holders and Run.objects.filter(pk=other_run.pk, state=RunState.DISPATCHED).exists():
            elsewhere(lambda: end(other_run.pk, worker)).join()
        mark_skipped(rows, reasons, holders)

    monkeypatch.setattr(admission, "mark_skipped", ended_meanwhile)
    with monkeypatch.context() as patched:
        patched.setattr("backfills_app.services.advance.advancing._admit", lambda _pk: None)
        advance()
    admit(backfill.pk)
    assert Run.objects.get(pk=other_run.pk).state == RunState.SUCCEEDED
    first = BackfillPartition.objects.get(backfill_asset__asset__name="delays", key="2013-01-01")
    admit(backfill.pk)
    first.refresh_from_db()
    assert (first.state, first.ready) == ("active", True)


def test_a_cancel_and_the_retry_of_one_of_its_runs_do_not_wait_for_each_other(
    alice: User, worker: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = ask(alice, "raw_flights", selection="2013-01", max_active_runs=1)
    advance()
    dispatch()
    failed = Run.objects.order_by("pk")[0]
    end(failed.pk, worker, failing=lambda _attempt: True)
    has_counted, may_go = threading.Event(), threading.Event()
    refused: list[str] = []

    def slowly(ids: Any) -> None:
        has_counted.set()
        may_go.wait(120)
        counting.reopen(ids)

    def retry() -> None:
        try:
            retry_run(failed, user=alice)
        except ConflictingRequest as refusal:
            refused.append(str(refusal))

    monkeypatch.setattr(retrying_failed, "reopen", slowly)
    thread = elsewhere(retry)
    assert has_counted.wait(120)
    cancel_in_time(lambda: cancel_backfill(backfill, user=alice))
    may_go.set()
    thread.join()
    assert [text for text in refused if "is being canceled" in text] == refused != []
    advance()
    assert state_of(backfill) == "canceled"
    assert nobody_holds_a_partition()


def cancel_in_time(act: Callable[[], Any]) -> None:
    """Act; a wait of a minute for a lock is an error."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '60s'")
    try:
        act()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = 0")


@pytest.mark.parametrize("partitions", [30, 31])
def test_references_are_checked_before_rows_are_taken_that_requests_need(
    alice: User, worker: Gateway, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    """Not by the commit, which takes a minute then where a run has a million partitions."""
    monkeypatch.setattr(counting, "_MANY", 31)
    asset("raw_flights", DAILY_2013)
    selection = f"2013-01-01..2013-01-{partitions}"
    backfill = ask(alice, "raw_flights", selection=selection, strategy="range")

    def steps_of(work: Callable[[], Any]) -> list[str]:
        with CaptureQueriesContext(connection) as statements:
            work()
        row_locks = 'FROM "backfills_app_backfill"', "FOR NO KEY UPDATE"
        return [
            "checked" if query["sql"] == "SET CONSTRAINTS ALL IMMEDIATE" else "taken"
            for query in statements
            if query["sql"] == "SET CONSTRAINTS ALL IMMEDIATE"
            or all(words in query["sql"] for words in row_locks)
        ]

    expected = ["checked", "taken"] if partitions == 31 else ["taken"]
    assert steps_of(lambda: expand(backfill.pk)) == expected
    assert steps_of(lambda: admit(backfill.pk)) == expected
    dispatch()
    run = Run.objects.get()
    assert steps_of(lambda: end(run.pk, worker)) == expected
    assert state_of(backfill) == "succeeded"
