"""Backfills of assets with ``depends_on_past``: one partition after the other, with an end in any
case.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

import slicewise
from accounts_app.models import User
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.queue.waiting import wake_waiting
from assets_app.execution.request.retrying import retry_run
from assets_app.models import (
    Asset,
    AssetPartition,
    AwaitedPartition,
    Gateway,
    Producer,
    ProducerVersion,
    Run,
)
from backfills_app.models import Backfill, BackfillAsset, BackfillPartition
from backfills_app.queries.skips import retried_skips
from backfills_app.services import (
    change_backfill,
    check_backfill,
    pause_backfill,
    request_from_text,
    resume_backfill,
    retry_failed,
)
from backfills_app.services.advance.advancing import advance
from slicewise_server.web.request_errors import InvalidRequest
from tests.attempts import begun, publish
from tests.backfills.driven_backfills import (
    ask,
    drive,
    end,
    failing_keys,
    following,
    outcomes,
    state_of,
)
from tests.factories import AIRPORTS, DAILY_2013, asset
from tests.partition_records import counts_agree_with_partitions

BY_AIRPORT = slicewise.PartitionByProduct({"date": DAILY_2013, "airport": AIRPORTS})


def balances(of: str | None = None, partition: slicewise.PartitionDefinition = DAILY_2013) -> Asset:
    inlets = {of: None} if of else {}
    return following("balances", partition, of=inlets, depends_on_past=True)


def made(of: Asset, user: User, gateway: Gateway, *selections: str) -> None:
    for selection in selections:
        publish(begun(of, user, gateway, selection, strategy="range"))


def runs_of(backfill: Backfill) -> dict[str, str]:
    """Return the states of the backfill's runs by selection."""
    return dict(backfill.group.runs.order_by("id").values_list("selection", "state"))


def step(worker: Gateway, *, except_days: tuple[str, ...] = ()) -> list[str]:
    """Bring the runs of one tick to their end, and return the keys."""
    # Heard of, however slow the machine is.
    Gateway.objects.update(last_seen=timezone.now())
    wake_waiting(timezone.now())
    advance()
    dispatch()
    sent = Run.objects.filter(state="dispatched").exclude(selection__in=except_days)
    sent_runs = list(sent.order_by("id").values_list("id", "selection"))
    for run_id, _ in sent_runs:
        end(run_id, worker)
    return [key for _, key in sent_runs]


def test_partitions_after_a_missing_partition_are_skipped_without_waiting(
    alice: User, worker: Gateway, gateway: Gateway
) -> None:
    raw = asset("raw", DAILY_2013)
    made(raw, alice, gateway, "2013-01-01..2013-01-04", "2013-01-06..2013-01-31")
    balances("raw")
    backfill = ask(alice, "balances", selection="2013-01")
    drive(worker)
    assert state_of(backfill) == "partially_failed"
    assert outcomes(backfill, "balances") == {"succeeded": 4, "upstream_missing": 27}
    skipped = backfill.group.runs.filter(state="skipped").first()
    assert skipped is not None
    assert skipped.error == "The previous partition is missing, and no run is to materialize it."
    assert counts_agree_with_partitions()
    # Once it is there the rest follows.
    made(raw, alice, gateway, "2013-01-05")
    retry_failed(backfill, user=alice)
    drive(worker)
    assert (state_of(backfill), outcomes(backfill, "balances")) == ("succeeded", {"succeeded": 31})


def test_a_hole_in_the_selection_is_not_waited_for(alice: User, worker: Gateway) -> None:
    balances()
    backfill = ask(alice, "balances", selection="2013-01-01,2013-01-05..2013-01-20")
    drive(worker)
    assert state_of(backfill) == "partially_failed"
    assert outcomes(backfill, "balances") == {"succeeded": 1, "upstream_missing": 16}


def test_the_first_that_was_ever_asked_for_has_no_past(alice: User, worker: Gateway) -> None:
    balances()
    backfill = ask(alice, "balances", selection="2013-06-10..2013-06-20")
    drive(worker)
    assert outcomes(backfill, "balances") == {"succeeded": 11}


def test_all_partitions_after_a_failure_are_skipped_as_upstream_failed(
    alice: User, worker: Gateway
) -> None:
    balances()
    backfill = ask(alice, "balances", selection="2013-01-01..2013-01-20")
    drive(worker, failing=failing_keys("2013-01-03"))
    assert outcomes(backfill, "balances") == {"succeeded": 2, "failed": 1, "upstream_failed": 17}


def test_partitions_wait_for_an_earlier_partition_of_another_run(
    alice: User, worker: Gateway, gateway: Gateway
) -> None:
    other_attempt = begun(balances(), alice, gateway, "2013-01-05")
    backfill = ask(alice, "balances", selection="2013-01-01..2013-01-20")
    drive(worker)
    assert runs_of(backfill)["2013-01-06"] == "waiting"
    publish(other_attempt)
    drive(worker)
    assert outcomes(backfill, "balances") == {"succeeded": 19, "in_flight": 1}


@pytest.mark.parametrize("strategy", ["partition", 2])
@pytest.mark.parametrize("partition", [DAILY_2013, BY_AIRPORT])
def test_none_comes_before_one_that_is_still_held_up(
    alice: User, worker: Gateway, strategy: str | int, partition: slicewise.PartitionDefinition
) -> None:
    asset("raw", DAILY_2013)
    following("balances", partition, of={"raw": None}, depends_on_past=True)
    backfill = ask(
        alice, "raw", selection="2013-01", downstream="all", max_active_runs=4, strategy=strategy
    )
    late = "2013-01-03" if strategy == "partition" else "2013-01-03..2013-01-04"
    for _ in range(12):
        step(worker, except_days=(late,))
    of_balances = Run.objects.filter(asset__name="balances")
    assert set(of_balances.values_list("state", flat=True)) == {"succeeded"}
    of_asset = BackfillPartition.objects.filter(backfill_asset__asset__name="balances")
    begun_ones = of_asset.filter(run__isnull=False).values_list("key", flat=True)
    assert {key[:10] for key in begun_ones} == {
        "2013-01-01",
        "2013-01-02",
    }
    drive(worker)
    number = 31 * (1 if partition is DAILY_2013 else 3)
    assert state_of(backfill) == "succeeded"
    assert outcomes(backfill, "balances") == {"succeeded": number}
    assert not AwaitedPartition.objects.filter(run__state="skipped").exists()


def test_a_retry_makes_what_failed_before_what_waits_for_it(alice: User, worker: Gateway) -> None:
    balances()
    backfill = ask(alice, "balances", selection="2013-01-01..2013-01-20", max_active_runs=1)
    advance()
    advance()
    dispatch()
    first = backfill.group.runs.get(state="dispatched")
    assert list(runs_of(backfill).values()) == ["dispatched", "waiting", "waiting"]
    end(first.pk, worker, failing=failing_keys("2013-01-01"))
    # Before what waits was told of it: it does not hear of it any more.
    retry_failed(backfill, user=alice)
    assert wake_waiting(timezone.now()) == 0
    drive(worker)
    assert (state_of(backfill), outcomes(backfill, "balances")) == ("succeeded", {"succeeded": 20})


def test_partitions_that_waited_too_long_are_retried(
    alice: User, worker: Gateway, gateway: Gateway, settings: Any
) -> None:
    other_attempt = begun(balances(), alice, gateway, "2013-01-05")
    backfill = ask(alice, "balances", selection="2013-01-05..2013-01-06")
    drive(worker)
    settings.DEPENDS_ON_PAST_HOURS = 0
    assert wake_waiting(timezone.now() + timedelta(minutes=1)) == 1
    assert outcomes(backfill, "balances") == {"in_flight": 1, "wait_timeout": 1}
    assert retried_skips(BackfillAsset.objects.all()).exists()
    publish(other_attempt)
    retry_failed(backfill, user=alice)
    drive(worker)
    assert outcomes(backfill, "balances") == {"in_flight": 1, "succeeded": 1}


def paused(backfill: Backfill, user: User) -> None:
    pause_backfill(backfill, user=user)


def lowered(backfill: Backfill, user: User) -> None:
    change_backfill(backfill, max_active_runs=1, user=user)


@pytest.mark.parametrize("act", [paused, lowered])
def test_waiting_runs_are_withdrawn_with_the_runs_that_they_wait_for(
    alice: User, worker: Gateway, gateway: Gateway, act: Callable[[Backfill, User], None]
) -> None:
    made(balances(), alice, gateway, "2013-01-01..2013-01-20")
    backfill = ask(alice, "balances", selection="2013-01-01..2013-01-20", existing="all")
    advance()
    advance()
    assert list(runs_of(backfill).values()) == ["queued", *["waiting"] * 8]
    act(backfill, alice)
    assert runs_of(backfill) == {}
    assert not AwaitedPartition.objects.exists()
    assert not AssetPartition.objects.filter(held_by__isnull=False).exists()
    assert wake_waiting(timezone.now()) == 0
    if act is paused:
        resume_backfill(backfill, user=alice)
    drive(worker)
    assert outcomes(backfill, "balances") == {"succeeded": 20}
    ended = Run.objects.filter(group=backfill.group).order_by("ended_at")
    assert list(ended.values_list("selection", flat=True)) == [
        f"2013-01-{day:02}" for day in range(1, 21)
    ]
    assert counts_agree_with_partitions()


def test_runs_that_have_waited_are_withdrawn_and_retried_runs_are_not(
    alice: User, worker: Gateway
) -> None:
    balances()
    backfill = ask(alice, "balances", selection="2013-01-01..2013-01-06")
    advance()
    advance()
    third = backfill.group.runs.get(selection="2013-01-03")
    cancel_run(third, user=alice)
    retry_run(third, user=alice)
    dispatch()
    end(backfill.group.runs.get(selection="2013-01-01").pk, worker)
    wake_waiting(timezone.now())
    assert runs_of(backfill)["2013-01-02"] == "queued"
    pause_backfill(backfill, user=alice)
    assert "2013-01-02" not in runs_of(backfill)
    assert runs_of(backfill)["2013-01-03"] in ("queued", "dispatched")


def test_partitions_of_a_paused_backfill_are_materialized_before_the_waiting_partitions(
    alice: User, worker: Gateway
) -> None:
    balances()
    first = ask(alice, "balances", selection="2013-01-01..2013-01-03")
    advance()
    advance()
    second = ask(alice, "balances", selection="2013-01-01..2013-01-20", max_active_runs=1)
    advance()
    advance()
    assert set(runs_of(second).values()) == {"waiting"}
    pause_backfill(first, user=alice)
    drive(worker)
    assert (state_of(second), outcomes(second, "balances")) == ("succeeded", {"succeeded": 20})
    resume_backfill(first, user=alice)
    drive(worker)
    assert outcomes(first, "balances") == {"exists": 3}


def test_the_order_stays_oldest_first(alice: User, worker: Gateway) -> None:
    asset("raw", DAILY_2013)
    balances("raw")
    backfill = ask(alice, "raw", selection="2013-01", downstream="all")
    advance()
    for order in ("newest", "listed"):
        with pytest.raises(InvalidRequest) as refused:
            change_backfill(backfill, order=order, user=alice)
        assert "(balances)" in refused.value.errors["order"][0]
    backfill.refresh_from_db()
    assert backfill.order == "oldest"


@pytest.mark.parametrize("order", ["newest", "listed"])
def test_a_downstream_asset_that_depends_on_its_past_requires_the_order_oldest(
    alice: User, order: str
) -> None:
    asset("raw", DAILY_2013)
    balances("raw")
    request = {"selection": "2013-01", "order": order}
    check_backfill(request_from_text("raw", **request), user=alice)
    with pytest.raises(InvalidRequest, match="order is oldest"):
        check_backfill(request_from_text("raw", **request, downstream="all"), user=alice)


def test_the_order_is_judged_by_the_version_that_is_used(
    alice: User, worker: Gateway, gateway: Gateway
) -> None:
    balances_asset = asset("balances", DAILY_2013)
    backfill = ask(alice, "balances", selection="2013-01-01..2013-01-03", order="newest")
    drive(worker, failing=failing_keys("2013-01-02"))
    old = ProducerVersion.objects.get()
    now = ProducerVersion.objects.get()
    now.pk, now.digest = None, "1" * 64
    now.bundle_version = balances_asset.bundle.versions.create(digest="1" * 64, archive=b"")
    now.definition = {**old.definition, "depends_on_past": True}
    now.save()
    Producer.objects.update(current_version=now)
    with pytest.raises(InvalidRequest, match="order is oldest"):
        ask(alice, "balances", selection="2013-01-01", order="newest")
    with pytest.raises(InvalidRequest) as refused:
        retry_failed(backfill, code="newest", user=alice)
    assert set(refused.value.errors) == {"code"}
    request = {"selection": "2013-01-01", "order": "newest", "existing": "all"}
    by_old = ask(alice, "balances", **request, code_version=str(old.bundle_version_id))
    assert by_old.order == "newest"
