"""Assets with ``depends_on_past``: a partition is made once the one before is materialized."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.attempt import ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue import awaited_partitions, waiting
from assets_app.execution.queue.claims import RunSpec, claim
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.queue.waiting import wake_waiting
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.execution.request.retrying import retry_run
from assets_app.models import (
    Asset,
    AssetPartition,
    AwaitedPartition,
    Gateway,
    Run,
    RunGroup,
    RunState,
    Target,
    Trigger,
)
from slicewise import PartitionByProduct
from slicewise.partitions.rows import partition_rows
from tests.attempts import begin_next, publish
from tests.factories import AIRPORTS, DAILY_2013, asset, definition_of
from tests.partition_records import counts_agree_with_partitions
from tests.query_plans import rows_read
from tests.queued_runs import claim_runs


@pytest.fixture
def balances(db: None) -> Asset:
    return asset("balances", DAILY_2013, options={"depends_on_past": True})


def ask(of: Asset, *selections: str, trigger: Trigger = Trigger.SCHEDULE) -> list[Run]:
    """Create a run for each selection, in one claim, as a schedule or a backfill does."""
    planned = [
        list(partition_rows(of.definition, definition_of(of).select(selection)))
        for selection in selections
    ]
    return claim_runs(of, planned, trigger=trigger)


def make(run: Run, gateway: Gateway) -> None:
    publish(begin_next(run, gateway))


def fail(run: Run, gateway: Gateway) -> None:
    assert ending.fail(begin_next(run, gateway).row, Failure(error="no"))


def states() -> list[str]:
    return list(Run.objects.order_by("id").values_list("state", flat=True))


def test_runs_start_one_after_the_other(balances: Asset, gateway: Gateway) -> None:
    days = ask(balances, "2013-01-01", "2013-01-02", "2013-01-03")
    assert states() == ["queued", "waiting", "waiting"]
    assert [row.key for row in days[1].awaited_partitions.all()] == ["2013-01-01"]
    assert wake_waiting(timezone.now()) == 0
    make(days[0], gateway)
    assert wake_waiting(timezone.now()) == 1
    assert states() == ["succeeded", "queued", "waiting"]
    make(days[1], gateway)
    wake_waiting(timezone.now())
    make(days[2], gateway)
    assert states() == ["succeeded"] * 3


def test_awaited_partitions_of_a_run_are_removed_with_its_end(
    balances: Asset, gateway: Gateway, alice: User
) -> None:
    days = ask(balances, *(f"2013-01-0{day}" for day in range(1, 5)))
    make(days[0], gateway)
    wake_waiting(timezone.now())
    assert days[1].awaited_partitions.exists(), (
        "it is queued, and may be withdrawn as one that has waited"
    )
    fail(days[1], gateway)
    cancel_run(days[2], user=alice)
    wake_waiting(timezone.now() + timedelta(days=365))
    assert states() == ["succeeded", "failed", "canceled", "skipped"]
    assert not AwaitedPartition.objects.exists()


def test_a_row_that_was_locked_at_the_end_is_removed_by_the_next_look(
    balances: Asset, gateway: Gateway
) -> None:
    """The end of a run waits for no holder of its rows."""
    _, second = ask(balances, "2013-01-01", "2013-01-02")
    Run.objects.filter(pk=second.pk).update(state=RunState.CANCELED, ended_at=timezone.now())
    assert AwaitedPartition.objects.exists()
    wake_waiting(timezone.now())
    assert not AwaitedPartition.objects.exists()


def test_partitions_of_a_run_are_read_only_where_something_waits_for_the_asset(
    balances: Asset, gateway: Gateway
) -> None:
    ask(balances, "2013-01-01", "2013-01-02")
    free = asset("free", DAILY_2013)
    year_run = ask(free, "2013")[0]
    parameters = {"runs": [year_run.pk]}
    assert rows_read(awaited_partitions._SCHEDULE_CHECKS, parameters) < 100, (
        "none of its 365 partitions"
    )


def test_the_first_that_was_ever_asked_for_has_no_past(balances: Asset) -> None:
    ask(balances, "2013-06-01")
    assert states() == ["queued"]


def test_a_hole_before_it_is_waited_for(balances: Asset, gateway: Gateway) -> None:
    make(ask(balances, "2013-01-01")[0], gateway)
    late = ask(balances, "2013-01-03")[0]
    assert late.state == RunState.WAITING
    make(ask(balances, "2013-01-02")[0], gateway)
    wake_waiting(timezone.now())
    late.refresh_from_db()
    assert late.state == RunState.QUEUED
    assert late.queued_at is not None


def test_a_run_of_several_waits_for_the_one_before_its_first(
    balances: Asset, gateway: Gateway
) -> None:
    chunks = ask(balances, "2013-01-01..2013-01-10", "2013-01-11..2013-01-20")
    assert states() == ["queued", "waiting"]
    assert [row.key for row in AwaitedPartition.objects.all()] == ["2013-01-10"]
    make(chunks[0], gateway)
    wake_waiting(timezone.now())
    assert states() == ["succeeded", "queued"]


def test_segments_wait_each_for_themselves(gateway: Gateway) -> None:
    by_airport = PartitionByProduct({"date": DAILY_2013, "airport": AIRPORTS})
    both = asset("both", by_airport, options={"depends_on_past": True})
    make(ask(both, "date=2013-01-01 airport=JFK")[0], gateway)
    ask(
        both,
        "date=2013-01-02 airport=JFK",
        "date=2013-01-02 airport=LGA",
        "date=2013-01-03 airport=LGA",
    )
    assert states() == ["succeeded", "queued", "queued", "waiting"]


def test_runs_wait_for_an_earlier_partition_that_is_materialized_again(
    balances: Asset, gateway: Gateway
) -> None:
    make(ask(balances, "2013-01-01")[0], gateway)
    ask(balances, "2013-01-01")
    assert ask(balances, "2013-01-02")[0].state == RunState.WAITING


def test_a_failure_is_waited_over_until_somebody_mends_it(
    balances: Asset, gateway: Gateway, alice: User
) -> None:
    first, second = ask(balances, "2013-01-01", "2013-01-02")
    fail(first, gateway)
    assert wake_waiting(timezone.now()) == 0
    retry_run(first, user=alice)
    make(first, gateway)
    wake_waiting(timezone.now())
    assert states() == ["succeeded", "queued"]
    assert second.pk


@pytest.mark.parametrize("is_failed", [True, False])
def test_nothing_waits_for_ever(
    balances: Asset, gateway: Gateway, settings: Any, is_failed: bool
) -> None:
    first, second = ask(balances, "2013-01-01", "2013-01-02")
    if is_failed:
        fail(first, gateway)
    over = timezone.now() + timedelta(hours=settings.DEPENDS_ON_PAST_HOURS, minutes=1)
    assert wake_waiting(over - timedelta(minutes=2)) == 0
    assert wake_waiting(over) == 1
    second.refresh_from_db()
    assert second.state == RunState.SKIPPED
    assert second.skip_reason == ("upstream_failed" if is_failed else "wait_timeout")
    partition = AssetPartition.objects.get(key="2013-01-02")
    assert (partition.state, partition.held_by) == ("skipped", None)
    assert second.partitions.get().state == "skipped"
    assert counts_agree_with_partitions()


def test_runs_that_waited_too_long_all_at_once_are_skipped_as_if_one_by_one(
    balances: Asset, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The servers were down while the limit passed; a check reads few rows, in any order."""
    fail(ask(balances, "2013-01-01", *[f"2013-01-{day:02}" for day in range(2, 9)])[0], gateway)
    assert states() == ["failed", *["waiting"] * 7]
    monkeypatch.setattr(waiting, "_AT_ONCE", 3)
    AwaitedPartition.objects.update(look_at=Now() + F("id") * timedelta(seconds=-1))
    for _ in range(20):
        wake_waiting(timezone.now() + timedelta(days=9))
        AwaitedPartition.objects.exclude(look_at=None).update(
            look_at=F("look_at") - timedelta(days=10)
        )
    assert states() == ["failed", *["skipped"] * 7]
    assert set(Run.objects.filter(state="skipped").values_list("skip_reason", flat=True)) == {
        "upstream_failed"
    }


def test_runs_behind_a_run_that_never_ended_have_waited_too_long(
    balances: Asset, gateway: Gateway
) -> None:
    ask(balances, *[f"2013-01-{day:02}" for day in range(1, 6)])
    wake_waiting(timezone.now() + timedelta(days=9))
    assert states() == ["queued", *["skipped"] * 4]
    assert set(Run.objects.filter(state="skipped").values_list("skip_reason", flat=True)) == {
        "wait_timeout"
    }


def test_runs_that_wait_for_each_other_do_so_until_the_limit(
    balances: Asset, gateway: Gateway
) -> None:
    make(ask(balances, "2013-01-01")[0], gateway)
    ask(balances, "2013-01-03,2013-01-05", "2013-01-04,2013-01-06")
    assert states() == ["succeeded", "waiting", "waiting"]
    wake_waiting(timezone.now() + timedelta(days=9))
    assert states() == ["succeeded", "skipped", "skipped"]


def test_a_backfill_does_not_wait_for_what_has_failed(balances: Asset, gateway: Gateway) -> None:
    days = ask(balances, "2013-01-01", "2013-01-02", "2013-01-03", trigger=Trigger.BACKFILL)
    fail(days[0], gateway)
    wake_waiting(timezone.now())
    assert states() == ["failed", "skipped", "waiting"]
    wake_waiting(timezone.now())
    assert states() == ["failed", "skipped", "skipped"]
    assert set(Run.objects.exclude(skip_reason="").values_list("skip_reason", flat=True)) == {
        "upstream_failed"
    }


def test_a_person_goes_ahead_in_order_and_is_told(
    balances: Asset, gateway: Gateway, alice: User
) -> None:
    make(ask(balances, "2013-01-01")[0], gateway)
    request = MaterializeRequest(asset=balances, selection="2013-01-05..2013-01-06")
    group = materialize(request, user=alice)
    assert group.earlier_missing == ["2013-01-04"]
    assert list(group.runs.order_by("id").values_list("state", flat=True)) == ["queued", "waiting"]
    request = MaterializeRequest(asset=balances, selection="2013-01-02")
    assert materialize(request, user=alice).earlier_missing == []


def test_a_waiting_run_is_canceled_at_once(balances: Asset, alice: User) -> None:
    _, second = ask(balances, "2013-01-01", "2013-01-02")
    assert cancel_run(second, user=alice).state == RunState.CANCELED
    assert AssetPartition.objects.get(key="2013-01-02").held_by is None


def test_hundreds_that_wait_stand_before_nobody(balances: Asset, gateway: Gateway) -> None:
    make(ask(balances, "2013-01-01")[0], gateway)
    days = [f"{row.key}" for row in partition_rows(DAILY_2013, DAILY_2013.select("2013"))]
    ask(balances, *days[2:])
    other_asset = asset("other")
    group = RunGroup.objects.create(kind="schedule")
    assert other_asset.producer
    assert other_asset.producer.current_version
    terms = RunSpec(
        target=Target(other_asset), producer_version=other_asset.producer.current_version,
        group=group, trigger=Trigger.SCHEDULE, params={}, requested_by=None,
    )  # fmt: skip
    claim(terms, [list(partition_rows(None, None))])
    assert dispatch() == 1
    assert group.runs.get().state == RunState.DISPATCHED


def test_without_it_nothing_waits(db: None) -> None:
    flights = asset("flights", DAILY_2013)
    ask(flights, "2013-01-01", "2013-01-02")
    assert states() == ["queued", "queued"]
    assert not AwaitedPartition.objects.exists()
