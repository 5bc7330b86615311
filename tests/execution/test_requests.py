"""Requests for runs: valid requests, and their results."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

import slicewise
from accounts_app.models import AuditEntry, User
from accounts_app.policy import Role
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import AssetPartition, Run, RunGroup
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest
from tests.factories import AIRPORTS, DAILY_2013, DAY_BY_AIRPORT, asset, person


def test_each_partition_gets_a_run_and_its_claim(alice: User) -> None:
    flights = asset("raw_flights", DAILY_2013)
    group = materialize(
        MaterializeRequest(asset=flights, selection="2013-01-01..2013-01-03"), user=alice
    )
    keys = list(group.runs.order_by("id").values_list("selection", flat=True))
    assert keys == ["2013-01-01", "2013-01-02", "2013-01-03"]
    partitions = AssetPartition.objects.filter(asset=flights).order_by("window_start")
    assert [partition.held_by_id for partition in partitions] == list(
        group.runs.order_by("id").values_list("id", flat=True)
    )
    assert AuditEntry.objects.get().action == "materialize"


def test_a_range_run_takes_all_in_one(alice: User) -> None:
    weather = asset("weather", DAY_BY_AIRPORT)
    group = materialize(
        MaterializeRequest(asset=weather, selection="date=2013-01", strategy="range"), user=alice
    )
    run = group.runs.get()
    assert run.partition_count == 93
    assert run.selection == "2013-01-01|EWR … 2013-01-31|LGA (93 partitions)"


def test_n_at_a_time_leaves_a_shorter_last_run(alice: User) -> None:
    flights = asset("raw_flights", DAILY_2013)
    group = materialize(
        MaterializeRequest(asset=flights, selection="2013-01", strategy=10), user=alice
    )
    runs = list(group.runs.order_by("id"))
    assert [run.partition_count for run in runs] == [10, 10, 10, 1]
    assert runs[0].selection == "2013-01-01..2013-01-10"


def test_partitions_held_by_another_run_are_left_out_and_named(alice: User) -> None:
    flights = asset("raw_flights", DAILY_2013)
    materialize(MaterializeRequest(asset=flights, selection="2013-01-02"), user=alice)
    group = materialize(
        MaterializeRequest(asset=flights, selection="2013-01-01..2013-01-03"), user=alice
    )
    assert group.in_flight == ["2013-01-02"]
    assert group.runs.count() == 2


def test_asking_for_nothing_but_what_is_being_made_conflicts_and_creates_nothing(
    alice: User,
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    materialize(MaterializeRequest(asset=flights, selection="2013-01-02"), user=alice)
    with pytest.raises(ConflictingRequest, match="is materializing raw_flights 2013-01-02"):
        materialize(MaterializeRequest(asset=flights, selection="2013-01-02"), user=alice)
    assert (RunGroup.objects.count(), Run.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ("", "Name the partitions"),
        ("tomorrow", "tomorrow"),
        ("2012-12-31", "2012-12-31"),
        ("2013-02-01..2013-01-01", "2013-02-01"),
    ],
)
def test_a_selection_that_names_nothing_is_refused(
    alice: User, selection: str, message: str
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    with pytest.raises(InvalidRequest, match=message) as refused:
        materialize(MaterializeRequest(asset=flights, selection=selection), user=alice)
    assert list(refused.value.errors) == ["selection"]
    assert not Run.objects.exists()


def test_a_partition_that_is_not_over_is_refused(alice: User) -> None:
    tomorrow = (timezone.now() + timedelta(days=1)).date()
    events = asset("events", slicewise.PartitionByInterval("@daily", start="2020-01-01"))
    with pytest.raises(InvalidRequest) as refused:
        materialize(MaterializeRequest(asset=events, selection=str(tomorrow)), user=alice)
    assert list(refused.value.errors) == ["selection"]


def test_segments_are_made_by_name(alice: User) -> None:
    spend = asset("spend", AIRPORTS)
    group = materialize(MaterializeRequest(asset=spend, selection="JFK,LGA"), user=alice)
    assert sorted(group.runs.values_list("selection", flat=True)) == ["JFK", "LGA"]


def test_an_asset_without_partitions_takes_no_selection(alice: User) -> None:
    carriers = asset("carriers")
    with pytest.raises(InvalidRequest, match="not partitioned"):
        materialize(MaterializeRequest(asset=carriers, selection="2013"), user=alice)
    assert materialize(MaterializeRequest(asset=carriers), user=alice).runs.count() == 1


def test_params_that_the_asset_does_not_declare_are_refused(alice: User) -> None:
    flights = asset("raw_flights", DAILY_2013, params={"sample": 1.0})
    request = MaterializeRequest(asset=flights, selection="2013-01-01", params={"simple": 2})
    with pytest.raises(InvalidRequest, match=r"Unknown params: simple\. Declared params: sample"):
        materialize(request, user=alice)


def test_params_lie_over_the_declared_ones(alice: User) -> None:
    flights = asset("raw_flights", DAILY_2013, params={"sample": 1.0, "seed": 7})
    request = MaterializeRequest(asset=flights, selection="2013-01-01", params={"sample": 0.1})
    assert materialize(request, user=alice).runs.get().params == {"sample": 0.1, "seed": 7}


@pytest.mark.parametrize("strategy", [0, -1, "sideways", True, "1.5"])
def test_a_strategy_that_is_none_is_refused(alice: User, strategy: str | int) -> None:
    flights = asset("raw_flights", DAILY_2013)
    request = MaterializeRequest(asset=flights, selection="2013-01-01", strategy=strategy)
    with pytest.raises(InvalidRequest) as refused:
        materialize(request, user=alice)
    assert list(refused.value.errors) == ["strategy"]


def test_who_may_only_look_makes_nothing(db: None) -> None:
    carriers = asset("carriers")
    with pytest.raises(PermissionDenied, match="operator"):
        materialize(MaterializeRequest(asset=carriers), user=person("vera", Role.VIEWER))
    assert not RunGroup.objects.exists()


@pytest.mark.parametrize(
    ("definition", "advice"),
    [(DAILY_2013, "Start a backfill instead."), (AIRPORTS, "Name fewer in each request.")],
    ids=["by time", "by segment"],
)
def test_too_many_partitions_are_refused_with_a_way_that_there_is(
    definition: slicewise.PartitionDefinition, advice: str, alice: User, settings: Any
) -> None:
    settings.MAX_PARTITIONS_PER_REQUEST = 2
    many = asset("many", definition)
    selection = "2013-01" if definition == DAILY_2013 else "*"
    with pytest.raises(InvalidRequest, match=advice):
        materialize(MaterializeRequest(asset=many, selection=selection), user=alice)


def test_an_asset_that_the_function_in_force_lacks_is_named(alice: User) -> None:
    flights = asset("raw_flights", DAILY_2013)
    assert flights.producer is not None
    version = flights.producer.current_version
    assert version is not None
    version.definition["outlets"] = [dict(version.definition["outlets"][0], name="other")]
    version.save()
    request = MaterializeRequest(asset=flights, selection="2013-01-01")
    with pytest.raises(InvalidRequest, match="the file that declared raw_flights has errors"):
        materialize(request, user=alice)
