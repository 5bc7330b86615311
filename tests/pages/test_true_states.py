"""States on pages: stale and queued partitions, the run of the data, the latest partitions."""

import re
from collections import Counter
from datetime import date

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, Gateway, Run, RunState, ScheduleTick
from assets_app.queries.overview import asset_statuses
from assets_app.queries.stale_counts import StaleCount, stale_counts
from partitions_app.models import PartitionDefinition
from slicewise import PartitionByInterval, PartitionBySequence
from slicewise_server.web import kept_counts
from tests.execution.conftest import make_gateway
from tests.factories import DAILY_2013, asset
from tests.pages.backfill_records import runs_of, written_backfill
from tests.pages.markup import compact, page_at, polled_address
from tests.pages.run_records import failed_run, recorded_run
from tests.partition_records import record
from tests.scheduling.scheduled_assets import DAILY, HOURLY, at, by, cron, scheduled, write

pytestmark = pytest.mark.django_db


@pytest.fixture
def gateway(db: None) -> Gateway:
    return make_gateway("scheduled")


def stale_day(user: User, gateway: Gateway, strategy: str = "partition") -> tuple[Asset, Asset]:
    """Create hours, and two days made from the hours, of which one is stale."""
    hourly = asset("hourly", HOURLY)
    daily = scheduled(
        "daily", by("hourly"), DAILY, since=at(2024, 1, 1), upstream={"hourly": None},
        strategy=strategy,
    )  # fmt: skip
    write(hourly, "2024-07-01..2024-07-02", gateway, user)
    write(daily, "2024-07-01..2024-07-02", gateway, user)
    assert stale_counts([hourly, daily]) == {}
    write(hourly, "2024-07-01T03:00Z..2024-07-01T05:00Z", gateway, user)
    return hourly, daily


@pytest.mark.parametrize("strategy", ["partition", "range"])
def test_stale_partitions_are_counted_as_the_grid_shows_them(
    browser: Client, vera: User, gateway: Gateway, strategy: str
) -> None:
    hourly, daily = stale_day(vera, gateway, strategy)
    assert stale_counts([hourly, daily]) == {daily.pk: StaleCount(1)}
    assert "1 stale" in compact(page_at(browser, "/assets/"))
    assert "1 stale" in compact(page_at(browser, "/assets/daily/"))
    listed = page_at(browser, "/assets/?show=stale")
    assert "/assets/daily/" in listed
    assert f'id="asset-{hourly.pk}"' not in listed
    write(daily, "2024-07-01", gateway, vera)
    assert stale_counts([hourly, daily]) == {}
    assert "No matching assets" in page_at(browser, "/assets/?show=stale")


def test_an_asset_with_a_stale_partition_is_not_complete(
    browser: Client, vera: User, gateway: Gateway
) -> None:
    upstream = asset("one")
    two = scheduled("two", by("one"), since=at(2024, 1, 1), upstream={"one": None})
    write(upstream, "", gateway, vera)
    write(two, "", gateway, vera)
    assert page_at(browser, "/assets/").count("Complete") == 2
    write(upstream, "", gateway, vera)
    page = page_at(browser, "/assets/")
    assert page.count("Complete") == 1
    assert "1 stale" in compact(page)


def test_orphans_and_partitions_in_flight_are_not_stale(vera: User, gateway: Gateway) -> None:
    _, daily = stale_day(vera, gateway)
    materialize(MaterializeRequest(asset=daily, selection="2024-07-01"), user=vera)
    assert stale_counts([daily]) == {}
    Run.objects.filter(asset=daily, state=RunState.QUEUED).update(
        state=RunState.CANCELED, ended_at=at(2024, 8, 1)
    )
    daily.partitions.update(held_by=None)
    assert stale_counts([daily]) == {daily.pk: StaleCount(1)}
    later = PartitionByInterval("@daily", start="2024-07-02")
    daily.partition_definition = PartitionDefinition.of(later.to_json())
    daily.save()
    assert stale_counts([daily]) == {}


def test_stale_partitions_of_many_assets_are_counted_in_one_statement(
    vera: User, gateway: Gateway
) -> None:
    both = list(stale_day(vera, gateway))
    others = [asset(f"other{number}", DAILY_2013) for number in range(5)]
    with CaptureQueriesContext(connection) as statements:
        stale_counts([*both, *others])
    assert len(statements) == 1


def test_a_count_that_takes_long_is_kept_and_one_that_does_not_is_not(
    vera: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, daily = stale_day(vera, gateway)
    monkeypatch.setattr(kept_counts, "CHEAP_SECONDS", 0.0)
    assert stale_counts([daily]) == {daily.pk: StaleCount(1)}
    with CaptureQueriesContext(connection) as statements:
        assert stale_counts([daily]) == {daily.pk: StaleCount(1)}
    assert len(statements) == 0
    cache.clear()
    with CaptureQueriesContext(connection) as statements:
        stale_counts([daily])
    assert len(statements) == 1


def test_queued_partitions_are_told_from_running_ones(browser: Client, vera: User) -> None:
    flights = asset("raw_flights", DAILY_2013)
    group = materialize(
        MaterializeRequest(asset=flights, selection="2013-01-01..2013-01-03"), user=vera
    )
    run = group.runs.order_by("id")[0]
    Run.objects.filter(pk=run.pk).update(state=RunState.DISPATCHED)
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    page = compact(page_at(browser, "/assets/raw_flights/"))
    assert "1 running" in page
    assert "2 queued" in page
    asset("idle", DAILY_2013)
    for shown in ("queued", "running"):
        listed = page_at(browser, f"/assets/?show={shown}")
        assert "/assets/raw_flights/" in listed
        assert "/assets/idle/" not in listed


def test_the_list_of_assets_is_polled_and_answers_nothing_until_a_state_changes(
    browser: Client,
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    headers = {"hx-request": "true"}
    again = polled_address(page_at(browser, "/assets/?show="))
    assert browser.get(again, headers=headers).status_code == 204
    record(flights, "2013-01-01", lambda n: "failed")
    answer = browser.get(again, headers=headers)
    assert "1 failed" in compact(answer.content.decode())
    assert "<html" not in answer.content.decode()


def test_the_strip_shows_the_latest_expected_partitions_and_not_the_latest_rows(db: None) -> None:
    flights = asset("raw_flights", DAILY_2013)
    record(flights, "2013-01-01..2013-01-31")
    record(flights, "2013-12-31", lambda n: "failed")
    (status,) = asset_statuses([flights])
    assert status.strip
    assert Counter(look.name for look in status.strip.looks) == {"missing": 59, "failed": 1}
    assert status.strip.text == "2013-11-02 to 2013-12-31: 59 missing, 1 failed"


@pytest.mark.parametrize("strategy", ["partition", "range"])
def test_the_strip_shows_stale_partitions_as_stale(
    vera: User, gateway: Gateway, strategy: str
) -> None:
    hourly, daily = stale_day(vera, gateway, strategy)
    for status in asset_statuses([hourly, daily], now=at(2024, 7, 3)):
        assert status.strip
        looks = Counter(look.name for look in status.strip.looks)
        assert looks["stale"] == (1 if status.asset == daily else 0)
        assert looks["materialized"] > 0
        assert ("1 stale" in status.strip.text) == (status.asset == daily)


def test_partitions_without_time_have_a_strip_too(db: None) -> None:
    shops = asset("shops", PartitionBySequence(["mitte", "wedding", "moabit"]))
    record(shops, "wedding", lambda n: "failed")
    whole, future = (
        asset("whole"),
        asset("future", PartitionByInterval("@daily", start=date(2199, 1, 1))),
    )
    statuses = {
        status.asset.name: status.strip for status in asset_statuses([shops, whole, future])
    }
    assert statuses["shops"]
    assert [look.name for look in statuses["shops"].looks] == ["missing", "failed", "missing"]
    assert statuses["whole"]
    assert [look.name for look in statuses["whole"].looks] == ["missing"]
    assert statuses["future"] is None


def test_a_partition_names_the_run_that_wrote_its_data_and_the_later_one_apart(
    browser: Client, vera: User, gateway: Gateway
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    write(flights, "2013-01-01", gateway, vera)
    wrote = Run.objects.get()
    later = materialize(
        MaterializeRequest(asset=flights, selection="2013-01-01"), user=vera
    ).runs.get()
    cancel_run(later, user=vera)
    page = compact(page_at(browser, "/assets/raw_flights/partitions/2013-01-01/"))
    assert f'Materialized</span>· materialized by<a href="/runs/{wrote.pk}/">' in page
    assert f'Later<a href="/runs/{later.pk}/">run {later.pk}</a>:' in page


def test_active_partitions_of_a_backfill_are_running_or_queued(browser: Client, vera: User) -> None:
    asset("raw_flights", DAILY_2013)
    january = written_backfill(vera)
    runs_of(january, "running", 3)
    runs_of(january, "queued", 6)
    page = compact(page_at(browser, f"/backfills/{january.pk}/"))
    facts = re.search(r'<div class="facts">.*?</div>', page)
    assert facts
    assert re.findall(r"([A-Z]\w+)</span><b>(\d+)</b>", facts[0]) == [
        ("Running", "3"), ("Queued", "6"), ("Waiting", "22"),
    ]  # fmt: skip
    widths = re.findall(r'<rect class="info" x="0.0" width="([\d.]+)"', page)
    assert widths[0] == str(round(100 * 3 / 31, 2))


def test_all_runs_of_a_list_are_retried_without_those_that_a_person_stopped(
    browser: Client, vera: User
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    failed = [failed_run(flights, f"2013-01-0{day}").pk for day in (1, 2)]
    stopped = [
        recorded_run(flights, RunState.CANCELED, f"2013-02-0{day}", ended_at=at(2024, 1, 1)).pk
        for day in (1, 2, 3)
    ]
    page = compact(page_at(browser, "/runs/"))
    assert "Retry all 2 failed on this page" in page
    link = re.search(r'href="(/runs/retry/\?run=[^"]*)"', page)
    assert link
    assert {int(pk) for pk in re.findall(r"run=(\d+)", link[1])} == set(failed)
    assert "Retry all 3 canceled on this page" in compact(page_at(browser, "/runs/?state=canceled"))
    assert all(f'value="{pk}"' in page for pk in stopped)


def test_after_a_retry_of_several_runs_the_list_shows_these_runs(
    browser: Client, vera: User
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    group = materialize(
        MaterializeRequest(asset=flights, selection="2013-01-01..2013-01-03"), user=vera
    )
    runs = [cancel_run(run, user=vera) for run in group.runs.order_by("id")]
    named = [runs[0].pk, runs[2].pk]
    answer = browser.post(
        f"/runs/retry/?run={named[0]}&run={named[1]}", {"run": named}, follow=True
    )
    page = answer.content.decode()
    assert "Retrying 2 runs." in page
    assert set(map(int, re.findall(r'id="run-(\d+)"', page))) == set(named)


def test_open_pages_of_assets_and_partitions_learn_what_has_changed(
    browser: Client, vera: User, gateway: Gateway
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    headers = {"hx-request": "true"}
    addresses = {
        "/assets/raw_flights/": "1 queued",
        "/assets/raw_flights/?tab=runs": "2013-01-01",
        "/assets/raw_flights/partitions/2013-01-01/": "Queued",
    }
    again = {}
    for address in addresses:
        page = page_at(browser, address)
        polled = re.findall(r'hx-get="([^"]*version=[^"]*)"', page)
        again[address] = [link.replace("&amp;", "&") for link in polled]
        for link in again[address]:
            assert browser.get(link, headers=headers).status_code == 204, link
    materialize(MaterializeRequest(asset=flights, selection="2013-01-01"), user=vera)
    for address, text in addresses.items():
        answers = [browser.get(link, headers=headers) for link in again[address]]
        changed = " ".join(answer.content.decode() for answer in answers)
        assert text in compact(changed), address
        assert "<html" not in changed


def test_an_open_backfill_learns_who_did_what(browser: Client, vera: User) -> None:
    asset("raw_flights", DAILY_2013)
    january = written_backfill(vera)
    page = page_at(browser, f"/backfills/{january.pk}/")
    again = re.search(r'hx-get="(/backfills/\d+/record/\?version=[^"]*)"', page)
    assert again
    assert browser.get(again[1]).status_code == 204
    browser.post(f"/backfills/{january.pk}/pause/")
    assert "Pause" in browser.get(again[1]).content.decode()


def test_a_tick_says_what_became_of_its_runs(browser: Client, vera: User) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 1, 1))
    assert daily.producer
    schedule = daily.producer.schedule
    tick = ScheduleTick.objects.create(
        schedule=schedule, at=at(2024, 7, 2), last_at=at(2024, 7, 2), queued=3
    )
    for day in (1, 2):
        failed_run(daily, f"2024-07-0{day}", tick=tick)
    recorded_run(daily, RunState.QUEUED, "2024-07-03", tick=tick)
    page = compact(page_at(browser, "/assets/daily/?tab=schedule"))
    assert f'href="/runs/?tick={tick.pk}&amp;state=failed"' in page
    assert re.search(r"Failed</span>2</a>", page)
    assert re.search(r"Queued</span>1</a>", page)


def test_why_a_schedule_made_nothing_is_two_clicks_from_the_overview(browser: Client) -> None:
    scheduled("daily", cron("@daily"), DAILY, since=at(2024, 1, 1))
    assert 'href="/assets/"' in page_at(browser, "/")
    listed = page_at(browser, "/assets/")  # the first click
    assert 'href="/assets/daily/?tab=schedule"' in listed  # the second
