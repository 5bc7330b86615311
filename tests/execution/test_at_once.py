"""Events at the same moment, on connections of their own."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from accounts_app.models import AuditEntry
from assets_app.catalogue.freshness_watches import store_watches
from assets_app.execution.attempt import ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.leases import end_lease, renew_all
from assets_app.execution.queue import control, transitions
from assets_app.execution.queue.control import cancel_group
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request import patience
from assets_app.execution.request.forgetting import lock_partitions
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.execution.request.retrying import rerun, retry_run
from assets_app.execution.request.runtime_partitions import remove_partitions
from assets_app.models import (
    Asset,
    AssetPartition,
    FailureKind,
    FreshnessWatch,
    Lease,
    ProducerVersion,
    Run,
    RunGroup,
    RunState,
)
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest
from tests.attempts import begun
from tests.execution.conftest import make_gateway
from tests.factories import DAILY_2013, asset, person
from tests.partition_records import made
from tests.runtime_keys import CUSTOMERS, find_keys, known
from tests.threads import elsewhere, locked_partitions, wait_for_end_or_lock

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_run_that_goes_back_to_the_queue_meanwhile_is_canceled_all_the_same() -> None:
    alice = person("alice", is_superuser=True)
    attempt = begun(asset("raw_flights", DAILY_2013), alice, make_gateway("scheduled"))
    threads: list[threading.Thread] = []

    def fail() -> None:
        ending.fail(attempt.row, Failure(error="gone", kind=FailureKind.PLATFORM))

    def move_all(run_ids: list[int], old: RunState, new: RunState, **fields: Any) -> list[int]:
        moved = transitions.move_all(run_ids, old, new, **fields)
        # The cancel looks for queued runs several times; the attempt fails once.
        if old == RunState.QUEUED and not threads:
            threads.append(elsewhere(fail))
            wait_for_end_or_lock(threads[0])
        return moved

    with patch.object(control, "move_all", move_all):
        assert cancel_group(attempt.run.group, user=alice) == 1
    threads[0].join()
    assert Run.objects.get().state == RunState.CANCELING


@pytest.mark.parametrize("work", ["lock partitions", "store watches"])
def test_work_on_partitions_and_watches_keeps_no_new_run_of_the_asset_waiting(work: str) -> None:
    flights = asset("raw_flights", DAILY_2013)
    made(flights, "2013-01-01..2013-01-03")
    now = timezone.now()
    FreshnessWatch.objects.create(
        asset=flights, identity=flights.identity, freshness={}, watched_until=now
    )
    lock: dict[str, Callable[[], object]] = {
        "lock partitions": lambda: lock_partitions(AssetPartition.objects.filter(asset=flights)),
        "store watches": lambda: store_watches(flights.bundle, [], [], now=now),
    }
    refusals: list[OperationalError] = []

    def refer_to_the_asset() -> None:
        with connection.cursor() as cursor:
            try:
                # The lock that a row takes whose foreign key names the asset.
                cursor.execute(
                    "SELECT FROM assets_app_asset WHERE id = %s FOR KEY SHARE NOWAIT", [flights.pk]
                )
            except OperationalError as refused:
                refusals.append(refused)

    with transaction.atomic():
        lock[work]()
        elsewhere(refer_to_the_asset).join()
    assert not refusals


@pytest.mark.parametrize("asked_for", ["materialize", "retry", "rerun"])
def test_a_request_for_locked_partitions_is_answered_and_leaves_nothing(asked_for: str) -> None:
    alice = person("alice", is_superuser=True)
    flights = asset("raw_flights", DAILY_2013)
    request = MaterializeRequest(asset=flights, selection="2013-01-01..2013-01-03")
    run = materialize(request, user=alice).runs.order_by("id")[0]
    cancel_group(run.group, user=alice)
    asks: dict[str, Callable[[], object]] = {
        "materialize": lambda: materialize(request, user=alice),
        "retry": lambda: retry_run(run, user=alice),
        "rerun": lambda: rerun(run, user=alice),
    }
    before = Run.objects.count(), RunGroup.objects.count(), AuditEntry.objects.count()
    refusals: list[ConflictingRequest] = []

    def ask() -> None:
        try:
            asks[asked_for]()
        except ConflictingRequest as refused:
            refusals.append(refused)

    may_end = threading.Event()
    holder = locked_partitions(flights, may_end)
    asking = elsewhere(ask)
    asking.join(60)
    # They are locked for longer than that.
    is_answered = not asking.is_alive()
    may_end.set()
    holder.join()
    asking.join()
    assert is_answered
    (refused,) = refusals
    assert "Nothing was changed: repeat the request" in str(refused)
    assert before == (Run.objects.count(), RunGroup.objects.count(), AuditEntry.objects.count())
    assert asks[asked_for]()


def test_a_request_within_a_transaction_waits_for_no_row_at_its_end() -> None:
    """A request with an Idempotency-Key is such a request: the key is kept in one transaction with
    the answer.
    """
    alice = person("alice", is_superuser=True)
    flights = asset("raw_flights", DAILY_2013)
    request = MaterializeRequest(asset=flights, selection="2013-01-01")
    is_locked, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            assert list(ProducerVersion.objects.select_for_update())
            is_locked.set()
            may_end.wait(120)

    def ask() -> str:
        with transaction.atomic():
            materialize(request, user=alice)
            with connection.cursor() as cursor:
                cursor.execute("SHOW lock_timeout")
                return str(cursor.fetchone()[0])

    holder = elsewhere(hold)
    assert is_locked.wait(120)
    try:
        with pytest.raises(ConflictingRequest, match="repeat the request"):
            ask()
    finally:
        may_end.set()
        holder.join()
    assert not Run.objects.exists()
    assert ask() == "0", "what comes after the request may wait"


def test_a_backfill_that_is_being_canceled_keeps_no_other_from_its_slots() -> None:
    alice, gateway = person("alice", is_superuser=True), make_gateway("scheduled")
    busy, free = asset("raw_flights", DAILY_2013), asset("weather", DAILY_2013)
    for name in (busy, free):
        materialize(MaterializeRequest(asset=name, selection="2013-01"), user=alice)
    canceled = RunGroup.objects.order_by("id")[0]
    RunGroup.objects.filter(pk=canceled.pk).update(priority=5)
    is_held, may_go = threading.Event(), threading.Event()

    def cancel() -> None:
        with transaction.atomic():
            list(Run.objects.filter(group=canceled).select_for_update())
            is_held.set()
            may_go.wait(120)

    thread = elsewhere(cancel)
    assert is_held.wait(120)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '60s'")
        assert dispatch() == 2 * gateway.slots
        sent = Run.objects.filter(state=RunState.DISPATCHED)
        assert set(sent.values_list("asset__name", flat=True)) == {"weather"}
    finally:
        may_go.set()
        thread.join()
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = 0")


def test_an_attempt_that_is_being_ended_keeps_no_other_from_its_lease() -> None:
    alice, gateway = person("alice", is_superuser=True), make_gateway("scheduled")
    flights = asset("raw_flights", DAILY_2013)
    ending = begun(flights, alice, gateway, "2013-01-01")
    other_attempt = begun(flights, alice, gateway, "2013-01-02")
    Lease.objects.update(until=timezone.now())
    is_held, may_go = threading.Event(), threading.Event()

    def settle() -> None:
        with transaction.atomic():
            end_lease(ending.row)
            is_held.set()
            may_go.wait(120)

    thread = elsewhere(settle)
    assert is_held.wait(120)
    states = renew_all([ending.row, other_attempt.row])
    is_still_held = thread.is_alive()
    may_go.set()
    thread.join()
    assert is_still_held, "it was waited for"
    assert states == {ending.row.token: "running", other_attempt.row.token: "running"}
    renewed = Lease.objects.filter(until__gt=timezone.now() + timedelta(seconds=5))
    assert [lease.attempt_id for lease in renewed] == [other_attempt.row.pk]


@pytest.mark.parametrize("is_retry", [False, True])
@pytest.mark.parametrize("is_run_first", [True, False])
def test_a_key_is_not_removed_while_another_request_claims_the_key(
    monkeypatch: pytest.MonkeyPatch, *, is_run_first: bool, is_retry: bool
) -> None:
    monkeypatch.setattr(patience, "_LONGEST_WAIT", "60s")
    alice = person("alice", is_superuser=True)
    find_keys(CUSTOMERS, "acme", "bolt")
    models = asset("models", CUSTOMERS)
    refusals: list[str] = []
    if is_retry:
        attempt = begun(models, alice, make_gateway("scheduled"), "acme;bolt", strategy="range")
        ending.fail(attempt.row, Failure(error="no"))

    def run() -> None:
        of = Asset.objects.get(pk=models.pk)
        if is_retry:
            retry_run(Run.objects.get(), user=alice)
        else:
            materialize(MaterializeRequest(asset=of, selection="acme;bolt"), user=alice)

    def remove() -> None:
        remove_partitions(Asset.objects.get(pk=models.pk), ["acme"], user=alice)

    def ask(request: Callable[[], None]) -> None:
        try:
            request()
        except InvalidRequest as refusal:
            refusals.append(str(refusal))

    first, second = (run, remove) if is_run_first else (remove, run)
    with transaction.atomic():
        first()
        thread = elsewhere(lambda: ask(second))
        wait_for_end_or_lock(thread)
    thread.join()
    (refusal,) = refusals
    if is_run_first:
        assert "is materializing models acme: wait" in refusal
        assert known(models) == ["acme", "bolt"]
    else:
        assert refusal.endswith("models has no partition acme any more.")
        assert known(models) == ["bolt"]
        assert not AssetPartition.objects.filter(held_by__isnull=False).exists()


def test_no_removed_key_is_run_again() -> None:
    alice, gateway = person("alice", is_superuser=True), make_gateway("scheduled")
    find_keys(CUSTOMERS, "acme", "bolt")
    models = asset("models", CUSTOMERS)
    attempt = begun(models, alice, gateway, "acme;bolt", strategy="range")
    ending.fail(attempt.row, Failure(error="no"))
    remove_partitions(models, ["acme"], user=alice)
    for request in (rerun, retry_run):
        with pytest.raises(InvalidRequest, match="models has no partition acme any more"):
            request(attempt.run, user=alice)
    assert Run.objects.get().state == RunState.FAILED
