"""The page and the drawer of a partition: why it is as it is, and the partitions beside it."""

import re
from datetime import UTC, date, datetime

import pytest
from django.test import Client

from assets_app.models import (
    Asset,
    AssetDependency,
    AssetPartition,
    AttemptInput,
    Materialization,
    RunState,
)
from assets_app.queries.adjacent import adjacent_to
from assets_app.queries.inputs_read import inputs_of
from slicewise import PartitionByInterval, PartitionDefinition
from tests.clients import api_client_of, browser_of
from tests.factories import AIRPORTS, DAILY_2013, DAY_BY_AIRPORT, asset, person
from tests.gateways import record_attempt, record_gateway
from tests.pages.markup import compact, page_at
from tests.pages.run_records import failed_partition, recorded_run
from tests.partition_records import made, record

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 20, tzinfo=UTC)
HOURLY = PartitionByInterval("@hourly", timezone="America/New_York", start=date(2026, 1, 1))


@pytest.mark.parametrize(
    ("definition", "key", "previous", "following"),
    [
        (DAILY_2013, "2013-01-01", "", "2013-01-02"),
        (DAILY_2013, "2013-12-31", "2013-12-30", ""),
        (DAY_BY_AIRPORT, "2013-02-01|JFK", "2013-01-31|JFK", "2013-02-02|JFK"),
        (
            HOURLY,
            "2026-11-01T01:00-05:00",
            "2026-11-01T01:00-04:00",
            "2026-11-01T02:00-05:00",
        ),
        (AIRPORTS, "JFK", "EWR", "LGA"),
        (PartitionByInterval("@daily", start=date(2026, 1, 1)), "2026-11-20", "2026-11-19", ""),
        (DAILY_2013, "1999-01-01", "", ""),
        (None, "", "", ""),
    ],
)
def test_the_partitions_before_and_after(
    definition: PartitionDefinition | None, key: str, previous: str, following: str
) -> None:
    adjacent = adjacent_to(definition, key, NOW)
    assert (adjacent.previous, adjacent.following) == (previous, following)


def flights_and_months() -> Asset:
    """Create days, and months that read the days."""
    days = asset("days", DAILY_2013)
    months = asset("months", PartitionByInterval("@monthly", start=date(2013, 1, 1)))
    AssetDependency.objects.create(upstream=days, downstream=months, inlet=True)
    record(days, "2013-03-01..2013-03-29")
    return days


def test_the_page_and_the_drawer_say_why_and_lead_on(browser: Client) -> None:
    flights_and_months()
    for headers in ({}, {"hx-request": "true"}):
        answer = browser.get("/assets/months/partitions/2013-03-01/", headers=headers)
        text = compact(answer.content.decode())
        assert ("<html" in text) == (not headers)
        assert "Waiting for 2 of 31 partitions of days: days 2013-03-30, days 2013-03-31." in text
        assert 'rel="prev" href="/assets/months/partitions/2013-02-01/"' in text
        assert "selection=2013-03-01&amp;downstream=all" in text
    text = page_at(browser, "/assets/days/partitions/2013-03-30/")
    assert "The asset has no schedule" in text
    assert 'href="/assets/months/partitions/2013-03-01/"' in text


def test_the_page_and_the_drawer_list_the_same_upstream_partitions(browser: Client) -> None:
    flights_and_months()
    for headers in ({}, {"hx-request": "true"}):
        answer = browser.get("/assets/months/partitions/2013-03-01/", headers=headers)
        text = compact(answer.content.decode())
        assert '<a href="/assets/days/">days</a>: 29 of 31' in text
        for day in ("2013-03-30", "2013-03-31"):
            assert f'class="key" href="/assets/days/partitions/{day}/">days {day}</a>' in text


def test_the_page_and_the_drawer_count_the_upstream_partitions_that_are_not_named(
    browser: Client,
) -> None:
    flights_and_months()
    for headers in ({}, {"hx-request": "true"}):
        address = "/assets/months/partitions/2013-04-01/"
        text = compact(browser.get(address, headers=headers).content.decode())
        assert '<a href="/assets/days/">days</a>: 0 of 30' in text
        assert "and 27 more</div>" in text


def test_upstream_partitions_that_do_not_exist_are_counted_once_as_needed(browser: Client) -> None:
    days = asset("days", PartitionByInterval("@daily", start=date(2013, 3, 15)))
    months = asset("months", PartitionByInterval("@monthly", start=date(2013, 1, 1)))
    AssetDependency.objects.create(upstream=days, downstream=months, inlet=True)
    record(days, "2013-03-15..2013-03-31")
    page = compact(page_at(browser, "/assets/months/partitions/2013-03-01/"))
    sentence = "17 of 31; 14 do not exist: 2013-03-01 to 2013-03-14"
    assert f'<a href="/assets/days/">days</a>: {sentence}' in page
    # In the list of needed partitions and in the reason, and not on a line of its own.
    assert page.count("14 do not exist") == 2


def test_the_drawer_of_a_failed_partition_offers_a_retry_of_the_run(browser: Client) -> None:
    days = flights_and_months()
    run = failed_partition(days, "2013-03-05", error="ValueError: no rows")
    address, htmx = "/assets/days/partitions/2013-03-05/", {"hx-request": "true"}
    text = compact(browser.get(address, headers=htmx).content.decode())
    assert f'<a class="btn btn-primary" href="/runs/{run.pk}/retry/">' in text
    assert f"Retry run {run.pk}…</a>" in text
    assert f"Run {run.pk} failed: ValueError: no rows" in text
    assert 'rel="prev" href="/assets/days/partitions/2013-03-04/"' in text
    assert 'rel="next" href="/assets/days/partitions/2013-03-06/"' in text
    assert '<h3 class="h4 mb-1">Downstream</h3>' in text
    assert 'href="/assets/months/partitions/2013-03-01/"' in text
    runs = text.partition('<h3 class="h4 mb-1">Runs</h3>')[2]
    assert f'href="/runs/{run.pk}/">Run {run.pk}</a>' in runs
    # Not for people who may not retry, and not while a run materializes the partition.
    otto = browser_of(person("otto")).get(address, headers=htmx).content.decode()
    assert "/retry/" not in otto
    held = recorded_run(days, RunState.RUNNING, "2013-03-05")
    AssetPartition.objects.filter(asset=days, key="2013-03-05").update(held_by=held)
    assert "/retry/" not in browser.get(address, headers=htmx).content.decode()


def test_the_page_of_a_failed_partition_offers_a_retry_after_the_state(browser: Client) -> None:
    days = flights_and_months()
    run = failed_partition(days, "2013-03-05", error="ValueError: no rows")
    address = "/assets/days/partitions/2013-03-05/"
    text = compact(page_at(browser, address))
    assert f'<a class="btn btn-primary" href="/runs/{run.pk}/retry/">' in text
    assert text.count("btn-primary") == 1
    assert text.index("<dt>State</dt>") < text.index("<dt>Reason</dt>") < text.index("/retry/")
    otto = browser_of(person("otto")).get(address).content.decode()
    assert "/retry/" not in otto


def test_owners_are_on_the_pages_of_asset_partition_and_run(browser: Client) -> None:
    flights = asset("flights", DAILY_2013, owners=["web team", "ada"])
    run = failed_partition(flights, "2013-03-05")
    addresses = ("/assets/flights/", "/assets/flights/partitions/2013-03-05/", f"/runs/{run.pk}/")
    for address in addresses:
        text = compact(page_at(browser, address))
        assert re.search(r"Owners(:|</dt>)", text), address
        assert '<a href="/assets/?owner=web%20team"' in text, address
        assert '<a href="/assets/?owner=ada"' in text, address
    asset("orders", DAILY_2013)
    assert "Owner" not in page_at(browser, "/assets/orders/")


def test_inputs_are_in_the_order_of_time() -> None:
    hours = asset("hours", HOURLY)
    days = asset("days_of", DAILY_2013, upstream={"hours": None})
    keys = ["2026-11-01T02:00-05:00", "2026-11-01T01:00-05:00", "2026-11-01T01:00-04:00"]
    for key in keys:
        made(hours, key)
    run = recorded_run(days, RunState.SUCCEEDED, "2013-01-05", ended_at=NOW)
    made(days, "2013-01-05")
    record_attempt(record_gateway("one"), run)
    attempt = run.attempts.get()
    partition = AssetPartition.objects.get(asset=days)
    Materialization.objects.create(
        partition=partition, version=1, run=run, attempt=attempt, created_at=NOW,
        producer_version=run.producer_version,
    )  # fmt: skip
    for key in keys:
        row = AssetPartition.objects.get(asset=hours, key=key)
        AttemptInput.objects.create(attempt=attempt, partition=row, version=row.version)
    inputs = inputs_of(partition, partition.materializations.get())
    assert [row.partition.key for row in inputs] == keys[::-1]


def test_the_api_says_why() -> None:
    flights_and_months()
    client = api_client_of(person("otto"))
    answer = client.get("/api/v1/assets/months/partitions/?selection=2013-03")
    (line,) = answer.json()["results"]
    assert line["reason"].startswith("Waiting for 2 of 31 partitions of days")


@pytest.mark.parametrize(
    ("error", "times"), [("ValueError: no rows", 1), ("ValueError: no rows\nin line 7", 2)]
)
def test_an_error_that_the_reason_carries_is_told_once(
    browser: Client, error: str, times: int
) -> None:
    run = failed_partition(asset("flights", DAILY_2013), "2013-01-05", error=error)
    page = compact(page_at(browser, "/assets/flights/partitions/2013-01-05/"))
    assert f"Run {run.pk} failed: ValueError: no rows</span>" in page
    assert page.count("ValueError: no rows") == times
    assert ("<dt>Error</dt>" in page) == (times == 2)
