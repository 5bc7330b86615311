"""Events of other tools: writes of declared assets, edges, and refusals of bad input."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from time import thread_time
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from accounts_app.models import AuditEntry
from assets_app.models import Asset, Materialization, WriteReport
from assets_app.scheduling.outbox import process_outbox
from slicewise import normalize_uri
from slicewise_server.lineage.models import LineageEdge, ReceivedWrite
from tests.factories import DAY_BY_AIRPORT, asset, external
from tests.lineage.received_events import (
    ADDRESS,
    RUN,
    SPEC,
    completed,
    dataset,
    made_versions,
    partitions,
)
from tests.scheduling.scheduled_assets import DAILY, at, by, scheduled, waiting

pytestmark = pytest.mark.django_db
NOW = at(2024, 8, 1)
TOOLS = Path(__file__).parent / "events_of_tools"


def subset(**condition: Any) -> dict[str, Any]:
    return {"outputFacets": {"subset": {"outputCondition": condition}}}


@pytest.fixture
def raw(db: None) -> Asset:
    return external("raw", DAILY, uri="s3://lake/raw", canonical_uri="s3://lake/raw")


# ---------------------------------------------------------------- writes


@pytest.mark.parametrize(
    ("output", "keys"),
    [
        (dataset("raw/partition=2024-07-01"), ["2024-07-01"]),
        (dataset("raw/partition=2024-07-01/", "s3a://lake"), ["2024-07-01"]),
        (dataset("raw", **partitions("2024-07-01..2024-07-02")), ["2024-07-01", "2024-07-02"]),
        (
            dataset("raw", **subset(type="partition", partitions=[
                {"dimensions": {"partition": "2024-07-01"}},
                {"dimensions": {"partition": "2024-07-02"}, "identifier": "x"},
            ])),
            ["2024-07-01", "2024-07-02"],
        ),
        (
            dataset("raw", **subset(type="location", locations=["s3://l/raw/partition=2024-07-01"])),
            ["2024-07-01"],
        ),
        (
            dataset("db.raw", "hive://meta:9083", facets={"symlinks": {"identifiers": [
                {"namespace": "s3://lake", "name": "raw/partition=2024-07-01", "type": "TABLE"},
            ]}}),
            ["2024-07-01"],
        ),
    ],
    ids=["folder", "other spelling", "facet", "subset", "location", "symbolic link"],
)  # fmt: skip
def test_an_output_is_a_write_of_the_partitions_that_it_names(
    api: APIClient, raw: Asset, output: dict[str, Any], keys: list[str]
) -> None:
    daily = scheduled("daily", by("raw"), DAILY, since=at(2024, 1, 1))
    answer = api.post(ADDRESS, completed(output), format="json")
    assert answer.status_code == 200, answer.content
    (write,) = answer.json()["writes"]
    assert (write["asset"], write["problem"]) == ("raw", "")
    assert write["report"] == WriteReport.objects.get().pk
    assert made_versions() == [(key, 1) for key in keys]
    process_outbox(NOW)
    assert waiting(daily) == keys
    report = WriteReport.objects.get()
    assert report.metadata == {"openlineage_run": RUN, "job": "imports/orders"}
    assert AuditEntry.objects.filter(action="report_write", actor_name="olga").count() == 1


def test_a_run_writes_a_selection_once_however_often_the_event_comes(
    api: APIClient, raw: Asset
) -> None:
    event = completed(dataset("raw/partition=2024-07-01"))
    first, second = (api.post(ADDRESS, event, format="json").json() for _ in range(2))
    assert first == second
    assert made_versions() == [("2024-07-01", 1)]
    another = completed(dataset("raw/partition=2024-07-01"), run=str(UUID(int=7)))
    api.post(ADDRESS, another, format="json")
    assert made_versions() == [("2024-07-01", 1), ("2024-07-01", 2)]


def test_counts_of_a_single_partition_are_taken_over(api: APIClient, raw: Asset) -> None:
    statistics: dict[str, Any] = {
        "outputFacets": {"outputStatistics": {"rowCount": 12, "size": 345}}
    }
    api.post(ADDRESS, completed(dataset("raw/partition=2024-07-01", **statistics)), format="json")
    made = Materialization.objects.get()
    assert (made.rows, made.bytes) == (12, 345)


def test_dimensions_of_a_product_are_named_in_order(api: APIClient) -> None:
    external("weather", DAY_BY_AIRPORT, uri="s3://l/w", canonical_uri="s3://l/w")
    api.post(ADDRESS, completed(dataset("w/date=2013-07-01/airport=JFK", "s3://l")), format="json")
    assert [key for key, _ in made_versions()] == ["2013-07-01|JFK"]


def test_each_dimension_in_a_name_is_as_short_as_can_be(api: APIClient) -> None:
    uri = "s3://l/x-{airport}-x/{date:%Y/%m/%d}/x.csv"
    external("weather", DAY_BY_AIRPORT, uri=uri, canonical_uri=normalize_uri(uri))
    for name in ("x-JFK-x/2013/07/01/x.csv", "x-JFK-x/2013/07/01.csv", "x--x/2013/07/01/x.csv"):
        api.post(ADDRESS, completed(dataset(name, "s3://l")), format="json")
    assert [key for key, _ in made_versions()] == ["2013-07-01|JFK"]


@pytest.mark.parametrize(
    ("uri", "namespace", "name", "key"),
    [
        (
            "postgres://db/shop/public/orders_{partition:%Y%m%d}",
            "postgres://db:5432", "shop.public.orders_20240701", "2024-07-01",
        ),
        ("s3://in/{partition:%Y/%m/%d}.csv", "s3://in", "2024/07/01.csv", "2024-07-01"),
        ("s3://in/orders-{partition}.csv", "s3://in", "orders-2024-07-01.csv", "2024-07-01"),
        ("s3://in/orders-{partition}.csv", "s3://in", "orders-of-today.csv", None),
        ("s3://in/orders-{partition}.csv", "s3://out", "orders-2024-07-01.csv", None),
        ("s3://in/{partition:%Y%m%d}.csv", "s3://in", "20241301.csv", None),
        ("s3://in/{day}.csv", "s3://in", "2024-07-01.csv", None),
    ],
)  # fmt: skip
def test_a_location_with_dimensions_in_braces_is_a_pattern_of_names(
    api: APIClient, uri: str, namespace: str, name: str, key: str | None
) -> None:
    external("orders", DAILY, uri=uri, canonical_uri=normalize_uri(uri))
    answer = api.post(ADDRESS, completed(dataset(name, namespace)), format="json")
    assert answer.status_code == 200, answer.content
    assert made_versions() == ([] if key is None else [(key, 1)])


def test_an_asset_without_partitions_or_location_is_known_by_name(api: APIClient) -> None:
    external("stock")
    api.post(ADDRESS, completed(dataset("stock", "slicewise")), format="json")
    assert WriteReport.objects.get().asset.name == "stock"


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        (dataset("raw"), "names no partitions"),
        (dataset("raw/hour=03"), "hour=03 is no partition of raw"),
        (dataset("raw/partition=yesterday"), "is no partition of raw"),
        (dataset("raw/partition=2999-01-01"), "2999-01-01 has not ended yet"),
        (dataset("raw", **partitions("2024-07-01", written=False)), "not written"),
    ],
)
def test_an_output_that_cannot_be_counted_is_recorded_with_the_reason(
    api: APIClient, raw: Asset, output: dict[str, Any], problem: str
) -> None:
    answer = api.post(ADDRESS, completed(output), format="json")
    assert answer.status_code == 200
    assert problem in answer.json()["writes"][0]["problem"]
    assert ReceivedWrite.objects.get().report is None
    assert not made_versions()


@pytest.mark.parametrize(
    "changes",
    [{"eventType": "START"}, {"eventType": "FAIL"}, {"eventType": "RUNNING"}],
)
def test_only_completed_runs_write(api: APIClient, raw: Asset, changes: dict[str, Any]) -> None:
    event = completed(dataset("raw/partition=2024-07-01"), **changes)
    assert api.post(ADDRESS, event, format="json").json() == {"writes": []}
    assert not made_versions()


def test_an_event_of_a_run_under_way_looks_for_no_asset(api: APIClient, raw: Asset) -> None:
    event = completed(dataset("raw/partition=2024-07-01"), eventType="RUNNING")
    with CaptureQueriesContext(connection) as statements:
        api.post(ADDRESS, event, format="json")
    assert not [sql for sql in statements if "canonical_uri" in sql["sql"]]


def test_an_event_of_a_job_or_of_a_dataset_without_a_run_writes_nothing(
    api: APIClient, raw: Asset
) -> None:
    event = completed(dataset("raw/partition=2024-07-01"))
    del event["run"], event["eventType"]
    assert api.post(ADDRESS, event, format="json").json() == {"writes": []}
    assert LineageEdge.objects.count() == 1
    del event["job"]
    event["dataset"] = dataset("raw/partition=2024-07-01")
    assert api.post(ADDRESS, event, format="json").json() == {"writes": []}
    assert not made_versions()


def test_assets_that_are_made_here_and_unknown_datasets_are_no_writes(api: APIClient) -> None:
    asset("made", DAILY, uri="s3://lake/made", canonical_uri="s3://lake/made")
    event = completed(dataset("made/partition=2024-07-01"), dataset("elsewhere"))
    assert api.post(ADDRESS, event, format="json").json() == {"writes": []}


# ---------------------------------------------------------------- edges


def test_inputs_and_outputs_become_edges_where_one_of_them_is_an_asset(
    api: APIClient, raw: Asset
) -> None:
    made = asset("made", DAILY, uri="s3://lake/made", canonical_uri="s3://lake/made")
    reads = [dataset("made/partition=2024-07-01"), dataset("x", "kafka://broker:9092")]
    outputs = [dataset("raw/partition=2024-07-02"), dataset("dashboard", "bi://tool")]
    for run in (1, 2):
        event = completed(*outputs, inputs=reads, run=str(UUID(int=run)))
        api.post(ADDRESS, event, format="json")
    edges = {
        (edge.upstream_name, edge.downstream_name): (edge.upstream, edge.downstream)
        for edge in LineageEdge.objects.all()
    }
    assert edges == {
        ("made", "raw"): (made, raw),
        ("made", "dashboard"): (made, None),
        ("x", "raw"): (None, raw),
    }
    assert set(LineageEdge.objects.values_list("last_run_id", flat=True)) == {UUID(int=2)}


# ---------------------------------------------------------------- other tools


def test_events_of_dbt_make_downstream_assets_due(api: APIClient) -> None:
    uri = "postgres://postgres_host:1234/postgres/public/orders"
    external("orders", uri=uri, canonical_uri=uri)
    report = scheduled("report", by("orders"), since=at(2024, 1, 1))
    text = (TOOLS / "dbt.json").read_text().replace("{{ any(result) }}", RUN)
    events = json.loads(text)
    for event in events:
        event["schemaURL"] = f"{SPEC}#/$defs/RunEvent"
    answer = api.post(ADDRESS, events, format="json")
    assert answer.status_code == 200, answer.content
    assert [write["asset"] for write in answer.json()["writes"]] == ["orders"]
    process_outbox(timezone.now())
    assert waiting(report) == [""]
    upstream_names = LineageEdge.objects.values_list("upstream_name", flat=True)
    assert set(upstream_names) == {"postgres.public.stg_orders", "postgres.public.stg_payments"}


def test_events_of_sparks_listener_make_downstream_assets_due(api: APIClient) -> None:
    uri = "file://localhost/tmp/warehouse/target"
    external("target", uri=uri, canonical_uri=uri)
    report = scheduled("report", by("target"), since=at(2024, 1, 1))
    # OpenLineage's own file leaves out the fields that differ from run to run.
    event = completed() | json.loads((TOOLS / "spark.json").read_text())
    answer = api.post("/api/v1/lineage", event, format="json")
    assert answer.status_code == 200, answer.content
    assert [write["asset"] for write in answer.json()["writes"]] == ["target"]
    process_outbox(timezone.now())
    assert waiting(report) == [""]
    assert LineageEdge.objects.get().upstream_name == "/tmp/warehouse/test"


# ---------------------------------------------------------------- bad input


def _without(name: str) -> dict[str, Any]:
    event = completed(dataset("raw/partition=2024-07-01"))
    del event[name]
    return event


def _with(output: dict[str, Any]) -> dict[str, Any]:
    return completed(dataset("raw/partition=2024-07-01"), output)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("text", ""),
        (3, ""),
        ([completed(), "text"], "1"),
        (_without("eventTime"), "eventTime"),
        (_without("producer"), "producer"),
        (_without("schemaURL"), "schemaURL"),
        (_without("job"), "job"),
        ({**_without("run"), "run": {"runId": "no uuid"}}, "run.runId"),
        ({**_without("job"), "job": {"namespace": "n"}}, "job.name"),
        ({**_without("job"), "job": {"namespace": "n", "name": "a\0b"}}, "job.name"),
        ({**_without("eventType"), "eventType": "DONE"}, "eventType"),
        ({**_without("outputs"), "outputs": {}}, "outputs"),
        ({**_without("outputs"), "outputs": [dataset("x")] * 1_001}, "outputs"),
        (_with({"name": "raw"}), "outputs.1.namespace"),
        (_with(dataset("raw", facets=[])), "outputs.1.facets"),
        (_with(dataset("raw", **partitions("2024-99"))), "outputs.1"),
        (_with(dataset("raw", **partitions("2999-01-01"))), "outputs.1"),
        (
            _with(dataset("raw", facets={"slicewise_partitions": {"selection": 3}})),
            "outputs.1.facets.slicewise_partitions.selection",
        ),
        (
            _with(dataset("raw", **subset(type="partition", partitions=[{"dimensions": {}}]))),
            "outputs.1",
        ),
        (
            _with(dataset("raw", outputFacets={"outputStatistics": {"rowCount": -1}})),
            "outputs.1.outputFacets.outputStatistics.rowCount",
        ),
        ([_without("producer")], "0.producer"),
        ([completed(), completed(dataset("raw", **partitions("2024-99")))], "1.outputs.0"),
        ([completed()] * 101, ""),
        ([completed(*[dataset("raw/partition=2024-07-01")] * 501)] * 2, ""),
    ],
)  # fmt: skip
def test_a_wrong_event_is_refused_and_nothing_of_it_is_recorded(
    api: APIClient, raw: Asset, body: Any, field: str
) -> None:
    answer = api.post(ADDRESS, deepcopy(body), format="json")
    assert answer.status_code == 400, answer.content
    assert any(name.startswith(field) for name in answer.json()["errors"]), answer.json()
    assert not made_versions()
    assert not LineageEdge.objects.exists()
    assert not ReceivedWrite.objects.exists()


@pytest.mark.parametrize(
    "datasets",
    [
        {"outputs": [dataset("/".join(["a=1"] * 1_000))] * 20},
        {"outputs": [dataset("in/" + "/" * 3_900, "s3://lake")] * 5},
    ],
    ids=["folders in folders", "a name of slashes"],
)
def test_a_name_that_is_hard_to_match_takes_no_longer_than_others(
    api: APIClient, raw: Asset, datasets: dict[str, Any]
) -> None:
    uri = "s3://lake/in/{a}/{b}/{c}/data.csv"
    external("cube", DAY_BY_AIRPORT, uri=uri, canonical_uri=normalize_uri(uri))
    # Of this thread alone: other tests may keep the machine busy.
    began = thread_time()
    answer = api.post(ADDRESS, [{**completed(), **datasets}] * 4, format="json")
    assert answer.status_code == 200, answer.content
    assert thread_time() - began < 5


def test_a_viewer_and_a_stranger_report_nothing(
    viewer_api: APIClient, stranger_api: APIClient, raw: Asset
) -> None:
    event = completed(dataset("raw/partition=2024-07-01"))
    assert viewer_api.post(ADDRESS, event, format="json").status_code == 403
    assert stranger_api.post(ADDRESS, event, format="json").status_code == 401
    assert not made_versions()
