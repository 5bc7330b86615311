"""The status of an asset on its page, where runs belong to another asset or no file declares it."""

import re
from dataclasses import replace

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, AssetPartition, Gateway, Run
from assets_app.queries.counts import HeldCounts
from assets_app.queries.overview import asset_statuses
from assets_app.queries.stale_counts import StaleCount
from assets_app.queries.state_shares import divided_count, state_shares
from tests.attempts import begun, publish
from tests.execution.conftest import make_gateway
from tests.factories import DAILY_2013, asset, outlet_of, together
from tests.pages.markup import compact, page_at
from tests.pages.run_records import failed_run, repeat_run
from tests.partition_records import record
from tests.query_plans import rows_read

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker() -> Gateway:
    return make_gateway("scheduled")


def make_both(first: Asset, second: Asset, user: User, worker: Gateway) -> Run:
    """Make a day of both assets by a run of the first asset."""
    attempt = begun(first, user, worker)
    files = [{"key": "2013-01-01", "path": "x", "rows": 5, "bytes": 50}]
    outlets = [outlet_of(attempt, files, of=of, root=f"/{of.name}") for of in (first, second)]
    assert attempts.intend_to_publish(attempt.row, outlets)
    assert ending.succeed(attempt.row)
    return Run.objects.get(pk=attempt.run.pk)


def test_every_outlet_of_a_function_has_the_success_of_the_run_that_made_it(
    vera: User, worker: Gateway
) -> None:
    first, second = together("both", ["first", "second"], DAILY_2013)
    run = make_both(first, second, vera, worker)
    assert set(AssetPartition.objects.values_list("version", flat=True)) == {1}
    with CaptureQueriesContext(connection) as of_one:
        (status,) = asset_statuses([second])
    assert status.last_success == run.ended_at
    with CaptureQueriesContext(connection) as of_both:
        assert [status.last_success for status in asset_statuses([first, second])] == [
            run.ended_at
        ] * 2
    assert len(of_one) == len(of_both)


def test_an_outlet_that_was_added_later_has_no_success_yet(vera: User, worker: Gateway) -> None:
    first = asset("first", DAILY_2013)
    publish(begun(first, vera, worker))
    later = Asset.objects.create(
        name="later", bundle=first.bundle, producer=first.producer,
        partition_definition=first.partition_definition,
    )  # fmt: skip
    of_first, of_later = asset_statuses([first, later])
    assert of_first.last_success is not None
    assert of_later.last_success is None


def test_an_asset_that_no_file_declares_is_missing_nothing_and_reads_nothing(
    browser: Client,
) -> None:
    asset("raw", DAILY_2013)
    undeclared, declared = (
        asset(name, DAILY_2013, upstream={"raw": None}) for name in ("gone", "kept")
    )
    raw = Asset.objects.get(name="raw")
    for reader in (undeclared, declared):
        reader.upstream_edges.create(upstream=raw, inlet=True)
    Asset.objects.filter(pk=undeclared.pk).update(active=False)
    page = browser.get("/assets/gone/").content.decode()
    assert " expected</span>" not in page
    assert "Missing" not in page.split("Last materialized")[0]
    neighbours = browser.get("/assets/raw/?tab=neighbours").content.decode()
    assert "/assets/kept/" in neighbours
    assert "/assets/gone/" not in neighbours
    assert "/assets/raw/" in browser.get("/assets/gone/?tab=neighbours").content.decode()
    detail = browser.get("/api/v1/assets/raw/").json()
    assert detail["downstream"] == ["kept"]
    assert browser.get("/api/v1/assets/gone/").json()["expected"] is None


def test_an_asset_with_a_canceled_partition_is_not_complete(browser: Client) -> None:
    flights = asset("flights", DAILY_2013)
    record(flights, "2013", lambda place: "materialized" if place else "canceled")
    assert not asset_statuses([flights])[0].is_complete
    page = browser.get("/assets/").content.decode()
    assert "1 canceled" in page
    assert "Complete" not in page


def test_partitions_in_progress_are_said_to_be_among_the_expected_ones(
    browser: Client, vera: User
) -> None:
    flights = asset("flights", DAILY_2013)
    record(flights, "2013-01", lambda place: "materialized" if place else "failed")
    materialize(MaterializeRequest(asset=flights, selection="2013-02-01..2013-02-04"), user=vera)
    again = MaterializeRequest(asset=flights, selection="2013-01-01..2013-01-03")
    (run, *_) = materialize(again, user=vera).runs.order_by("id")
    Run.objects.filter(pk=run.pk).update(state="dispatched")
    Run.objects.filter(pk=run.pk).update(state="running")
    page = compact(page_at(browser, "/assets/flights/"))
    head = page.split('<div class="facts">')[1].split("Last materialized")[0]
    text = " ".join(re.sub(r"<[^>]*>", " ", head).split())
    assert text.replace("( ", "(").replace(" )", ")") == (
        "Materialized 30 (2 queued) Retried 1 (1 running) Missing 334 (4 queued) of 365 expected"
    )


def test_partitions_in_progress_that_are_not_expected_yet_are_counted_apart() -> None:
    held = {"missing": HeldCounts(queued=5), "materialized": HeldCounts(running=1)}
    shares = state_shares([("materialized", 3), ("missing", 4)], held, StaleCount(2))
    assert shares == [
        ("materialized", 3, [("running", 1, False), ("stale", 2, False)]),
        ("missing", 4, ()),
    ]
    assert divided_count(shares) == 3


def test_the_list_of_assets_shows_the_most_urgent_state_first(browser: Client, vera: User) -> None:
    flights = asset("flights", DAILY_2013)
    states = ["failed", "canceled", "skipped"]
    record(flights, "2013-01-01..2013-01-03", lambda place: states[place])
    materialize(MaterializeRequest(asset=flights, selection="2013-02-01..2013-02-04"), user=vera)
    page = compact(page_at(browser, "/assets/")).split("<tbody>")[1]
    words = re.findall(r"\d[\d,]* (?:failed|queued|canceled|skipped|missing)", page)
    assert words[:5] == ["1 failed", "4 queued", "1 canceled", "1 skipped", "358 missing"]


def test_held_partitions_that_are_not_expected_yet_are_not_taken_from_missing_ones() -> None:
    (status,) = asset_statuses([asset("flights", DAILY_2013)])
    for queued, missing in ((5, 360), (366, 365)):
        held = replace(status, held_by_state={"missing": HeldCounts(queued=queued)})
        (state,) = [state for state in held.urgent_states if state.look.name == "missing"]
        assert state.number == missing


def test_the_last_success_is_read_without_the_failed_runs_of_an_asset() -> None:
    flights = asset("flights", DAILY_2013)
    repeat_run(failed_run(flights), 500)
    with CaptureQueriesContext(connection) as statements:
        (status,) = asset_statuses([flights], strips=False)
    assert status.last_success is None
    (of_times,) = [query["sql"] for query in statements if "assets_app_writereport" in query["sql"]]
    assert rows_read(of_times, table="assets_app_run") < 10
