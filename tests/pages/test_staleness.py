"""Partitions whose upstream data was made again later, on pages and in the API."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.models import Asset, AssetDependency, Gateway, ProducerVersion
from assets_app.queries.staleness import newer_inputs, stale_among_all
from partitions_app.edges import Edge
from partitions_app.models import PartitionDefinition
from slicewise import (
    Offset,
    Overlap,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionSet,
)
from slicewise_server.web import kept_counts
from tests.described_answers import DescribedClient
from tests.execution.conftest import make_gateway
from tests.factories import asset, person
from tests.scheduling.scheduled_assets import at, by, scheduled, write

pytestmark = pytest.mark.django_db
HOURLY = PartitionByInterval("@hourly", start="2024-01-01")
DAILY = PartitionByInterval("@daily", start="2024-01-01")
SHOPS = PartitionBySequence(["mitte", "wedding"])


@pytest.fixture
def gateway(db: None) -> Gateway:
    return make_gateway("scheduled")


@pytest.fixture
def alice(db: None) -> User:
    return person("alice", is_superuser=True)


def stale(of: Asset, *keys: str) -> dict[str, str]:
    return {key: newer.text for key, newer in newer_inputs(of, keys).items()}


def pair(strategy: str = "partition") -> tuple[Asset, Asset]:
    """Create hours, and days that are made from the hours."""
    hourly = asset("hourly", HOURLY)
    options = {"strategy": strategy}
    daily = scheduled(
        "daily", by("hourly"), DAILY, since=at(2024, 1, 1), upstream={"hourly": None}, **options
    )
    return hourly, daily


def test_a_day_is_stale_when_one_of_its_hours_is_newer(
    browser: Client, alice: User, gateway: Gateway
) -> None:
    hourly, daily = pair()
    write(hourly, "2024-07-01..2024-07-02", gateway, alice)
    write(daily, "2024-07-01..2024-07-02", gateway, alice)
    assert stale(daily, "2024-07-01", "2024-07-02") == {}
    write(hourly, "2024-07-01T03:00Z", gateway, alice)
    assert stale(daily, "2024-07-01", "2024-07-02") == {
        "2024-07-01": "hourly 2024-07-01T03:00Z is newer"
    }
    text = browser.get("/assets/daily/?zoom=month&at=2024-07-01").content.decode()
    assert 'aria-label="2024-07-01: stale: hourly 2024-07-01T03:00Z is newer"' in text
    assert 'aria-label="2024-07-02: materialized"' in text
    page = browser.get("/assets/daily/partitions/2024-07-01/").content.decode()
    assert "Stale" in page
    assert page.index("Newer version 2 available") < page.index("Current")
    drawer = browser.get("/assets/daily/partitions/2024-07-01/", headers={"hx-request": "true"})
    inputs = drawer.content.decode().partition('<h3 class="h4 mb-1">Inputs</h3>')[2]
    assert 'href="/assets/hourly/partitions/2024-07-01T03:00Z/"' in inputs
    assert "newer: 2" in inputs
    write(daily, "2024-07-01", gateway, alice)
    assert stale(daily, "2024-07-01") == {}


def test_of_a_run_of_several_days_only_the_day_of_the_hour_is_stale(
    alice: User, gateway: Gateway
) -> None:
    hourly, daily = pair("range")
    write(hourly, "2024-07-01..2024-07-03", gateway, alice)
    write(daily, "2024-07-01..2024-07-03", gateway, alice)
    write(hourly, "2024-07-02T03:00Z..2024-07-02T05:00Z", gateway, alice)
    assert stale(daily, "2024-07-01", "2024-07-02", "2024-07-03") == {
        "2024-07-02": "hourly 2024-07-02T05:00Z and 2 more are newer"
    }


def test_the_page_of_a_day_names_the_inputs_of_the_day_alone(
    browser: Client, alice: User, gateway: Gateway
) -> None:
    hourly, daily = pair("range")
    write(hourly, "2024-07-01..2024-07-03", gateway, alice)
    write(daily, "2024-07-01..2024-07-03", gateway, alice)
    write(hourly, "2024-07-02T03:00Z", gateway, alice)
    for day, has_newer in (("2024-07-01", False), ("2024-07-02", True)):
        page = browser.get(f"/assets/daily/partitions/{day}/").content.decode()
        named = set(re.findall(r"/assets/hourly/partitions/([^/]+)/", page))
        assert named == {f"{day}T{hour:02}:00Z" for hour in range(24)}
        assert ("Newer version 2 available" in page) == has_newer


@pytest.mark.parametrize("change", ["mapping", "windows", "segments"])
def test_the_page_of_a_day_names_all_inputs_where_the_upstream_has_changed(
    browser: Client, alice: User, gateway: Gateway, change: str
) -> None:
    hourly, daily = pair("range")
    write(hourly, "2024-07-01..2024-07-02", gateway, alice)
    write(daily, "2024-07-01..2024-07-02", gateway, alice)
    if change == "mapping":
        AssetDependency.objects.update(mapping=Offset(-1).to_json())
    else:
        definition = DAILY if change == "windows" else SHOPS
        hourly.partition_definition = PartitionDefinition.of(definition.to_json())
        hourly.save()
        AssetDependency.objects.update(mapping=Overlap(nonexistent="ignore").to_json())
        for version in ProducerVersion.objects.filter(producer=daily.producer):
            version.definition["mappings"] = {"hourly": Overlap(nonexistent="ignore").to_json()}
            version.save()
    answer = browser.get("/assets/daily/partitions/2024-07-01/")
    assert answer.status_code == 200
    inputs = answer.content.decode().partition("Inputs")[2]
    assert len(set(re.findall(r"2024-07-0[12]T\d\d:00Z", inputs))) == 48


def test_of_a_run_of_several_segments_only_the_same_segment_is_stale(
    alice: User, gateway: Gateway
) -> None:
    both = PartitionByProduct({"date": DAILY, "shop": SHOPS})
    upstream = asset("one", both)
    two = scheduled(
        "two", by("one"), both, since=at(2024, 1, 1), upstream={"one": None}, strategy="range"
    )
    every = "date=2024-07-01 shop=*"
    write(upstream, every, gateway, alice)
    write(two, every, gateway, alice)
    write(upstream, "date=2024-07-01 shop=mitte", gateway, alice)
    assert stale(two, "2024-07-01|mitte", "2024-07-01|wedding") == {
        "2024-07-01|mitte": "one 2024-07-01 | mitte is newer"
    }


def test_an_unpartitioned_asset_is_stale_as_a_whole(
    browser: Client, alice: User, gateway: Gateway
) -> None:
    upstream = asset("one")
    two = scheduled("two", by("one"), since=at(2024, 1, 1), upstream={"one": None})
    write(upstream, "", gateway, alice)
    write(two, "", gateway, alice)
    write(upstream, "", gateway, alice)
    assert stale(two, "") == {"": "one is newer"}
    listed = browser.get("/api/v1/assets/two/partitions/?state=stale").json()["results"]
    assert [(line["key"], line["stale"]) for line in listed] == [("", True)]
    assert "one</a> is newer" in browser.get("/assets/two/partitions/").content.decode()


def test_a_grid_costs_the_same_for_one_stale_day_and_for_many(
    browser: Client, alice: User, gateway: Gateway
) -> None:
    hourly, daily = pair()
    address = "/assets/daily/?zoom=month&at=2024-07-01"
    write(hourly, "2024-07-01..2024-07-03", gateway, alice)
    write(daily, "2024-07-01..2024-07-03", gateway, alice)
    counted = []
    for selection in ("2024-07-01T00:00Z", "2024-07-01T01:00Z..2024-07-03T01:00Z"):
        write(hourly, selection, gateway, alice)
        with CaptureQueriesContext(connection) as statements:
            assert ": stale" in browser.get(address).content.decode()
        counted.append(len(statements))
    assert counted[0] == counted[1]


def test_many_stale_days_are_mapped_as_a_set(
    browser: Client, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    hourly, daily = pair("range")
    write(hourly, "2024-07-01..2024-07-05", gateway, alice)
    write(daily, "2024-07-01..2024-07-05", gateway, alice)
    write(hourly, "2024-07-02T01:00Z..2024-07-04T01:00Z", gateway, alice)
    monkeypatch.setattr("assets_app.queries.grid._MOST_EXPLAINED", 2)
    mapped: list[object] = []
    needed = Edge.needed

    def counted_needed(edge: Edge, keys: object) -> PartitionSet:
        mapped.append(keys)
        return needed(edge, keys)

    monkeypatch.setattr(Edge, "needed", counted_needed)
    text = browser.get("/assets/daily/?zoom=month&at=2024-07-01").content.decode()
    assert len(re.findall(r'aria-label="2024-07-0[234]: stale"', text)) == 3
    text = browser.get("/assets/daily/?select=stale").content.decode()
    assert 'value="2024-07-02..2024-07-04"' in text
    assert mapped == []


def test_of_scattered_changes_each_day_is_compared_with_the_changes_of_the_day(
    alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    hourly, daily = pair("range")
    write(hourly, "2024-07", gateway, alice)
    write(daily, "2024-07", gateway, alice)
    days = [f"2024-07-{day:02}" for day in range(1, 32)]
    hours = ",".join(f"{day}T{hour}:00Z" for day in days for hour in (10, 20))
    write(hourly, hours, gateway, alice)
    compared: list[int] = []
    intersection = PartitionSet.__and__

    def counted_intersection(left: PartitionSet, right: PartitionSet) -> PartitionSet:
        compared.append(len(left.window_ranges))
        return intersection(left, right)

    monkeypatch.setattr(PartitionSet, "__and__", counted_intersection)
    assert stale(daily, *days) == {day: f"hourly {day}T20:00Z and 1 more are newer" for day in days}
    # All 62 changes for each of the 31 days would be 1,922.
    assert sum(compared) < 800


def test_many_keys_of_several_assets_are_sent_in_groups(
    alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    hourly, daily = pair("range")
    whole = scheduled("whole", by("hourly"), since=at(2024, 1, 1), upstream={"hourly": None})
    write(hourly, "2024-07-01..2024-07-03", gateway, alice)
    write(daily, "2024-07-01..2024-07-03", gateway, alice)
    write(whole, "", gateway, alice)
    write(hourly, "2024-07-01T03:00Z,2024-07-03T05:00Z", gateway, alice)
    days = ["2024-07-01", "2024-07-02", "2024-07-03"]
    stale_keys = {daily.pk: {"2024-07-01", "2024-07-03"}, whole.pk: {""}}
    for most, group_count in ((4, 1), (3, 2), (1, 4)):
        monkeypatch.setattr("assets_app.queries.staleness._MOST_SENT", most)
        with CaptureQueriesContext(connection) as statements:
            assert stale_among_all({daily: days, whole: [""]}) == stale_keys
        assert sum("own_attempt" in query["sql"] for query in statements) == group_count
    assert stale_among_all({daily: []}) == {}


def test_a_result_that_took_long_is_kept_for_the_next_polls(
    browser: Client, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    hourly, daily = pair("range")
    write(hourly, "2024-07-01..2024-07-03", gateway, alice)
    write(daily, "2024-07-01..2024-07-03", gateway, alice)
    write(hourly, "2024-07-02T01:00Z", gateway, alice)
    monkeypatch.setattr(kept_counts, "CHEAP_SECONDS", 0.0)
    monkeypatch.setattr(kept_counts, "RESTS", 1_000_000)
    counted = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as statements:
            text = browser.get("/assets/daily/?zoom=month&at=2024-07-01").content.decode()
        assert "2024-07-02: stale: hourly 2024-07-02T01:00Z is newer" in text
        counted.append(sum("own_attempt" in statement["sql"] for statement in statements))
    # The cells, and the number in the head.
    assert counted == [2, 0]


def test_a_partition_that_was_materialized_since_a_kept_result_is_not_stale(
    browser: Client, alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    hourly, daily = pair("range")
    write(hourly, "2024-07-01..2024-07-03", gateway, alice)
    write(daily, "2024-07-01..2024-07-03", gateway, alice)
    write(hourly, "2024-07-02T01:00Z..2024-07-03T01:00Z", gateway, alice)
    monkeypatch.setattr(kept_counts, "CHEAP_SECONDS", 0.0)
    monkeypatch.setattr(kept_counts, "RESTS", 1_000_000)
    address = "/assets/daily/?zoom=month&at=2024-07-01"
    assert "2024-07-02: stale: hourly" in browser.get(address).content.decode()
    write(daily, "2024-07-02", gateway, alice)
    text = browser.get(address).content.decode()
    assert 'aria-label="2024-07-02: materialized"' in text
    assert 'aria-label="2024-07-03: stale: hourly 2024-07-03T01:00Z and 1 more are newer"' in text


def test_the_api_says_which_partitions_are_stale(alice: User, gateway: Gateway) -> None:
    hourly, daily = pair()
    write(hourly, "2024-07-01..2024-07-02", gateway, alice)
    write(daily, "2024-07-01..2024-07-02", gateway, alice)
    write(hourly, "2024-07-02T03:00Z", gateway, alice)
    api = DescribedClient()
    api.force_login(alice)
    address = "/api/v1/assets/daily/partitions/?selection=2024-07-01..2024-07-03"
    for query in ("", "&state=materialized"):
        lines = api.get(address + query).json()["results"]
        assert [line["key"] for line in lines if line["stale"]] == ["2024-07-02"]
    write(hourly, "2024-07-01T03:00Z", gateway, alice)
    address = "/api/v1/assets/daily/partitions/?state=stale"
    first = api.get(f"{address}&page_size=1").json()
    second = api.get(first["next"]).json()
    keys = [line["key"] for page in (first, second) for line in page["results"]]
    assert (keys, second["next"]) == (["2024-07-01", "2024-07-02"], None)
    chosen = api.get(f"{address}&selection=2024-07-02..2024-07-03").json()["results"]
    assert [line["key"] for line in chosen] == ["2024-07-02"]
