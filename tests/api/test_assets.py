"""Assets, partitions and materializing through the API."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from rest_framework.test import APIClient

import slicewise
from assets_app.models import Asset, AssetPartition, PartitionCount, PartitionState, Run
from partitions_app.models import PartitionDefinition
from slicewise import Interval
from tests import factories
from tests.factories import definition_of
from tests.partition_records import record


def keys(response: Any) -> list[str]:
    assert response.status_code == 200, response.content
    return [row["key"] for row in response.json()["results"]]


def record_partitions(asset: Asset, *texts: str, state: str = PartitionState.MATERIALIZED) -> None:
    """Create rows of partitions as execution leaves them."""
    for text in texts:
        window = definition_of(asset).parse(text)
        assert isinstance(window, Interval)
        AssetPartition.objects.create(
            asset=asset, identity=asset.identity, key=text, window_start=window.start,
            window_end=window.end, state=state, version=1,
        )  # fmt: skip


def test_assets_are_listed_by_name_and_searched(
    api: APIClient, raw_flights: Asset, weather: Asset, carriers: Asset
) -> None:
    def names(query: str) -> list[str]:
        return [row["name"] for row in api.get(f"/api/v1/assets/?{query}").json()["results"]]

    assert names("") == ["carriers", "raw_flights", "weather"]
    assert names("search=FLI") == ["raw_flights"]
    assert names("group=flights") == ["raw_flights"]
    assert names("tag=hourly") == names("owner=ada") == ["weather"]
    assert names("paused=true") == []


def test_a_list_costs_a_fixed_number_of_statements(
    api: APIClient, weather: Asset, django_assert_max_num_queries: Any
) -> None:
    for number in range(20):
        factories.asset(f"copy_{number}", factories.DAILY_2013)
    with django_assert_max_num_queries(7):
        assert len(api.get("/api/v1/assets/").json()["results"]) == 21


def test_pages_lead_on_to_the_end(api: APIClient, raw_flights: Asset, weather: Asset) -> None:
    first = api.get("/api/v1/assets/?page_size=1").json()
    second = api.get(first["next"]).json()
    assert [row["name"] for row in first["results"] + second["results"]] == [
        "raw_flights", "weather",
    ]  # fmt: skip
    assert second["next"] is None


def test_an_asset_tells_how_many_partitions_should_be_there(api: APIClient, weather: Asset) -> None:
    body = api.get("/api/v1/assets/weather/").json()
    assert body["expected"] == 3 * 365
    assert body["partition"]["kind"] == "product"


def test_passwords_in_uris_are_masked(api: APIClient, carriers: Asset) -> None:
    assert "secret" not in api.get("/api/v1/assets/carriers/").content.decode()
    assert "secret" not in api.get("/api/v1/assets/").content.decode()


def test_partitions_never_made_are_missing(api: APIClient, raw_flights: Asset) -> None:
    record_partitions(raw_flights, "2013-01-02")
    response = api.get("/api/v1/assets/raw_flights/partitions/?selection=2013-01-01..2013-01-03")
    assert [(row["key"], row["state"]) for row in response.json()["results"]] == [
        ("2013-01-01", "missing"), ("2013-01-02", "materialized"), ("2013-01-03", "missing"),
    ]  # fmt: skip


def test_partitions_come_in_window_order_in_pages(api: APIClient, weather: Asset) -> None:
    address: str | None = "/api/v1/assets/weather/partitions/?page_size=500"
    found_keys: list[str] = []
    while address:
        response = api.get(address)
        found_keys += keys(response)
        address = response.json()["next"]
    assert len(found_keys) == 3 * 365
    assert found_keys[:4] == [
        "2013-01-01|EWR",
        "2013-01-01|JFK",
        "2013-01-01|LGA",
        "2013-01-02|EWR",
    ]
    assert len(set(found_keys)) == len(found_keys)


@pytest.mark.parametrize("size", [1, 2, 4, 7])
def test_pages_of_a_selection_are_the_selection(api: APIClient, weather: Asset, size: int) -> None:
    selection = "date=2013-01-01..2013-01-03 airport=JFK,LGA"
    address: str | None = (
        f"/api/v1/assets/weather/partitions/?selection={selection}&page_size={size}"
    )
    found_keys: list[str] = []
    while address:
        response = api.get(address)
        found_keys += keys(response)
        address = response.json()["next"]
    assert found_keys == [
        f"2013-01-0{day}|{airport}" for day in (1, 2, 3) for airport in ("JFK", "LGA")
    ]


def test_partitions_are_narrowed_by_state(api: APIClient, raw_flights: Asset) -> None:
    record_partitions(raw_flights, "2013-01-02", "2013-01-04", "2013-03-01")
    record_partitions(raw_flights, "2013-01-03", state=PartitionState.FAILED)
    address = "/api/v1/assets/raw_flights/partitions/"
    assert keys(api.get(f"{address}?state=failed")) == ["2013-01-03"]
    assert keys(api.get(f"{address}?state=materialized&selection=2013-01")) == [
        "2013-01-02", "2013-01-04",
    ]  # fmt: skip
    assert keys(api.get(f"{address}?state=missing&page_size=3")) == [
        "2013-01-01", "2013-01-05", "2013-01-06",
    ]  # fmt: skip
    first = api.get(f"{address}?state=materialized&page_size=2").json()
    assert keys(api.get(first["next"])) == ["2013-03-01"]


def test_an_asset_that_is_not_partitioned_has_one(api: APIClient, carriers: Asset) -> None:
    assert keys(api.get("/api/v1/assets/carriers/partitions/")) == [""]


def test_no_page_of_a_million_partitions_walks_them(api: APIClient) -> None:
    minutes = slicewise.PartitionByInterval(
        "* * * * *", start=datetime(2020, 1, 1, tzinfo=UTC), end=datetime(2022, 1, 1, tzinfo=UTC)
    )
    factories.asset("ticks", minutes)
    address = "/api/v1/assets/ticks/partitions/"
    last = "2021-12-31T23:00Z..2021-12-31T23:59Z"
    for query in ("", "?state=missing", "?selection=*", f"?selection={last}", "?state=failed"):
        # Of this thread alone: other tests may keep the machine busy.
        began = time.thread_time()
        assert api.get(f"{address}{query}").status_code == 200
        assert time.thread_time() - began < 1, query


def test_materializing_makes_runs(api: APIClient, raw_flights: Asset) -> None:
    address = "/api/v1/assets/raw_flights/materialize/"
    response = api.post(address, {"selection": "2013-01-01..2013-01-03"}, format="json")
    assert response.status_code == 201, response.content
    body = response.json()
    assert (body["run_count"], body["partition_count"], len(body["runs"])) == (3, 3, 3)
    runs = api.get(body["runs_url"]).json()["results"]
    assert sorted(run["id"] for run in runs) == body["runs"]
    assert {run["state"] for run in runs} == {"queued"}
    queued = api.get("/api/v1/assets/raw_flights/partitions/?state=queued")
    assert keys(queued) == ["2013-01-01", "2013-01-02", "2013-01-03"]


@pytest.mark.parametrize("query", ["?state=materialized", "?state=materialized&selection=*"])
def test_partitions_that_the_definition_no_longer_has_are_not_listed_by_state(
    api: APIClient, raw_flights: Asset, query: str
) -> None:
    record(raw_flights, "2013-01-01..2013-01-03")
    address = f"/api/v1/assets/raw_flights/partitions/{query}"
    assert keys(api.get(address)) == ["2013-01-01", "2013-01-02", "2013-01-03"]
    later = definition_of(raw_flights).to_json() | {"start": "2013-01-03"}
    raw_flights.partition_definition = PartitionDefinition.of(later)
    raw_flights.save()
    assert keys(api.get(address)) == ["2013-01-03"]


def test_partitions_held_by_another_run_are_a_conflict(api: APIClient, raw_flights: Asset) -> None:
    address = "/api/v1/assets/raw_flights/materialize/"
    api.post(address, {"selection": "2013-01-01"}, format="json")
    second = api.post(address, {"selection": "2013-01-01"}, format="json")
    assert second.status_code == 409
    assert Run.objects.count() == 1


def test_an_asset_that_is_not_partitioned_is_materialized_whole(
    api: APIClient, carriers: Asset
) -> None:
    response = api.post("/api/v1/assets/carriers/materialize/", {}, format="json")
    assert response.status_code == 201, response.content
    assert response.json()["run_count"] == 1


def test_a_repeated_request_with_its_key_makes_no_second_run(
    api: APIClient, carriers: Asset
) -> None:
    address = "/api/v1/assets/carriers/materialize/"
    first = api.post(address, {}, format="json", HTTP_IDEMPOTENCY_KEY="once")
    again = api.post(address, {}, format="json", HTTP_IDEMPOTENCY_KEY="once")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert Run.objects.count() == 1


def test_an_unpartitioned_asset_has_counts_too(api: APIClient, carriers: Asset) -> None:
    PartitionCount.objects.create(
        asset=carriers, identity="whole", state=PartitionState.MATERIALIZED, count=1
    )
    assert api.get("/api/v1/assets/carriers/").json()["counts"] == {"materialized": 1}
