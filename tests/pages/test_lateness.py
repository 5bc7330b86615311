"""Overdue partitions and late inputs, as pages, the API and the command line show both."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.catalogue.freshness_watches import store_watches
from assets_app.models import Asset, AssetPartition, Gateway, Run
from assets_app.queries.graph_states import numbered_states
from assets_app.queries.late_inputs import late_inputs_of
from assets_app.queries.staleness import newer_inputs
from assets_app.scheduling.freshness import watch_freshness
from partitions_app.models import PartitionDefinition
from slicewise import PartitionByInterval, PartitionMapping
from slicewise.declaring import ExternalSpec
from tests.cli.commands import json_of, output_of
from tests.clients import api_client_of
from tests.execution.conftest import make_gateway, sent
from tests.factories import asset, person
from tests.gateways import record_gateway_of_each_queue
from tests.midnight import same_day
from tests.pages.markup import compact
from tests.partition_records import record
from tests.scheduling.beats import look, written
from tests.scheduling.scheduled_assets import (
    after,
    all_of,
    any_of,
    at,
    begin,
    by,
    finish,
    make_all,
    scheduled,
    write,
)

__all__ = ["same_day", "sent"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_day", "sent")]
DAILY = PartitionByInterval("@daily", start="2024-01-01")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def gateway(db: None) -> Gateway:
    return make_gateway("scheduled")


@pytest.fixture
def alice(db: None) -> User:
    return person("alice", is_superuser=True)


def day(ago: int) -> str:
    """Return the key of a day before today."""
    return f"{timezone.now() - ago * DAY:%Y-%m-%d}"


def watched(name: str, *, warn: bool = False) -> Asset:
    """Watch an asset: the last two days are overdue, or late with ``warn``."""
    of = asset(name, DAILY)
    watch(of, {"within": 7 * 86_400, "warn": 1} if warn else {"within": 1})
    return of


def watch(of: Asset, freshness: dict[str, int]) -> None:
    """Watch an asset from two days ago on."""
    spec = ExternalSpec(name=of.name, freshness=freshness, file="a.py", line=1)
    with transaction.atomic():
        store_watches(of.bundle, [], [spec], now=timezone.now() - 2 * DAY)
    watch_freshness(timezone.now())


# ---------------------------------------------------------------- overdue


def test_open_pages_show_partitions_that_become_overdue(browser: Client) -> None:
    of = asset("sales", DAILY)
    versions = {
        "/assets/?": browser.get("/assets/").context["version"],
        "/assets/sales/?fragment=head&": browser.get("/assets/sales/").context["head_version"],
    }

    def statuses() -> list[int]:
        polls = [f"{address}version={version}" for address, version in versions.items()]
        return [browser.get(poll, headers={"hx-request": "true"}).status_code for poll in polls]

    assert statuses() == [204, 204]
    watch(of, {"within": 1})
    assert statuses() == [200, 200]


def test_the_overview_and_the_catalogue_count_overdue_partitions(browser: Client) -> None:
    watched("sales")
    watched("visits", warn=True)
    asset("plain", DAILY)
    overview = browser.get("/").content.decode()
    assert "2 overdue" in overview
    assert '/assets/sales/?select=overdue"' in overview
    selected = browser.get("/assets/sales/?select=overdue").content.decode()
    assert f'value="{day(2)}..{day(1)}"' in selected
    listed = browser.get("/assets/").content.decode()
    assert "2 overdue" in listed
    assert "2 late" in listed
    overdue = browser.get("/assets/?show=overdue").content.decode()
    assert "/assets/sales/" in overdue
    assert "/assets/visits/" not in overdue
    assert "2 overdue" in browser.get("/assets/sales/").content.decode()


def test_the_latest_partitions_in_the_list_of_assets_show_late_and_overdue_ones(
    browser: Client,
) -> None:
    """A failed run says more than a missed time, and one that came is late no more."""
    sales = watched("sales")
    watched("visits", warn=True)
    assert "58 missing, 2 overdue" in browser.get("/assets/?asset=sales").content.decode()
    assert "58 missing, 2 late" in browser.get("/assets/?asset=visits").content.decode()
    record(sales, day(1), lambda _: "failed")
    record(sales, day(2), lambda _: "materialized")
    listed = browser.get("/assets/?asset=sales").content.decode()
    assert "58 missing, 1 materialized, 1 failed" in listed


def test_the_overviews_link_selects_overdue_partitions_whose_run_failed(browser: Client) -> None:
    sales = watched("sales")
    record(sales, day(1), lambda _: "failed")
    selected = browser.get("/assets/sales/?select=overdue").content.decode()
    assert f'value="{day(2)}..{day(1)}"' in selected


def test_the_overviews_link_selects_failed_partitions_of_earlier_years(browser: Client) -> None:
    sales = asset("sales", DAILY)
    record(sales, "2024-03-05", lambda _: "failed")
    record(sales, "2025-02-07", lambda _: "failed")
    page = browser.get("/assets/sales/?select=failed").content.decode()
    assert 'value="2024-03-05,2025-02-07"' in page
    # The grid shows the year of the last one.
    assert 'href="partitions/2025-02-07/"' in page
    shorter = PartitionByInterval("@daily", start="2024-01-01", end="2025-01-01")
    sales.partition_definition = PartitionDefinition.of(shorter.to_json())
    sales.save()
    page = browser.get("/assets/sales/?select=failed").content.decode()
    assert 'value="2024-03-05"' in page
    assert 'href="partitions/2024-03-05/"' in page


def test_the_overviews_link_selects_no_part_of_too_many_partitions(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sales = asset("sales", DAILY)
    record(sales, "2024-03-05..2024-03-07", lambda _: "failed")
    monkeypatch.setattr("assets_app.queries.counted_selection.MOST_SELECTED", 2)
    page = browser.get("/assets/sales/?select=failed").content.decode()
    assert "partitions: zoom in, or type a selection." in page
    assert 'value="2024-03-05' not in page


def test_the_overviews_link_knows_a_key_in_an_earlier_spelling(browser: Client) -> None:
    """Kazakhstan changed its offset in 2024: a host with older rules spelled keys otherwise."""
    hourly = PartitionByInterval("@hourly", start="2024-01-01", timezone="Asia/Almaty")
    sales = asset("sales", hourly)
    record(sales, "2024-03-05T10:00+05:00", lambda _: "failed")
    AssetPartition.objects.update(key="2024-03-05T11:00+06:00")
    page = browser.get("/assets/sales/?select=failed").content.decode()
    assert 'value="2024-03-05T10:00+05:00"' in page


def test_the_graph_shows_overdue_partitions_before_missing_ones(browser: Client) -> None:
    sales = watched("sales")
    watched("visits", warn=True)
    counts = browser.get("/api/v1/asset-graph/states/").json()["assets"]
    assert counts["sales"]["overdue"] == 2
    assert counts["sales"]["missing"] == counts["sales"]["expected"] > 2
    assert "overdue" not in counts["visits"]
    assert counts["visits"]["late"] == 2
    assert numbered_states(counts["visits"])[0].words == "2 late"
    words = [state.words for state in numbered_states(counts["sales"] | {"failed": 3})]
    assert words[:2] == ["3 failed", "2 overdue"]
    page = compact(browser.get("/assets/graph/").content.decode())
    assert 'data-state="overdue" data-label="Overdue"' in page
    assert "2 overdue</span>" in page
    assert "2 overdue</span>" in compact(browser.get("/assets/sales/impact/").content.decode())
    # A partition that has come is not overdue before the beat looks.
    record(sales, day(1))
    counts = browser.get("/api/v1/asset-graph/states/").json()["assets"]
    assert counts["sales"]["overdue"] == 1


def test_without_overdue_partitions_all_is_clear(browser: Client) -> None:
    watched("visits", warn=True)
    record_gateway_of_each_queue()
    assert "No failed partitions, none overdue" in browser.get("/").content.decode()
    assert "No matching assets" in browser.get("/assets/?show=overdue").content.decode()


def test_a_cell_and_the_page_of_a_partition_say_so(
    browser: Client, alice: User, gateway: Gateway
) -> None:
    sales, visits = watched("sales"), watched("visits", warn=True)
    grid = browser.get(f"/assets/sales/?zoom=month&at={day(1)}").content.decode()
    assert f'aria-label="{day(1)}: overdue"' in grid
    page = browser.get(f"/assets/sales/partitions/{day(1)}/").content.decode()
    assert "Overdue since" in page
    assert "state-bad" in page
    page = browser.get(f"/assets/{visits.name}/partitions/{day(1)}/").content.decode()
    assert "Late since" in page
    write(sales, day(1), gateway, alice)
    page = browser.get(f"/assets/sales/partitions/{day(1)}/").content.decode()
    assert "Overdue since" not in page


def test_the_api_has_counts_a_filter_and_fields(vera: User, alice: User, gateway: Gateway) -> None:
    sales = watched("sales")
    watched("visits", warn=True)
    api = api_client_of(vera)
    rows = {row["name"]: row for row in api.get("/api/v1/assets/").json()["results"]}
    assert (rows["sales"]["overdue"], rows["sales"]["late"]) == (2, 0)
    assert (rows["visits"]["overdue"], rows["visits"]["late"]) == (0, 2)
    for value, names in (("true", ["sales"]), ("false", ["visits"])):
        found = api.get(f"/api/v1/assets/?overdue={value}").json()["results"]
        assert [row["name"] for row in found] == names
    assert api.get("/api/v1/assets/sales/").json()["freshness"] == {"within": 1, "warn": None}
    lines = api.get("/api/v1/assets/sales/partitions/?state=overdue&page_size=1").json()
    assert [line["key"] for line in lines["results"]] == [day(2)]
    lines = api.get(lines["next"]).json()
    assert (lines["next"], lines["results"][0]["key"]) == (None, day(1))
    line = lines["results"][0]
    assert (line["state"], line["lateness"], line["late_inputs"]) == ("missing", "overdue", [])
    assert line["overdue_at"].endswith("T00:00:01Z")
    write(sales, day(1), gateway, alice)
    lines = api.get(f"/api/v1/assets/sales/partitions/?state=overdue&selection={day(1)}").json()
    assert lines["results"] == []
    refused = api.get("/api/v1/assets/sales/partitions/?state=late")
    assert "overdue" in refused.json()["errors"]["state"][0]


def test_the_command_line_lists_overdue_partitions(alice: User) -> None:
    watched("sales")
    rows = json_of("partitions", "sales", "--state", "overdue")
    assert [(row["key"], row["lateness"]) for row in rows] == [
        (day(2), "overdue"), (day(1), "overdue"),
    ]  # fmt: skip
    assert "missing, overdue" in output_of("partitions", "sales", "--state", "overdue")
    asset("whole")
    assert json_of("partitions", "whole", "--state", "overdue") == []


# ---------------------------------------------------------------- late inputs


def made_without_b(alice: User, gateway: Gateway) -> tuple[Asset, Asset, Asset]:
    """Make a report of a day without its second input."""
    a, b = asset("a", DAILY), asset("b", DAILY)
    waits = any_of(all_of(by("a"), by("b")), all_of(by("a"), after(6 * HOUR)))
    report = scheduled("report", waits, DAILY, since=at(2024, 7, 1))
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    look(at(2024, 7, 2, 6))
    return a, b, report


def test_the_page_and_the_api_say_what_was_missing(
    browser: Client, vera: User, alice: User, gateway: Gateway
) -> None:
    _, _, report = made_without_b(alice, gateway)
    make_all(report, gateway)
    page = browser.get("/assets/report/partitions/2024-07-01/").content.decode()
    assert "Late inputs" in page
    assert "was missing: <bdi>2024-07-01</bdi>" in page
    path = "/api/v1/assets/report/partitions/?selection=2024-07-01"
    (line,) = api_client_of(vera).get(path).json()["results"]
    assert line["late_inputs"] == [
        {"asset": "b", "reason": "missing", "effect": "stale", "missing": 1,
         "keys": ["2024-07-01"], "newest_at": None},
    ]  # fmt: skip
    assert line["stale"] is False


def test_the_page_says_what_a_run_by_hand_did_not_have(
    browser: Client, alice: User, gateway: Gateway
) -> None:
    a, b = asset("a", DAILY), asset("b", DAILY)
    names: dict[str, PartitionMapping | None] = {"a": None, "b": None}
    both = all_of(by("a"), by("b"))
    report = scheduled("report", both, DAILY, since=at(2024, 7, 1), upstream=names)
    write(a, "2024-07-01", gateway, alice)
    write(report, "2024-07-01", gateway, alice)
    address = "/assets/report/partitions/2024-07-01/"
    page = compact(browser.get(address).content.decode())
    sentence = "was missing when the partition was materialized:<bdi>2024-07-01</bdi>"
    assert "<dt>Missing inputs</dt>" in page
    assert page.count("was missing") == page.count(sentence) == 1
    assert "Late inputs" not in page
    write(b, "2024-07-01", gateway, alice)
    page = compact(browser.get(address).content.decode())
    assert sentence in page
    assert "is up to date" in page
    write(report, "2024-07-01", gateway, alice)
    assert "was missing" not in browser.get(address).content.decode()


def test_it_is_stale_once_the_missing_input_comes(alice: User, gateway: Gateway) -> None:
    a, b, report = made_without_b(alice, gateway)
    make_all(report, gateway)
    assert newer_inputs(report, ["2024-07-01"]) == {}
    written(b, "2024-07-01", at(2024, 7, 2, 8), gateway, alice)
    assert newer_inputs(report, ["2024-07-01"])["2024-07-01"].text == "b 2024-07-01 is newer"
    assert set(late_inputs_of(report, ["2024-07-01"])) == {"2024-07-01"}
    written(a, "2024-07-01", at(2024, 7, 2, 9), gateway, alice)
    make_all(report, gateway)
    assert newer_inputs(report, ["2024-07-01"]) == {}
    assert late_inputs_of(report, ["2024-07-01"]) == {}


def test_an_input_that_came_before_the_run_began_was_not_late(
    alice: User, gateway: Gateway
) -> None:
    _, b, report = made_without_b(alice, gateway)
    write(b, "2024-07-01", gateway, alice)
    finish(begin(Run.objects.get(asset=report), gateway))
    assert late_inputs_of(report, ["2024-07-01"]) == {}
    assert newer_inputs(report, ["2024-07-01"]) == {}


def test_lateness_costs_a_fixed_number_of_statements(browser: Client) -> None:
    watched("sales")
    with CaptureQueriesContext(connection) as few:
        browser.get("/assets/")
    for number in range(5):
        watched(f"visits_{number}")
    with CaptureQueriesContext(connection) as many:
        browser.get("/assets/")
    assert len(many) == len(few)
