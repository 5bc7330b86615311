"""The asset graph of the API: assets, edges with their mapping in words, counts, and ETags."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

import slicewise
from assets_app.models import Asset, AssetDependency, AssetPartition
from assets_app.queries import graph_states, stale_counts
from tests.factories import AIRPORTS, DAILY_2013, DAY_BY_AIRPORT, asset, external
from tests.partition_records import record

pytestmark = pytest.mark.django_db
MONTHLY_2013 = slicewise.PartitionByInterval("@monthly", start="2013-01-01", end="2014-01-01")


def edge(upstream: Asset, downstream: Asset, **fields: object) -> AssetDependency:
    """Store an edge; the downstream asset reads the upstream asset unless fields say otherwise."""
    return AssetDependency.objects.create(
        upstream=upstream, downstream=downstream, **{"inlet": True, **fields}
    )


@pytest.fixture
def chain() -> list[Asset]:
    """Create four assets in a row: raw, daily, monthly, and a report without partitions."""
    assets = [
        external("raw", DAY_BY_AIRPORT, group="source"),
        asset("daily", DAILY_2013, group="mart"),
        asset("monthly", MONTHLY_2013, group="mart", paused=True),
        asset("report"),
    ]
    edge(assets[0], assets[1], scheduling=True)
    edge(assets[1], assets[2], mapping=slicewise.Offset(-1).to_json())
    edge(assets[2], assets[3])
    return assets


def test_it_has_assets_edges_and_relations_in_words(api: APIClient, chain: list[Asset]) -> None:
    graph = api.get("/api/v1/asset-graph/").json()
    assert graph["assets"] == [
        {"name": "daily", "group": "mart", "paused": False, "external": False, "fold": 0},
        {"name": "monthly", "group": "mart", "paused": True, "external": False, "fold": 0},
        {"name": "raw", "group": "source", "paused": False, "external": True, "fold": 1},
        {"name": "report", "group": "", "paused": False, "external": False, "fold": None},
    ]
    assert graph["edges"] == [[2, 0, 0], [0, 1, 1], [1, 3, 2]]
    assert graph["relations"] == [
        {"inlet": True, "scheduling": True, "mapping": "overlapping windows"},
        {"inlet": True, "scheduling": False, "mapping": "1 window earlier"},
        {"inlet": True, "scheduling": False, "mapping": "existing partitions"},
    ]
    assert [fold["name"] for fold in graph["folds"]] == ["mart", "source"]


@pytest.mark.parametrize(
    ("upstream", "downstream", "mapping", "words"),
    [
        (DAILY_2013, DAILY_2013, None, "same partition"),
        (DAILY_2013, MONTHLY_2013, None, "overlapping windows"),
        (DAILY_2013, AIRPORTS, None, "all windows"),
        (AIRPORTS, DAY_BY_AIRPORT, None, "same segments"),
        (None, DAILY_2013, None, "whole asset"),
        (DAILY_2013, None, None, "existing partitions"),
        (DAILY_2013, DAILY_2013, slicewise.Offset(-1), "1 window earlier"),
        (DAILY_2013, DAILY_2013, slicewise.Offset(2), "2 windows later"),
        (DAILY_2013, DAILY_2013, slicewise.Offset(-6, 0), "last 7 windows"),
        (DAILY_2013, DAILY_2013, slicewise.Offset(-1, 1), "windows -1 to +1"),
        (DAILY_2013, DAILY_2013, slicewise.Latest(), "latest partition"),
        (DAILY_2013, DAILY_2013, slicewise.All(), "all partitions"),
        (AIRPORTS, DAILY_2013, slicewise.Keys(["JFK", "EWR"]), "2 named partitions"),
        (
            DAILY_2013,
            DAILY_2013,
            slicewise.Overlap(nonexistent="ignore"),
            "overlapping windows, if defined",
        ),
    ],
)
def test_a_mapping_is_told_in_words(
    api: APIClient,
    upstream: slicewise.PartitionDefinition | None,
    downstream: slicewise.PartitionDefinition | None,
    mapping: slicewise.PartitionMapping | None,
    words: str,
) -> None:
    edge(
        asset("up", upstream),
        asset("down", downstream),
        mapping=None if mapping is None else mapping.to_json(),
    )
    graph = api.get("/api/v1/asset-graph/").json()
    assert [relation["mapping"] for relation in graph["relations"]] == [words]


def test_it_is_narrowed_to_the_neighbourhood_of_an_asset(
    api: APIClient, chain: list[Asset]
) -> None:
    def names(query: str) -> list[str]:
        graph = api.get(f"/api/v1/asset-graph/?{query}").json()
        states = api.get(f"/api/v1/asset-graph/states/?{query}").json()
        assert list(states["assets"]) == [node["name"] for node in graph["assets"]]
        return [node["name"] for node in graph["assets"]]

    assert names("asset=raw") == ["daily", "raw"]
    assert names("asset=daily") == ["daily", "monthly", "raw"]
    assert names("asset=raw&depth=2") == ["daily", "monthly", "raw"]
    assert names("asset=report&depth=9") == ["daily", "monthly", "raw", "report"]


def test_assets_that_no_file_declares_are_left_out(api: APIClient, chain: list[Asset]) -> None:
    chain[1].active = False
    chain[1].save()
    graph = api.get("/api/v1/asset-graph/").json()
    assert [node["name"] for node in graph["assets"]] == ["monthly", "raw", "report"]
    assert len(graph["edges"]) == 1


@pytest.mark.parametrize("address", ["asset-graph/", "asset-graph/states/"])
def test_an_unchanged_graph_is_not_sent_again(
    api: APIClient, chain: list[Asset], address: str
) -> None:
    first = api.get(f"/api/v1/{address}")
    again = api.get(f"/api/v1/{address}", headers={"if-none-match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    asset("another")
    changed = api.get(f"/api/v1/{address}", headers={"if-none-match": first["ETag"]})
    assert changed.status_code == 200


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("depth=2", "depth"),
        ("asset=raw&depth=0", "depth"),
        ("asset=raw&depth=101", "depth"),
        ("asset=raw&depth=x", "depth"),
        ("assets=raw", "assets"),
    ],
)
@pytest.mark.parametrize("address", ["asset-graph/", "asset-graph/states/"])
def test_a_wrong_parameter_is_refused(
    api: APIClient, chain: list[Asset], address: str, query: str, field: str
) -> None:
    answer = api.get(f"/api/v1/{address}?{query}")
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == [field]


def test_an_unknown_asset_is_not_found(api: APIClient, chain: list[Asset]) -> None:
    answer = api.get("/api/v1/asset-graph/?asset=dayly")
    assert answer.status_code == 404
    assert "Did you mean 'daily'?" in answer.json()["detail"]


def test_states_are_counted_for_each_asset(api: APIClient, chain: list[Asset]) -> None:
    states_of_days = [*["failed"] * 3, "canceled", "skipped", *["materialized"] * 26]
    record(chain[1], "2013-01", states_of_days.__getitem__)
    states = api.get("/api/v1/asset-graph/states/").json()
    assert states["assets"]["daily"] == {
        "failed": 3, "canceled": 1, "skipped": 1, "missing": 365 - 31, "materialized": 26,
        "expected": 365,
    }  # fmt: skip
    assert states["assets"]["report"] == {"missing": 1, "expected": 1}
    assert states["not_counted"] == []


def test_a_count_that_takes_too_long_is_named(
    api: APIClient, chain: list[Asset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stale_counts, "_STALE", "SELECT pg_sleep(20), 1, 2, 3")
    monkeypatch.setattr(graph_states, "_LONGEST_MILLISECONDS", 20)
    states = api.get("/api/v1/asset-graph/states/").json()
    assert states["not_counted"] == ["stale"]
    assert states["assets"]["report"] == {"missing": 1, "expected": 1}


def test_the_number_of_statements_does_not_grow_with_the_graph(
    api: APIClient, chain: list[Asset]
) -> None:
    def statements(address: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert api.get(f"/api/v1/{address}").status_code == 200
        return len(queries)

    addresses = ("asset-graph/", "asset-graph/states/", "asset-graph/?asset=raw&depth=9")
    before = [statements(address) for address in addresses]
    for number in range(20):
        edge(chain[0], asset(f"more_{number}", DAILY_2013))
    assert [statements(address) for address in addresses] == before
    assert max(before) <= 13
    assert AssetPartition.objects.count() == 0
