"""A backfill from its request to its end: expanded, admitted a little at a time, with true counts
at each moment.
"""

from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, transaction

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import AssetPartition, Gateway, Run, RunState
from backfills_app.models import BackfillAsset, BackfillPartition
from backfills_app.services import cancel_backfill, request_from_text
from backfills_app.services.advance.admission import AHEAD, admit
from backfills_app.services.advance.advancing import advance
from backfills_app.services.advance.expansion import expand
from slicewise_server.web.request_errors import ConflictingRequest
from tests.attempts import begun, publish
from tests.backfills.driven_backfills import counts_of, run_all, start, state_of
from tests.created_backfills import create_backfill
from tests.factories import DAILY_2013, DAY_BY_AIRPORT, asset
from tests.partition_records import counts_agree_with_partitions


def test_it_is_there_at_once_and_is_expanded_by_the_worker(alice: User) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    assert (backfill.state, BackfillPartition.objects.count()) == ("creating", 0)
    expand(backfill.pk)
    assert state_of(backfill) == "scheduled"
    assert counts_of(backfill) == {"waiting": 31}


def test_its_columns_say_who_asked_for_what_of_which_code(alice: User) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice, description="after the fix")
    assert backfill.name.startswith("backfill_raw_flights_2")
    assert backfill.logical_dates == "2013-01-01..2013-01-31"
    assert backfill.origin_code == "def raw_flights(): ..."
    assert backfill.relative_fileloc == "flights.py"
    assert (backfill.submitted_by, backfill.description) == (alice, "after the fix")
    assert backfill.group.queue == "backfill"


def test_two_within_one_second_have_names_of_their_own(alice: User) -> None:
    asset("raw_flights", DAILY_2013)
    assert start(alice).name != start(alice).name


def test_expansion_goes_on_where_it_was_broken_off(alice: User, monkeypatch: Any) -> None:
    monkeypatch.setattr("backfills_app.services.advance.expansion.CHUNK", 10)
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    assert expand(backfill.pk)
    assert (state_of(backfill), counts_of(backfill)) == ("creating", {"waiting": 10})
    while expand(backfill.pk):
        pass
    positions = BackfillPartition.objects.order_by("position").values_list("position", "key")
    assert [position for position, _ in positions] == list(range(31))
    assert [key for _, key in positions] == [key.text for key in DAILY_2013.select("2013-01")]


def test_expansion_of_a_product_in_chunks_names_each_partition_once(
    alice: User, monkeypatch: Any
) -> None:
    monkeypatch.setattr("backfills_app.services.advance.expansion.CHUNK", 7)
    asset("weather", DAY_BY_AIRPORT)
    backfill = create_backfill(request_from_text("weather", "2013-01-01", "2013-01-31"), user=alice)
    while expand(backfill.pk):
        pass
    keys = list(BackfillPartition.objects.order_by("position").values_list("key", flat=True))
    assert keys == [key.text for key in DAY_BY_AIRPORT.select("date=2013-01")]


def test_only_a_little_of_it_stands_in_the_queue(alice: User) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice, max_active_runs=2)
    advance()
    advance()
    assert Run.objects.count() == 2 * AHEAD
    assert counts_of(backfill) == {"active": 6, "waiting": 25}


def test_it_says_when_it_began_while_its_first_runs_are_at_work(
    alice: User, worker: Gateway
) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    advance()
    advance()
    backfill.refresh_from_db()
    assert (backfill.state, backfill.run_start_date) == ("running", None)
    dispatch()
    first = attempts.begin(Run.objects.earliest("id").pk, worker)
    assert first is not None
    advance()
    backfill.refresh_from_db()
    assert backfill.run_start_date == Run.objects.get(pk=first.run.pk).started_at


def test_all_succeed(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    run_all(worker)
    assert (state_of(backfill), counts_of(backfill)) == ("succeeded", {"succeeded": 31})
    assert backfill.run_start_date is not None
    assert backfill.run_end_date is not None
    assert AssetPartition.objects.filter(state="materialized").count() == 31
    assert counts_agree_with_partitions()


def test_never_more_than_max_active_runs_are_sent(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    start(alice, max_active_runs=2)
    advance()
    dispatch()
    dispatch()
    assert Run.objects.filter(state=RunState.DISPATCHED).count() == 2


def test_one_failure_makes_it_partially_failed(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    run_all(worker, failing=("2013-01-13",))
    assert state_of(backfill) == "partially_failed"
    assert counts_of(backfill) == {"succeeded": 30, "failed": 1}


def test_nothing_but_failures_makes_it_failed(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice, strategy="range")
    run_all(worker, failing=("2013-01-01",))
    assert (state_of(backfill), counts_of(backfill)) == ("failed", {"failed": 31})


def test_materialized_partitions_are_skipped_unless_all_are_requested(
    alice: User, worker: Gateway
) -> None:
    asset("raw_flights", DAILY_2013)
    run_all_of = start(alice, end="2013-01-10")
    run_all(worker)
    rest = start(alice)
    run_all(worker)
    whole_backfill = start(alice, existing="all")
    run_all(worker)
    assert counts_of(run_all_of) == {"succeeded": 10}
    assert counts_of(rest) == {"succeeded": 21, "skipped": 10}
    assert counts_of(whole_backfill) == {"succeeded": 31}
    skipped = BackfillPartition.objects.filter(state="skipped")
    assert set(skipped.values_list("reason", flat=True)) == {"exists"}


def test_partitions_in_flight_are_skipped_with_that_reason(
    alice: User, worker: Gateway, gateway: Gateway
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    begun(flights, alice, gateway, "2013-01-13")
    backfill = start(alice)
    run_all(worker)
    assert (state_of(backfill), counts_of(backfill)) == (
        "succeeded",
        {"succeeded": 30, "skipped": 1},
    )
    skipped = BackfillPartition.objects.get(state="skipped")
    assert (skipped.key, skipped.reason) == ("2013-01-13", "in_flight")


def test_a_backfill_of_materialized_partitions_alone_ends_at_once(
    alice: User, worker: Gateway
) -> None:
    asset("raw_flights", DAILY_2013)
    start(alice)
    run_all(worker)
    again = start(alice)
    advance()
    assert (state_of(again), counts_of(again)) == ("succeeded", {"skipped": 31})


def test_partitions_materialized_while_they_waited_are_skipped(
    alice: User, worker: Gateway, gateway: Gateway
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    expand(backfill.pk)
    publish(begun(flights, alice, gateway, "2013-01-05"))
    run_all(worker)
    assert counts_of(backfill) == {"succeeded": 30, "skipped": 1}


def test_runs_of_n_do_not_span_a_hole(alice: User, worker: Gateway, gateway: Gateway) -> None:
    flights = asset("raw_flights", DAILY_2013)
    publish(begun(flights, alice, gateway, "2013-01-03"))
    backfill = start(alice, end="2013-01-08", strategy=4)
    run_all(worker)
    selections = backfill.group.runs.order_by("id").values_list("selection", flat=True)
    assert list(selections) == ["2013-01-01..2013-01-02", "2013-01-04..2013-01-07", "2013-01-08"]


def test_canceling_ends_what_waits_at_once_and_waits_for_what_runs(
    alice: User, worker: Gateway
) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice, max_active_runs=2)
    advance()
    dispatch()
    running = attempts.begin(
        Run.objects.filter(state=RunState.DISPATCHED)
        .order_by("id")
        .values_list("id", flat=True)[0],
        worker,
    )
    assert running is not None
    assert cancel_backfill(backfill, user=alice).state == "canceling"
    assert counts_of(backfill) == {"active": 1, "canceled": 30}
    ending.cancel(running.row)
    assert (state_of(backfill), counts_of(backfill)) == ("canceled", {"canceled": 31})
    assert not AssetPartition.objects.filter(held_by__isnull=False).exists()
    with pytest.raises(ConflictingRequest, match="canceled already"):
        cancel_backfill(backfill, user=alice)


def test_more_than_one_request_may_cancel_is_canceled_piece_by_piece(
    alice: User, worker: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfills_app.services.advance.carrying.AT_A_TIME", 10)
    asset("raw_flights", DAILY_2013)
    backfill = start(alice, max_active_runs=1)
    advance()
    cancel_backfill(backfill, user=alice)
    queued = AHEAD
    assert state_of(backfill) == "canceling"
    assert counts_of(backfill) == {"waiting": 31 - queued - 10, "canceled": queued + 10}
    advance()
    assert counts_of(backfill) == {"waiting": 31 - queued - 20, "canceled": queued + 20}
    assert state_of(backfill) == "canceling"
    advance()
    assert counts_of(backfill) == {"canceled": 31}
    assert state_of(backfill) == "canceled"
    assert not Run.objects.exclude(state=RunState.CANCELED).exists()


def test_canceling_while_all_its_runs_are_queued_ends_it(alice: User) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    advance()
    assert cancel_backfill(backfill, user=alice).state == "canceled"
    assert counts_of(backfill) == {"canceled": 31}
    assert Run.objects.exclude(state=RunState.CANCELED).count() == 0


def test_canceling_before_expansion_leaves_nothing_to_do(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    assert cancel_backfill(backfill, user=alice).state == "canceled"
    run_all(worker)
    assert not Run.objects.exists()


def test_the_database_refuses_counts_that_do_not_add_up(alice: User) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    expand(backfill.pk)
    with pytest.raises(IntegrityError, match="backfill_counts_add_up"), transaction.atomic():
        BackfillAsset.objects.filter(backfill=backfill).update(waiting=0)


def test_a_manual_request_does_not_wait_behind_a_backfill(
    alice: User, worker: Gateway, gateway: Gateway
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    start(alice)
    advance()
    group = materialize(MaterializeRequest(asset=flights, selection="2013-06-01"), user=alice)
    dispatch()
    assert group.runs.get().state == RunState.DISPATCHED


def test_admission_stops_while_a_group_is_paused(alice: User) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    expand(backfill.pk)
    backfill.group.paused = True
    backfill.group.save()
    assert admit(backfill.pk) == 0


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("expanded", [0, 10])
def test_a_backfill_that_cannot_be_expanded_fails_and_says_why(
    alice: User, worker: Gateway, monkeypatch: Any, expanded: int
) -> None:
    monkeypatch.setattr("backfills_app.services.advance.expansion.CHUNK", 10)
    asset("raw_flights", DAILY_2013)
    backfill = start(alice)
    if expanded:
        expand(backfill.pk)
    BackfillAsset.objects.update(selection="no such partition")
    run_all(worker)
    assert state_of(backfill) == "failed"
    assert "could not be expanded" in backfill.error
    assert backfill.run_end_date is not None
    assert counts_of(backfill) == ({"canceled": expanded} if expanded else {})
    assert not Run.objects.exists()


def test_a_backfill_that_is_in_trouble_keeps_no_other_waiting(
    alice: User, worker: Gateway, monkeypatch: Any
) -> None:
    asset("raw_flights", DAILY_2013)
    odd, healthy = start(alice, end="2013-01-02"), start(alice, start="2013-01-05")
    real = expand

    def broken(backfill_id: int) -> bool:
        if backfill_id == odd.pk:
            raise OperationalError("the connection was lost")
        return real(backfill_id)

    with monkeypatch.context() as patched:
        patched.setattr("backfills_app.services.advance.advancing.expand", broken)
        run_all(worker)
        assert (state_of(odd), state_of(healthy)) == ("creating", "succeeded")
    run_all(worker)
    assert state_of(odd) == "succeeded"
