"""The list of runs: filters, groups, and the durations of an asset's runs."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from assets_app.models import Asset, Run, RunGroup, RunState, ScheduleTick
from assets_app.views import run_filters
from tests.factories import DAILY_2013, asset, person
from tests.pages.markup import compact, page_at, polled_address
from tests.pages.run_records import failed_partition, failed_run, recorded_run
from tests.scheduling.scheduled_assets import DAILY, at, cron, scheduled

pytestmark = pytest.mark.django_db


@pytest.fixture
def flights() -> Asset:
    return asset("raw_flights", DAILY_2013)


def listed(browser: Client, query: str) -> list[int]:
    """Return the runs of the list, oldest first."""
    return sorted(map(int, re.findall(r'id="run-(\d+)"', page_at(browser, f"/runs/?{query}"))))


def test_runs_are_found_by_id_person_error_and_partition(browser: Client, flights: Asset) -> None:
    other = asset("other", DAILY_2013)
    first = failed_partition(flights, "2013-01-01", error="KeyError: 'dest'")
    second = failed_run(flights, error="no rows", requested_by=person("ada"))
    third = failed_partition(other, "2013-01-01", error="Key missing")
    for query, runs in {
        f"id={first.pk},{third.pk}": [first, third],
        f"id={first.pk} {second.pk}": [first, second],
        "id=x": [],
        "person=AD": [second],
        "error=key": [first, third],
        "partition=2013-01-01": [first, third],
        "partition=2013-01-01&asset=raw": [first],
        "partition=2013-01-02": [],
        "partition=%00": [],
        "error=key&asset=other": [third],
    }.items():
        if "%00" in query:
            assert browser.get(f"/runs/?{query}").status_code == 400
        else:
            assert listed(browser, query) == [run.pk for run in runs], query


def test_the_page_of_a_partition_lists_its_newest_run_first(
    browser: Client, flights: Asset
) -> None:
    runs = [failed_partition(flights, "2013-01-01", error="no").pk for _ in range(2)]
    text = page_at(browser, "/assets/raw_flights/partitions/2013-01-01/")
    listed_runs = text[text.index('<h2 class="card-title">Runs</h2>') :]
    assert re.findall(r'href="/runs/(\d+)/"', listed_runs) == [str(runs[1]), str(runs[0])]


def test_runs_are_found_by_time(browser: Client, flights: Asset) -> None:
    now = timezone.now()
    runs = {hours: failed_run(flights, ended_at=now - timedelta(hours=hours)) for hours in (2, 30)}
    for hours, run in runs.items():
        Run.objects.filter(pk=run.pk).update(created_at=now - timedelta(hours=hours))
    recent, old = runs[2].pk, runs[30].pk
    noon = f"{now - timedelta(hours=12):%Y-%m-%d %H:%M}"
    for query, expected in {
        "since=1h": [],
        "since=24h": [recent],
        "since=7d": [recent, old],
        "since=nonsense": [recent, old],
        f"created_after={noon}": [recent],
        f"created_after={noon}&since=7d": [recent],
        f"created_before={noon}": [old],
        f"ended_after={noon}": [recent],
        f"ended_before={noon}": [old],
        "ended_before=nonsense": [recent, old],
    }.items():
        assert listed(browser, query) == sorted(expected), query


def test_runs_are_sorted_by_start_duration_and_state(
    browser: Client, flights: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()

    def run(state: RunState, started: int | None, minutes: int | None) -> int:
        begun = None if started is None else now - timedelta(hours=started)
        ended = None if begun is None or minutes is None else begun + timedelta(minutes=minutes)
        return recorded_run(flights, state, started_at=begun, ended_at=ended).pk

    short = run(RunState.SUCCEEDED, 1, 1)
    long = run(RunState.FAILED, 3, 90)
    endless = run(RunState.RUNNING, 2, None)
    queued = run(RunState.QUEUED, None, None)

    def in_order(query: str) -> list[int]:
        rows = re.findall(r'id="run-(\d+)"', page_at(browser, f"/runs/?{query}"))
        return [int(pk) for pk in rows]

    assert in_order("sort=oldest") == [short, long, endless, queued]
    assert in_order("sort=started") == [short, endless, long, queued]
    assert in_order("sort=longest") == [endless, long, short, queued]
    assert in_order("sort=state") == [long, queued, endless, short]
    assert in_order("sort=unknown") == [queued, endless, long, short]
    assert in_order("sort=longest&state=failed") == [long]
    page = page_at(browser, "/runs/?sort=longest")
    assert "Of the newest 1,000 runs that match" in compact(page)
    assert "sort=longest" in polled_address(page)
    grouped = compact(page_at(browser, "/runs/?sort=longest&by=request"))
    assert "Of the newest 1,000 runs that match" not in grouped
    monkeypatch.setattr(run_filters, "MOST_SORTED", 2)
    assert in_order("sort=longest") == [endless, queued]


def test_a_filter_in_use_is_shown_and_kept_by_the_poll(browser: Client, flights: Asset) -> None:
    failed_run(flights, error="no rows")
    page = compact(page_at(browser, "/runs/?error=rows&since=24h&person=vera"))
    assert '<details class="more-filters" open>' in page
    assert 'name="error" value="rows"' in page
    assert "/runs/listed/?since=24h&amp;person=vera&amp;error=rows&amp;version=" in page
    assert '<details class="more-filters">' in page_at(browser, "/runs/?error=rows")
    assert '<details class="more-filters">' in page_at(browser, "/runs/")


def test_runs_are_grouped_by_request_and_by_tick(browser: Client, flights: Asset) -> None:
    request = RunGroup.objects.create(kind="request", label="January again")
    runs = [failed_run(flights, group=request) for _ in range(2)]
    recorded_run(flights, RunState.QUEUED, group=request)
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 1, 1))
    assert daily.producer
    schedule = daily.producer.schedule
    for day in (2, 3):
        tick = ScheduleTick.objects.create(
            schedule=schedule, at=at(2024, 7, day), last_at=at(2024, 7, day), queued=1
        )
        failed_run(daily, group=schedule.group, tick=tick)
    page = compact(page_at(browser, "/runs/?by=request"))
    assert page.count("Schedule tick") == 2
    assert len(re.findall(r'">daily, ?<time datetime="2024-07-0\d', page)) == 2
    assert '<p class="card-body' not in page
    row = page[page.index("January again") :]
    assert re.search(r"Queued</span>1</a>.*?Failed</span>2</a>", row)
    link = re.search(r'href="/runs/\?(group=\d+&amp;state=failed)"', row)
    assert link
    assert listed(browser, link[1].replace("&amp;", "&")) == [run.pk for run in runs]
    assert "No matching runs" in page_at(browser, "/runs/?by=request&asset=nothing")


def test_the_assets_of_a_request_are_counted_over_all_states(
    browser: Client, flights: Asset
) -> None:
    request = RunGroup.objects.create(kind="request", label="January again")
    for run_asset in (flights, asset("orders"), asset("weather")):
        failed_run(run_asset, group=request)
    for run_asset in (flights, asset("zoo"), asset("zebra")):
        recorded_run(run_asset, RunState.QUEUED, group=request)
    page = compact(page_at(browser, "/runs/?by=request"))
    assert "and 4 more" in page


def test_a_list_that_leaves_groups_out_gives_their_number(browser: Client, flights: Asset) -> None:
    for number in range(100):
        failed_run(flights, group=RunGroup.objects.create(kind="request", label=f"no {number}"))
    assert "Filters show the others" not in page_at(browser, "/runs/?by=request")
    failed_run(flights, group=RunGroup.objects.create(kind="request", label="one more"))
    page = compact(page_at(browser, "/runs/?by=request"))
    assert "The latest 100 of 101 groups. Filters show the others." in page
    assert ">one more<" in page
    assert ">no 0<" not in page


def test_without_runs_an_unfiltered_list_of_requests_says_how_to_begin(browser: Client) -> None:
    page = page_at(browser, "/runs/?by=request")
    assert "No runs yet" in page
    assert "No matching runs" not in page


def test_groups_cost_the_same_for_few_runs_and_for_many(browser: Client, flights: Asset) -> None:
    counts = []
    for number in (1, 30):
        for _ in range(number):
            failed_run(flights)
        with CaptureQueriesContext(connection) as statements:
            page_at(browser, "/runs/?by=request")
        counts.append(len(statements))
    assert counts[0] == counts[1]


def test_an_asset_shows_how_long_its_runs_took(browser: Client, flights: Asset) -> None:
    now = timezone.now()
    for seconds in (10, 20, 90):
        begun = now - timedelta(seconds=seconds)
        recorded_run(flights, RunState.SUCCEEDED, started_at=begun, ended_at=now)
    page = compact(page_at(browser, "/assets/raw_flights/?tab=runs"))
    sentence = "Latest 3 ended runs, oldest first. Median 20 s, longest 1 min 30 s."
    assert sentence in " ".join(page.split())
    # On a phone the number that begins a card has a label.
    assert page.count('<td data-label="Run"><a href="/runs/') == 3
    heights = re.findall(r'<rect class="good" y="[\d.]+" width="10" height="([\d.]+)"', page)
    assert heights == ["4.44", "8.89", "40.0"]
    asset("idle", DAILY_2013)
    assert "Durations" not in page_at(browser, "/assets/idle/?tab=runs")
