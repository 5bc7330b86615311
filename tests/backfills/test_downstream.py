"""Downstream assets in a backfill: each by its own mapping, after its upstream assets."""

from datetime import timedelta

import pytest
from django.utils import timezone

import slicewise
from accounts_app.models import User
from assets_app.models import Asset, AssetPartition, Gateway, Run
from backfills_app.models import Backfill, BackfillAsset, BackfillPartition
from backfills_app.services import (
    HeldPartitions,
    check_backfill,
    request_from_text,
    retry_failed,
)
from backfills_app.services.advance.advancing import advance
from backfills_app.views.plans import planned_page
from slicewise_server.web.request_errors import InvalidRequest
from tests.attempts import begun, publish
from tests.backfills.driven_backfills import (
    ask,
    drive,
    end,
    failing_keys,
    following,
    outcomes,
    plan_of,
    state_of,
)
from tests.factories import AIRPORTS, DAILY_2013, DAY_BY_AIRPORT, asset
from tests.partition_records import counts_agree_with_partitions

WEEKLY = slicewise.PartitionByInterval("@weekly", start="2013-01-01", end="2014-01-01")
MONTHLY = slicewise.PartitionByInterval("@monthly", start="2013-01-01", end="2014-01-01")


def test_all_that_follow_are_made_after_what_they_need(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None})
    following("months", MONTHLY, of={"delays": None})
    following("whole", of={"months": None})
    plan = plan_of(alice, "raw_flights", selection="2013-01..2013-02", downstream="all")
    assert {name: (row.total, row.to_materialize, row.runs) for name, row in plan.items()} == {
        "raw_flights": (59, 59, 59), "delays": (59, 59, 59), "months": (2, 2, 2),
        "whole": (1, 1, 1),
    }  # fmt: skip
    backfill = ask(alice, "raw_flights", selection="2013-01..2013-02", downstream="all")
    drive(worker)
    assert state_of(backfill) == "succeeded"
    for name, planned in plan.items():
        assert outcomes(backfill, name) == {"succeeded": planned.to_materialize}
    first_of = {name: Run.objects.filter(asset__name=name).earliest("id").pk for name in plan}
    last_of = {name: Run.objects.filter(asset__name=name).latest("id").pk for name in plan}
    assert last_of["months"] < first_of["whole"]
    # A day is not left behind until all days are made.
    assert first_of["delays"] < last_of["raw_flights"]
    assert counts_agree_with_partitions()


def test_a_partition_waits_for_all_that_it_needs(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    following("months", MONTHLY, of={"raw_flights": None})
    ask(alice, "raw_flights", selection="2013-01", downstream="all", strategy=30, max_active_runs=9)
    advance()
    advance()
    first, second = Run.objects.order_by("id")
    for run in (second, first):
        assert not Run.objects.filter(asset__name="months").exists()
        Run.objects.filter(pk=run.pk).update(state="dispatched")
        end(run.pk, worker)
        advance()
    assert Run.objects.filter(asset__name="months").exists()


def test_a_failed_partition_blocks_only_what_follows_it(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None})
    following("months", MONTHLY, of={"delays": None})
    backfill = ask(alice, "raw_flights", selection="2013-01..2013-02", downstream="all")
    drive(worker, failing=failing_keys("2013-01-13"))
    assert state_of(backfill) == "partially_failed"
    assert outcomes(backfill, "raw_flights") == {"succeeded": 58, "failed": 1}
    assert outcomes(backfill, "delays") == {"succeeded": 58, "upstream_failed": 1}
    assert outcomes(backfill, "months") == {"succeeded": 1, "upstream_failed": 1}


def test_missing_upstream_partitions_are_previewed_and_their_downstream_is_skipped(
    alice: User, worker: Gateway, gateway: Gateway
) -> None:
    asset("raw_flights", DAILY_2013)
    weather = asset("weather", DAILY_2013)
    publish(begun(weather, alice, gateway, "2013-01-01..2013-01-20", strategy="range"))
    following("delays", DAILY_2013, of={"raw_flights": None, "weather": None})
    following("weeks", WEEKLY, of={"delays": None})
    plan = plan_of(alice, "raw_flights", selection="2013-01", downstream="all")
    assert (plan["delays"].to_materialize, plan["delays"].upstream_missing) == (20, 11)
    # Weeks that begin on the 6th, 13th and 20th, and the one before, which needs the year before.
    assert (plan["weeks"].total, plan["weeks"].to_materialize) == (4, 2)
    backfill = ask(alice, "raw_flights", selection="2013-01", downstream="all")
    drive(worker)
    assert state_of(backfill) == "partially_failed"
    assert outcomes(backfill, "delays") == {"succeeded": 20, "upstream_missing": 11}
    assert outcomes(backfill, "weeks") == {"succeeded": 2, "upstream_missing": 2}


def test_downstream_partitions_wait_for_partitions_of_another_run(
    alice: User, worker: Gateway, gateway: Gateway
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None})
    other_attempt = begun(flights, alice, gateway, "2013-01-02")
    plan = plan_of(alice, "raw_flights", selection="2013-01", downstream="all")
    assert (plan["raw_flights"].in_flight, plan["delays"].to_materialize) == (1, 31)
    other_runs = HeldPartitions(None, "other runs", other_attempt.run.group_id, 1)
    assert plan["raw_flights"].in_flight_by == (other_runs,)
    backfill = ask(alice, "raw_flights", selection="2013-01", downstream="all")
    drive(worker)
    assert state_of(backfill) == "running"
    assert outcomes(backfill, "delays") == {"succeeded": 30, "waiting": 1}
    publish(other_attempt)
    drive(worker)
    assert state_of(backfill) == "succeeded"
    assert outcomes(backfill, "raw_flights") == {"succeeded": 30, "in_flight": 1}
    assert outcomes(backfill, "delays") == {"succeeded": 31}
    skipped = BackfillPartition.objects.get(reason="in_flight")
    assert skipped.run_id == other_attempt.run.pk


def test_outlets_of_one_function_follow_once(alice: User, worker: Gateway) -> None:
    following("both", DAILY_2013, of={}, outlets=["one", "two"])
    following("after", DAILY_2013, of={"two": None})
    plan = plan_of(alice, "one", selection="2013-01", downstream="all")
    assert list(plan) == ["one", "after"]
    assert plan["one"].materialized_with == ("two",)
    backfill = ask(alice, "one", selection="2013-01", downstream="all")
    drive(worker)
    assert state_of(backfill) == "succeeded"
    assert AssetPartition.objects.filter(asset__name="two", state="materialized").count() == 31
    assert outcomes(backfill, "after") == {"succeeded": 31}


def test_chosen_assets_follow_by_way_of_others(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None})
    following("months", MONTHLY, of={"delays": None})
    following("spend", AIRPORTS, of={"raw_flights": None})
    plan = plan_of(alice, "raw_flights", selection="2013-01", downstream=["months"])
    assert list(plan) == ["raw_flights", "months"]
    # Nothing makes the days that the month needs.
    assert (plan["months"].total, plan["months"].upstream_missing) == (1, 1)
    with pytest.raises(InvalidRequest, match="nothing_such is not downstream of raw_flights"):
        plan_of(alice, "raw_flights", selection="2013-01", downstream=["nothing_such"])
    with pytest.raises(InvalidRequest, match="Either all or names"):
        plan_of(alice, "raw_flights", selection="2013-01", downstream="all,months")


def test_either_side_of_a_schedule_suffices(alice: User, worker: Gateway, gateway: Gateway) -> None:
    asset("a", DAILY_2013)
    b = asset("b", DAILY_2013)
    either = {"kind": "any", "of": [{"kind": "asset", "name": "a"}, {"kind": "asset", "name": "b"}]}
    following("c", DAILY_2013, of={"a": None, "b": None}, schedule=either)
    both = {**either, "kind": "all"}
    following("d", DAILY_2013, of={"a": None, "b": None}, schedule=both)
    publish(begun(b, alice, gateway, "2013-01-01..2013-01-03", strategy="range"))
    backfill = ask(alice, "a", selection="2013-01", downstream="all")
    plan = plan_of(alice, "a", selection="2013-01", downstream="all")
    assert (plan["c"].to_materialize, plan["d"].to_materialize) == (31, 3)
    drive(worker, failing=failing_keys("2013-01-02", "2013-01-05"))
    assert outcomes(backfill, "a") == {"succeeded": 29, "failed": 2}
    assert outcomes(backfill, "c")["upstream_failed"] == 1
    # Of the fifth nothing else is there either, whatever becomes of its run.
    assert outcomes(backfill, "d") == {
        "succeeded": 2, "upstream_failed": 1, "upstream_missing": 28,
    }  # fmt: skip


def test_a_backfill_waits_for_no_tick_of_a_schedule(alice: User, worker: Gateway) -> None:
    asset("a", DAILY_2013)
    after_a, daily = {"kind": "asset", "name": "a"}, {"kind": "cron", "expression": "@daily"}
    following("c", DAILY_2013, of={"a": None}, schedule={"kind": "any", "of": [after_a, daily]})
    following("d", DAILY_2013, of={"a": None}, schedule={"kind": "all", "of": [after_a, daily]})
    # By itself a time lets all go; beside it the asset is needed.
    alone = [plan_of(alice, name, selection="2013-01")[name] for name in ("c", "d")]
    assert [(plan.to_materialize, plan.upstream_missing) for plan in alone] == [(31, 0), (0, 31)]
    backfill = ask(alice, "a", selection="2013-01", downstream="all")
    drive(worker, failing=failing_keys("2013-01-02"))
    # It was tried, and failed by itself.
    assert outcomes(backfill, "c") == {"succeeded": 30, "failed": 1}
    assert outcomes(backfill, "d") == {"succeeded": 30, "upstream_failed": 1}


def test_segments_follow_segments(alice: User, worker: Gateway) -> None:
    asset("weather", DAY_BY_AIRPORT)
    following("daily", DAILY_2013, of={"weather": None})
    named = slicewise.PartitionBySequence(["EWR", "JFK", "LGA"], name="airport")
    following("airports", named, of={"weather": None})
    selection = "date=2013-01-01..2013-01-03 airport=EWR,LGA"
    plan = plan_of(alice, "weather", selection=selection, downstream="all")
    assert (plan["weather"].to_materialize, plan["daily"].upstream_missing) == (6, 3)
    assert (plan["airports"].total, plan["airports"].upstream_missing) == (2, 2)
    whole_plan = plan_of(alice, "weather", selection="2013-01-01|EWR", downstream="all")
    assert whole_plan["weather"].to_materialize == 1
    backfill = ask(
        alice, "weather", selection="date=2013 airport=EWR,LGA", downstream="all", strategy="range"
    )
    drive(worker)
    assert outcomes(backfill, "airports") == {"succeeded": 2}
    assert outcomes(backfill, "daily") == {"upstream_missing": 365}


def test_stale_partitions_are_made_where_that_is_asked_for(
    alice: User, worker: Gateway, gateway: Gateway
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None})
    ask(alice, "raw_flights", selection="2013-01", downstream="all", strategy=7)
    drive(worker)
    publish(begun(flights, alice, gateway, "2013-01-10..2013-01-11", strategy="range"))
    plan = plan_of(alice, "delays", selection="2013-01", existing="stale")
    assert (plan["delays"].stale, plan["delays"].to_materialize, plan["delays"].existing) == (
        2,
        2,
        29,
    )
    backfill = ask(alice, "delays", selection="2013-01", existing="stale")
    drive(worker)
    assert outcomes(backfill, "delays") == {"succeeded": 2, "exists": 29}
    again = plan_of(alice, "delays", selection="2013-01", existing="stale")
    assert again["delays"].to_materialize == 0


def test_partitions_that_become_stale_before_the_start_are_materialized(
    alice: User, worker: Gateway, gateway: Gateway
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None})
    ask(alice, "raw_flights", selection="2013-01", downstream="all", strategy=7)
    drive(worker)
    start_at = timezone.now() + timedelta(hours=10)
    backfill = ask(alice, "delays", selection="2013-01", existing="stale", start_at=start_at)
    advance()
    assert (state_of(backfill), outcomes(backfill, "delays")) == ("scheduled", {"waiting": 31})
    publish(begun(flights, alice, gateway, "2013-01-10..2013-01-11", strategy="range"))
    Backfill.objects.filter(pk=backfill.pk).update(scheduled_date=timezone.now())
    drive(worker)
    assert state_of(backfill) == "succeeded"
    assert outcomes(backfill, "delays") == {"succeeded": 2, "exists": 29}


def test_partitions_downstream_of_materialized_partitions_are_stale(
    alice: User, worker: Gateway
) -> None:
    asset("raw_flights", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None})
    ask(alice, "raw_flights", selection="2013-01", downstream="all")
    drive(worker)
    BackfillAsset.objects.all().delete()
    partitions = AssetPartition.objects.filter(asset__name="raw_flights", key__lt="2013-01-11")
    partitions.update(state="failed")
    plan = plan_of(alice, "raw_flights", selection="2013-01", downstream="all", existing="stale")
    assert (plan["raw_flights"].to_materialize, plan["delays"].to_materialize) == (10, 10)
    backfill = ask(alice, "raw_flights", selection="2013-01", downstream="all", existing="stale")
    drive(worker)
    assert outcomes(backfill, "delays") == {"succeeded": 10, "exists": 21}


def test_partitions_downstream_of_failed_partitions_are_materialized_after_the_retry(
    alice: User, worker: Gateway
) -> None:
    asset("raw_flights", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None})
    following("report", DAILY_2013, of={"delays": None})
    ask(alice, "raw_flights", selection="2013-01", downstream="all")
    drive(worker)
    raw = AssetPartition.objects.filter(asset__name="raw_flights", key="2013-01-05")
    raw.update(state="failed")
    BackfillAsset.objects.all().delete()
    request = {"selection": "2013-01", "downstream": "all", "existing": "stale"}
    plan = plan_of(alice, "raw_flights", **request)
    assert [plan[name].to_materialize for name in ("raw_flights", "delays", "report")] == [1, 1, 1]
    backfill = ask(alice, "raw_flights", **request)
    drive(worker, failing=failing_keys("2013-01-05"))
    for name in ("delays", "report"):
        assert outcomes(backfill, name) == {"upstream_failed": 1, "exists": 30}
    assert state_of(backfill) == "failed"
    retry_failed(backfill, user=alice)
    drive(worker)
    for name in ("raw_flights", "delays", "report"):
        assert outcomes(backfill, name) == {"succeeded": 1, "exists": 30}
    assert state_of(backfill) == "succeeded"


def test_a_partition_that_is_gone_is_skipped(alice: User, worker: Gateway) -> None:
    from partitions_app.models import PartitionDefinition

    asset("raw_flights", DAILY_2013)
    backfill = ask(alice, "raw_flights", selection="2013-01")
    advance()
    later = slicewise.PartitionByInterval("@daily", start="2013-01-21", end="2014-01-01")
    Asset.objects.update(partition_definition=PartitionDefinition.of(later.to_json()))
    drive(worker)
    assert outcomes(backfill, "raw_flights") == {"succeeded": 20, "no_such_partition": 11}


@pytest.mark.parametrize(
    ("order", "first"),
    [("oldest", "2013-01-01"), ("newest", "2013-02-03"), ("listed", "2013-02-01")],
)
def test_partitions_are_made_in_the_order_asked_for(
    alice: User, worker: Gateway, order: str, first: str
) -> None:
    asset("raw_flights", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None})
    selection = "2013-02-01..2013-02-03,2013-01-01..2013-01-03"
    backfill = ask(alice, "raw_flights", selection=selection, order=order, downstream="all")
    drive(worker)
    runs = list(
        backfill.group.runs.filter(asset__name="raw_flights").order_by("id")
        .values_list("selection", flat=True)
    )  # fmt: skip
    by_time = [f"2013-0{month}-0{day}" for month in (1, 2) for day in (1, 2, 3)]
    assert runs[0] == first
    assert runs == {
        "oldest": by_time, "newest": by_time[::-1], "listed": [*by_time[3:], *by_time[:3]],
    }[order]  # fmt: skip
    assert state_of(backfill) == "succeeded"


@pytest.mark.parametrize(
    ("allow_holes", "runs"),
    [(False, ["2013-01-01..2013-01-03", "2013-01-06..2013-01-09", "2013-01-10"]),
     (True, ["2013-01-01 … 2013-01-06 (4 partitions)", "2013-01-07..2013-01-10"])],
)  # fmt: skip
def test_runs_reach_over_holes_of_the_selection_only_where_they_may(
    alice: User, worker: Gateway, allow_holes: bool, runs: list[str]
) -> None:
    asset("raw_flights", DAILY_2013)
    selection = "2013-01-01..2013-01-03,2013-01-06..2013-01-10"
    options = {"selection": selection, "strategy": 4, "allow_holes": allow_holes}
    plan = plan_of(alice, "raw_flights", **options)
    backfill = ask(alice, "raw_flights", **options)
    drive(worker)
    selections = backfill.group.runs.order_by("id").values_list("selection", flat=True)
    assert list(selections) == runs
    assert plan["raw_flights"].runs == len(runs)


def test_one_run_carries_several_ranges(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    selection = "2013-01-01..2013-01-03,2013-01-06..2013-01-10"
    backfill = ask(alice, "raw_flights", selection=selection, strategy="range")
    drive(worker)
    run = backfill.group.runs.get()
    assert (run.partition_count, run.state) == (8, "succeeded")


@pytest.mark.parametrize("existing", ["missing", "missing_and_failed"])
def test_a_whole_asset_is_made_again_where_the_backfill_adds_to_what_it_reads(
    alice: User, worker: Gateway, existing: str
) -> None:
    asset("raw_flights", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None})
    following("report", of={"delays": None})
    following("summary", of={"report": None})
    january = {"selection": "2013-01-01..2013-01-03", "downstream": "all", "existing": existing}
    ask(alice, "raw_flights", **january)
    drive(worker)
    # Nothing is added: what is there stays.
    plan = plan_of(alice, "raw_flights", **january)
    assert {name: planned.to_materialize for name, planned in plan.items()} == dict.fromkeys(
        plan, 0
    )
    backfill = ask(alice, "raw_flights", **january)
    drive(worker)
    assert outcomes(backfill, "report") == outcomes(backfill, "summary") == {"exists": 1}
    more = january | {"selection": "2013-01-02..2013-01-05"}
    plan = plan_of(alice, "raw_flights", **more)
    assert {name: (planned.to_materialize, planned.stale) for name, planned in plan.items()} == {
        "raw_flights": (2, 0), "delays": (2, 0), "report": (1, 1), "summary": (1, 1),
    }  # fmt: skip
    shown = planned_page(check_backfill(request_from_text("raw_flights", **more), user=alice),
                         existing)  # fmt: skip
    lines = {line.label: line.becomes for line in shown["assets"][2].lines}
    assert lines["Upstream in this backfill"] == "run again"
    backfill = ask(alice, "raw_flights", **more)
    drive(worker)
    assert state_of(backfill) == "succeeded"
    assert outcomes(backfill, "delays") == {"exists": 2, "succeeded": 2}
    assert outcomes(backfill, "report") == outcomes(backfill, "summary") == {"succeeded": 1}
    assert AssetPartition.objects.get(asset__name="summary").version == 2


def test_a_materialized_unpartitioned_asset_shares_the_fate_of_the_additions_of_the_backfill(
    alice: User, worker: Gateway
) -> None:
    asset("raw_flights", DAILY_2013)
    following("report", of={"raw_flights": None})
    ask(alice, "raw_flights", selection="2013-01-01", downstream="all")
    drive(worker)
    backfill = ask(alice, "raw_flights", selection="2013-01-01..2013-01-02", downstream="all")
    drive(worker, failing=failing_keys("2013-01-02"))
    assert outcomes(backfill, "report") == {"upstream_failed": 1}
    retry_failed(backfill, user=alice)
    drive(worker)
    assert outcomes(backfill, "report") == {"succeeded": 1}


@pytest.mark.parametrize(
    ("existing", "outcome"), [("missing", "exists"), ("missing_and_failed", "succeeded")]
)
def test_a_whole_asset_that_failed_is_made_again_where_what_failed_is(
    alice: User, worker: Gateway, existing: str, outcome: str
) -> None:
    asset("raw_flights", DAILY_2013)
    report = following("report", of={"raw_flights": None})
    ask(alice, "raw_flights", selection="2013-01-01", downstream="all")
    drive(worker)
    AssetPartition.objects.filter(asset=report).update(state="failed")
    more = {"selection": "2013-01-01..2013-01-02", "downstream": "all", "existing": existing}
    assert plan_of(alice, "raw_flights", **more)["report"].to_materialize == (
        outcome == "succeeded"
    )
    backfill = ask(alice, "raw_flights", **more)
    drive(worker)
    assert outcomes(backfill, "report") == {outcome: 1}
