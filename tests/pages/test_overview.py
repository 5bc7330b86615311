"""The overview: tiles, the chart of runs, failures by error, and the way from there to a retry."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from accounts_app.policy import Role
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import (
    Asset,
    AssetPartition,
    AwaitedPartition,
    Gateway,
    LatePartition,
    Run,
    RunPartition,
    RunState,
    Schedule,
)
from assets_app.queries import error_groups, run_history
from backfills_app.models import Backfill
from partitions_app.models import PartitionDefinition
from slicewise import PartitionByInterval
from slicewise_server.home import views
from tests.clients import browser_of
from tests.factories import DAILY_2013, asset, person
from tests.gateways import record_attempt, record_gateway, record_gateway_of_each_queue
from tests.pages.backfill_records import hold_partitions, runs_of, written_backfill
from tests.pages.markup import compact, page_at, polled_address
from tests.pages.run_records import failed_partition, recorded_run
from tests.partition_records import record
from tests.query_plans import rows_read
from tests.scheduling.scheduled_assets import DAILY, at, cron, scheduled

pytestmark = pytest.mark.django_db


@pytest.fixture
def flights() -> Asset:
    return asset("raw_flights", DAILY_2013)


def tiles(browser: Client) -> dict[str, tuple[str, str]]:
    """Return number and address of each tile by its label."""
    page = compact(page_at(browser, "/"))
    pattern = r'<a class="card tile" href="([^"]*)">.*?</svg>([^<]+)</span><b[^>]*>([^<]+)</b>'
    return {label: (number, unescape(url)) for url, label, number in re.findall(pattern, page)}


def ended(of: Asset, state: RunState, ago: timedelta) -> Run:
    """Create a run that ended so long ago."""
    instant = timezone.now() - ago
    return recorded_run(of, state, started_at=instant, ended_at=instant)


def sections(browser: Client, query: str = "") -> str:
    """Return the overview as one line."""
    return compact(page_at(browser, f"/{query}"))


def test_every_tile_counts_what_the_list_behind_it_shows(browser: Client, flights: Asset) -> None:
    record(flights, "2013-01-01..2013-01-03", lambda place: "failed")
    paused = asset("paused_one", DAILY_2013, paused=True)
    late = scheduled("late_one", cron("@daily"), DAILY, since=at(2024, 1, 1))
    assert late.producer
    late.producer.schedule.next_at = timezone.now() - timedelta(hours=1)
    late.producer.schedule.save()
    group = materialize(
        MaterializeRequest(asset=flights, selection="2013-02-01..2013-02-02"),
        user=person("eve", is_superuser=True),
    )
    begun = group.runs.order_by("id")[0]
    for state in (RunState.DISPATCHED, RunState.RUNNING):
        Run.objects.filter(pk=begun.pk).update(state=state)
    record_attempt(record_gateway("fine"), begun)
    shown = tiles(browser)
    assert {label: number for label, (number, _) in shown.items()} == {
        "Failed": "3", "Overdue ticks": "1", "Stale": "0", "Queued": "1", "Running": "1",
        "Paused": "1", "Import errors": "0", "Workers": "1",
    }  # fmt: skip
    expected = {"Failed": flights, "Overdue ticks": late, "Paused": paused}
    for label, of in expected.items():
        listed = set(re.findall(r'id="asset-(\d+)"', page_at(browser, shown[label][1])))
        assert listed == {str(of.pk)}, label
    for label, pk in (("Queued", group.runs.order_by("id")[1].pk), ("Running", begun.pk)):
        listed = set(re.findall(r'id="run-(\d+)"', page_at(browser, shown[label][1])))
        assert listed == {str(pk)}, label
    moved = group.runs.order_by("id")[1]
    for state, number in ((RunState.DISPATCHED, "0"), (RunState.QUEUED, "1")):
        Run.objects.filter(pk=moved.pk).update(state=state)
        assert tiles(browser)["Queued"][0] == number
        assert ("runs, 1 dispatched" in sections(browser)) == (state == RunState.DISPATCHED)
    record_gateway("other", queue="backfill")
    page = sections(browser)
    assert "online; slots in use: backfill 0 of 3, scheduled 1 of 3" in page
    Gateway.objects.filter(name="fine").update(slots=1)
    assert "scheduled 1 of 1" in sections(browser)


def test_overdue_ticks_and_the_earliest_ticks_to_come_are_listed(browser: Client) -> None:
    assert "Next ticks" not in page_at(browser, "/")
    soon = timezone.now() + timedelta(minutes=5)
    for place, name in enumerate(("sixth", "b", "d", "c", "a", "e", "resting", "past")):
        scheduled(name, cron("@daily"), DAILY, since=at(2024, 1, 1))
        rows = Schedule.objects.filter(producer__name=name)
        rows.update(next_at=soon + timedelta(minutes=place % 6))
    Schedule.objects.filter(producer__name="sixth").update(next_at=soon + timedelta(hours=1))
    Schedule.objects.filter(producer__name="past").update(next_at=soon - timedelta(hours=1))
    Asset.objects.filter(name="resting").update(paused=True)
    page = compact(page_at(browser, "/"))
    listed = page[page.index("Next ticks") :]
    listed = listed[: listed.index("</section>")]
    names = re.findall(r'href="/assets/(\w+)/\?tab=schedule"', listed)
    assert names == ["past", "b", "d", "c", "a", "e"]
    assert listed.count("Overdue</span>") == 1
    assert "<code>beat</code>and<code>worker-control</code>run." in attention(browser)


def test_overdue_ticks_are_told_beside_overdue_partitions(browser: Client, flights: Asset) -> None:
    late = scheduled("late_one", cron("@daily"), DAILY, since=at(2024, 1, 1))
    removed = scheduled("removed_one", cron("@daily"), DAILY, since=at(2024, 1, 1))
    Asset.objects.filter(pk=removed.pk).update(active=False)
    for of in (late, removed):
        Schedule.objects.filter(producer=of.producer).update(
            next_at=timezone.now() - timedelta(hours=1)
        )
    assert tiles(browser)["Overdue ticks"] == ("1", "/assets/?show=late")
    page = sections(browser)
    assert "All clear" not in page
    row = page.split("Overdue tick</a>")[1].split("</li>")[0]
    assert 'of<a href="/assets/late_one/">late_one</a>' in row
    overdue = timezone.now() - timedelta(minutes=1)
    LatePartition.objects.create(
        asset=flights, identity=flights.identity, key="2013-01-01", late_at=overdue,
        overdue_at=overdue, window_start=overdue, window_end=overdue,
    )  # fmt: skip
    shown = tiles(browser)
    assert shown["Overdue"] == ("1", "/assets/?show=overdue")
    assert shown["Overdue ticks"] == ("1", "/assets/?show=late")
    assert "Overdue tick</a>" in sections(browser)


def attention(browser: Client) -> str:
    """Return the section of the overview about problems that need a person."""
    return sections(browser).split("Needs attention</h2>")[1].split("</section>")[0]


def test_waiting_runs_have_a_tile_that_leads_to_the_reasons(
    browser: Client, flights: Asset
) -> None:
    assert "Waiting" not in tiles(browser)
    record(flights, "2013-01-04", lambda place: "failed")
    failed = failed_partition(flights, "2013-01-05")
    holders = queued, running = [
        recorded_run(flights, state) for state in (RunState.QUEUED, RunState.RUNNING)
    ]
    for holder, key in zip(holders, ("2013-01-08", "2013-01-09"), strict=True):
        hold_partitions(holder, [key])
    waiting = [recorded_run(flights, RunState.WAITING, f"2013-01-{day}") for day in range(15, 20)]
    awaited: tuple[list[str], ...] = (
        ["2013-01-04"], ["2013-01-06", "2013-01-05"], [], ["2013-01-08"], ["2013-01-09"],
    )  # fmt: skip
    for run, keys in zip(waiting, awaited, strict=True):
        for key in keys:
            AwaitedPartition.objects.create(
                run=run, asset=flights, identity=flights.identity, key=key
            )
    number, address = tiles(browser)["Waiting"]
    assert (number, address) == ("5", "/runs/?state=waiting")
    rows = compact(page_at(browser, address)).split('<tr id="run-')
    told = {row.split('"')[0]: row.partition("Waits for")[2].split("</div>")[0] for row in rows}
    words = {pk: re.sub("<[^>]*>", " ", text).split() for pk, text in told.items()}
    assert words[str(waiting[0].pk)] == ["2013-01-04", ":", "failed"]
    assert words[str(waiting[1].pk)] == [
        "2013-01-05", ":", "failed,", "run", str(failed.pk), "and", "1", "more",
    ]  # fmt: skip
    assert words[str(waiting[2].pk)] == []
    assert words[str(waiting[3].pk)] == ["2013-01-08", ":", "queued,", "run", str(queued.pk)]
    assert words[str(waiting[4].pk)] == ["2013-01-09", ":", "running,", "run", str(running.pk)]
    facts = compact(page_at(browser, f"/runs/{waiting[3].pk}/")).split("<dt>Waiting for</dt>")[1]
    told_by_run = re.sub("<[^>]*>", " ", facts.split("</dd>")[0]).split()
    assert told_by_run == ["previous", "partition", *words[str(waiting[3].pk)]]
    assert f'href="/runs/{failed.pk}/"' in told[str(waiting[1].pk)]


def test_runs_that_wait_for_long_need_attention(browser: Client, flights: Asset) -> None:
    record_gateway_of_each_queue()
    long_ago = timezone.now() - timedelta(hours=2)
    queued = [recorded_run(flights, RunState.QUEUED) for _ in range(3)]
    Run.objects.filter(pk__in=[run.pk for run in queued[:2]]).update(created_at=long_ago)
    waiting = recorded_run(flights, RunState.WAITING)
    Run.objects.filter(pk=waiting.pk).update(created_at=long_ago)
    in_backfill = recorded_run(flights, RunState.QUEUED, queue="backfill")
    Run.objects.filter(pk=in_backfill.pk).update(created_at=long_ago)
    shown = attention(browser)
    links = dict(re.findall(r'href="(/runs/[^"]*)"><svg[^>]*>.*?</svg>(\d \w+)<', shown))
    assert sorted(links.values()) == ["1 waiting", "2 queued"]
    for address, words in links.items():
        listed = set(re.findall(r'id="run-(\d+)"', page_at(browser, unescape(address))))
        expected = queued[:2] if "queued" in words else [waiting]
        assert listed == {str(run.pk) for run in expected}


def test_a_stalled_backfill_needs_attention(browser: Client, flights: Asset, vera: User) -> None:
    record_gateway_of_each_queue()
    january = written_backfill(vera)
    Backfill.objects.filter(pk=january.pk).update(
        stalled_since=timezone.now(), stalled_error="password=hush: no answer"
    )
    shown = attention(browser)
    assert f'href="/backfills/{january.pk}/"' in shown
    assert "Stalled backfill" in shown
    assert "no answer" in shown
    assert "hush" not in shown
    Backfill.objects.filter(pk=january.pk).update(stalled_since=None)
    assert "All clear" in attention(browser)


def test_a_failing_schedule_needs_attention(browser: Client) -> None:
    record_gateway_of_each_queue()
    late = scheduled("late_one", cron("@daily"), DAILY, since=at(2024, 1, 1))
    Schedule.objects.filter(producer=late.producer).update(
        next_at=timezone.now() - timedelta(hours=1),
        failing_since=timezone.now() - timedelta(minutes=50),
        error="No such zone",
    )
    shown = attention(browser)
    assert shown.count("<li") == 1
    assert 'href="/assets/late_one/?tab=schedule"' in shown
    assert "Failing schedule" in shown
    assert "No such zone" in shown
    assert tiles(browser)["Overdue ticks"] == ("1", "/assets/?show=late")
    assert "late_one" in page_at(browser, "/assets/?show=failing")
    # A schedule that is paused, or that the code no longer declares, is not tried again.
    next_at, rule = Schedule.objects.values_list("next_at", "rule").get()
    Schedule.objects.update(next_at=None)
    Asset.objects.update(paused=True)
    assert "Failing schedule" not in attention(browser)
    Asset.objects.update(paused=False)
    assert "Failing schedule" in attention(browser)
    Schedule.objects.update(rule=None)
    assert "Failing schedule" not in attention(browser)
    assert "late_one" not in page_at(browser, "/assets/?show=failing")
    Schedule.objects.update(next_at=next_at, rule=rule)
    Schedule.objects.filter(producer=late.producer).update(failing_since=None, error="")
    assert "Overdue tick</a>" in attention(browser)
    assert "late_one" not in page_at(browser, "/assets/?show=failing")


def test_further_groups_of_failures_lead_to_the_failed_runs(
    browser: Client, flights: Asset
) -> None:
    for day, word in enumerate("abcdefghijkl", 1):
        failed_partition(flights, f"2013-01-{day:02}", error=f"no {word * 3}")
    old = failed_partition(flights, "2013-02-01", ago=timedelta(days=3))
    link = re.search(r'<a href="([^"]*)">2 more groups of failures</a>', sections(browser))
    assert link
    listed = page_at(browser, unescape(link[1]))
    assert listed.count('<tr id="run-') == 12
    assert f'id="run-{old.pk}"' not in listed


def test_a_queue_without_an_online_worker_needs_attention(browser: Client) -> None:
    no_worker = '<a class="state state-warn" href="/gateways/">'
    shown = attention(browser)
    assert shown.count(no_worker) == 2
    assert "No worker</a>on queue scheduled. Runs stay queued." in shown
    assert "No worker</a>on queue backfill. Runs stay queued." in shown
    assert "All clear" not in shown
    record_gateway("fine", silent_seconds=-60)
    record_gateway("ending", queue="backfill", silent_seconds=-60, draining=True)
    shown = attention(browser)
    assert shown.count(no_worker) == 1
    assert "on queue backfill." in shown
    record_gateway("other", queue="backfill", silent_seconds=-60)
    assert "All clear" in attention(browser)


def test_a_worker_that_went_offline_needs_attention_for_a_day(browser: Client) -> None:
    record_gateway_of_each_queue()
    record_gateway("gone", silent_seconds=3600)
    shown = attention(browser)
    assert shown.count("<li") == 1
    assert "Worker offline</a>" in shown
    assert 'href="/gateways/"' in shown
    assert '<span class="key text-break">gone</span>' in shown
    assert "All clear" not in shown
    # A container has another name after each start: its row stays offline for good.
    Gateway.objects.filter(name="gone").update(last_seen=timezone.now() - timedelta(hours=25))
    assert "All clear" in attention(browser)
    Gateway.objects.filter(name="gone").update(last_seen=timezone.now() - timedelta(hours=1))
    for number in range(10):
        record_gateway(f"gone-{number}", silent_seconds=60)
    shown = attention(browser)
    assert shown.count("Worker offline</a>") == 10
    assert "1 more offline worker<" in shown
    Gateway.objects.filter(name="gone").update(draining=True)
    assert "more offline worker" not in attention(browser)


def test_the_chart_has_the_runs_of_the_last_day_by_state_with_links_to_them(
    browser: Client, flights: Asset
) -> None:
    recent = [ended(flights, RunState.SUCCEEDED, timedelta(minutes=1)) for _ in range(3)]
    failed = ended(flights, RunState.FAILED, timedelta(hours=5))
    old = ended(flights, RunState.CANCELED, timedelta(days=3))
    page = sections(browser)
    assert "Succeeded</span><b>3</b>" in page
    assert "Failed</span><b>1</b>" in page
    assert "Canceled</span><b>" not in page
    links = re.findall(r'<li><a href="(/runs/\?ended_after=[^"]*)"', page)
    listed = [re.findall(r'id="run-(\d+)"', page_at(browser, unescape(link))) for link in links]
    assert sorted(int(pk) for pks in listed for pk in pks) == sorted(
        run.pk for run in [*recent, failed]
    )
    week = sections(browser, "?span=7d")
    assert "Canceled</span><b>1</b>" in week
    link = re.search(r'href="([^"]*state=canceled[^"]*)"', week)
    assert link
    assert f'id="run-{old.pk}"' in page_at(browser, unescape(link[1]))


def test_the_chart_reads_the_latest_runs_alone_and_says_so(
    browser: Client, flights: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At one instant: two columns could share runs that ended one after the other.
    instant = timezone.now() - timedelta(minutes=1)
    for _ in range(4):
        recorded_run(flights, RunState.SUCCEEDED, started_at=instant, ended_at=instant)
    monkeypatch.setattr(run_history, "MOST_RUNS", 3)
    page = sections(browser)
    assert "Succeeded</span><b>3</b>" in page
    assert "Highest bar: 3 runs." in page


def test_failures_are_grouped_by_asset_and_error_with_a_retry_in_the_row(
    browser: Client, flights: Asset
) -> None:
    other = asset("other", DAILY_2013)
    for day in (1, 2, 3):
        failed_partition(flights, f"2013-01-0{day}", error=f"ValueError: line {day} is cut")
    failed_partition(flights, "2013-02-01", error="KeyError: 'dest'")
    failed_partition(other, "2013-01-01", error="ValueError: line 1 is cut")
    failed_partition(other, "2013-01-02", error="long ago", ago=timedelta(days=2))
    page = sections(browser)
    assert page.count('class="list-group-item failure"') == 3
    assert '3 failed runs</span>of<a href="/assets/raw_flights/">' in page
    assert "Retry all 5 failed runs…" in page
    assert "long ago" not in page
    assert "long ago" in sections(browser, "?span=7d")


def test_failed_partitions_of_one_error_are_run_again_in_two_clicks(
    browser: Client, flights: Asset
) -> None:
    runs = [failed_partition(flights, f"2013-01-0{day}", error=f"line {day}") for day in (1, 2, 3)]
    text = sections(browser)
    first, last = (f'<span class="key" dir="auto">2013-01-0{day}</span>' for day in (1, 3))
    assert f"{first}\u2013{last}" in text
    assert "Latest: line 3" in text
    other = failed_partition(flights, "2013-02-01", error="KeyError: 'dest'")
    link = re.search(r'<a class="btn btn-sm" href="([^"]*like=[^"]*)"', sections(browser))
    assert link
    question = page_at(browser, unescape(link[1]))  # the first click
    assert "Retry 3 runs?" in question
    named = re.findall(r'type="hidden" name="run" value="(\d+)"', question)
    answer = browser.post(unescape(link[1]), {"run": named}, follow=True)  # the second click
    assert "Retrying 3 runs." in answer.content.decode()
    states = dict(Run.objects.values_list("pk", "state"))
    assert [states[run.pk] for run in runs] == ["queued"] * 3
    assert states[other.pk] == "failed"


def test_all_failures_are_run_again_in_two_clicks_and_leave_the_overview(
    browser: Client, flights: Asset
) -> None:
    for day in (1, 2, 3):
        failed_partition(flights, f"2013-01-0{day}", error=f"error of {'abc'[day - 1]}")
    link = re.search(r'id="retry-all" href="([^"]*)"', sections(browser))
    assert link
    question = page_at(browser, unescape(link[1]))
    named = re.findall(r'type="hidden" name="run" value="(\d+)"', question)
    assert len(named) == 3
    browser.post(unescape(link[1]), {"run": named})
    assert "No unresolved failures." in sections(browser)


def test_a_failure_is_gone_once_its_partition_is_made_or_is_no_more(
    browser: Client, flights: Asset
) -> None:
    failed_partition(flights, "2013-01-01", error="made since")
    failed_partition(flights, "2013-01-02", error="held now")
    failed_partition(flights, "2013-12-31", error="no more defined")
    failed_partition(flights, "2013-03-01", error="still there")
    AssetPartition.objects.filter(key="2013-01-01").update(state="materialized", version=1)
    AssetPartition.objects.filter(key="2013-01-02").update(
        held_by=recorded_run(flights, RunState.QUEUED, "2013-01-02")
    )
    shorter = PartitionByInterval("@daily", start="2013-01-01", end="2013-06-01")
    flights.partition_definition = PartitionDefinition.of(shorter.to_json())
    flights.save()
    page = sections(browser)
    assert page.count('class="list-group-item failure"') == 1
    assert "still there" in page


def failed_days(of: Asset, days: range, error: str) -> Run:
    """Record one run of several days of January that failed, and whose partitions stayed failed."""
    run = failed_partition(of, f"2013-01-{days[0]:02}", error=error)
    for day in days[1:]:
        further = failed_partition(of, f"2013-01-{day:02}", error=error)
        AssetPartition.objects.filter(last_run=further).update(last_run=run)
        RunPartition.objects.filter(run=further).update(run=run, position=day)
        further.delete()
    Run.objects.filter(pk=run.pk).update(partition_count=len(days))
    return run


def failure_row(browser: Client) -> str:
    """Return the words of the only row of the failures."""
    rows = sections(browser).split('class="list-group-item failure"')[1:]
    assert len(rows) == 1
    row = rows[0].split("</section>")[0]
    return " ".join(re.sub("<[^>]*>", " ", row.partition(">")[2]).split())


def test_a_group_of_failures_counts_the_failed_partitions_from_the_first_to_the_last(
    browser: Client, flights: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = failed_days(flights, range(2, 30), "line 1 is cut")
    second = failed_days(flights, range(30, 32), "line 2 is cut")
    AssetPartition.objects.filter(key__in=["2013-01-02", "2013-01-10"]).update(
        state="materialized", version=1
    )
    row = failure_row(browser)
    assert "28 failed partitions within 2013-01-03 \u2013 2013-01-31" in row
    monkeypatch.setattr(error_groups, "_MOST_PARTITIONS", 2)
    assert first.pk < second.pk
    assert "at least 22 failed partitions" in failure_row(browser)


@pytest.mark.parametrize("is_held", [False, True], ids=["materialized", "retried"])
def test_partitions_of_a_failed_run_that_other_runs_took_over_are_not_read(
    flights: Asset, is_held: bool
) -> None:
    failed_days(flights, range(1, 31), "no rows")
    other = recorded_run(flights, RunState.RUNNING)
    others = AssetPartition.objects.exclude(key="2013-01-30")
    if is_held:
        others.update(held_by=other)
    else:
        others.update(last_run=other, state="materialized", version=1)
    with CaptureQueriesContext(connection) as statements:
        (group,) = error_groups.unresolved_failures(timezone.now() - timedelta(hours=1))
    assert group.partition_count == 1
    assert rows_read(statements[0]["sql"]) < 15


def test_an_unpartitioned_asset_that_fails_again_and_again_stays_listed(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = asset("rates", None)
    long_ago = timezone.now() - timedelta(minutes=30)
    failed_partition(rates, "", error="no answer", ago=timedelta(hours=1))
    AssetPartition.objects.update(materialized_at=long_ago, version=1)
    begun = [
        failed_partition(rates, "", error="no answer", ago=timedelta(minutes=minutes))
        for minutes in (6, 5, 4)
    ]
    row = failure_row(browser)
    assert row.startswith("3 failed runs of rates in a row, since ")
    assert f"since {begun[0].ended_at:%Y-%m-%d %H:%M:%S}" in row
    assert "Unresolved failures, last 24 hours" in sections(browser)
    assert "like=" in sections(browser)
    with monkeypatch.context() as patch:
        patch.setattr(error_groups, "_MOST_OF_STREAK", 2)
        row = failure_row(browser)
        assert row.startswith("at least 2 failed runs of rates in a row, since before ")
        assert f"since before {begun[1].ended_at:%Y-%m-%d %H:%M:%S}" in row
    AssetPartition.objects.update(held_by=recorded_run(rates, RunState.RUNNING, ""))
    row = failure_row(browser)
    assert "The next run is in progress." in row
    assert "like=" not in sections(browser)
    AssetPartition.objects.update(
        held_by=None, state="materialized", materialized_at=timezone.now()
    )
    assert "No unresolved failures." in sections(browser)


def test_a_large_run_leaves_the_partitions_of_other_runs_exact(
    browser: Client, flights: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_groups, "_MOST_PARTITIONS", 3)
    failed_partition(flights, "2013-02-01", error="KeyError: 'dest'")
    failed_days(flights, range(1, 9), "no rows")
    page = sections(browser)
    assert "at least 3 failed partitions" in page
    assert page.count("at least") == 1
    assert '<span class="key" dir="auto">2013-02-01</span>' in page


def test_failed_runs_in_a_row_are_at_least_as_many_where_earlier_runs_are_not_read(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = asset("rates", None)
    failed_partition(rates, "", error="no answer", ago=timedelta(hours=1))
    AssetPartition.objects.update(materialized_at=timezone.now() - timedelta(minutes=30), version=1)
    failed_partition(rates, "", error="no answer", ago=timedelta(minutes=6))
    ended(rates, RunState.CANCELED, timedelta(minutes=5))
    failed_partition(rates, "", error="no answer", ago=timedelta(minutes=4))
    Run.objects.update(created_at=F("ended_at"))
    monkeypatch.setattr(error_groups, "_MOST_OF_STREAK", 3)
    assert failure_row(browser).startswith("at least 2 failed runs of rates in a row, since before")
    # The first of the runs is older than the last success.
    monkeypatch.setattr(error_groups, "_MOST_OF_STREAK", 4)
    assert failure_row(browser).startswith("2 failed runs of rates in a row, since 20")


def test_failed_runs_in_a_row_are_read_for_the_shown_groups_alone(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second", "third"):
        unpartitioned = asset(name, None)
        for minutes in range(20, 0, -1):
            failed_partition(unpartitioned, "", ago=timedelta(minutes=minutes))
    monkeypatch.setattr(views, "_MOST_GROUPS", 1)
    with CaptureQueriesContext(connection) as captured:
        page = sections(browser)
    assert "20 failed runs of" in " ".join(re.sub("<[^>]*>", " ", page).split())
    assert "2 more groups of failures" in page
    (streaks,) = [query["sql"] for query in captured if "AS asset(id)" in query["sql"]]
    assert rows_read(streaks) <= 21
    link = re.search(r'id="retry-all" href="([^"]*)"', page)
    assert link
    with CaptureQueriesContext(connection) as captured:
        page_at(browser, unescape(link[1]))
    assert not [query["sql"] for query in captured if "AS asset(id)" in query["sql"]]


def test_a_group_says_when_the_first_run_failed_if_that_is_a_minute_earlier(
    browser: Client, flights: Asset
) -> None:
    failed_partition(flights, "2013-01-03", ago=timedelta(minutes=7))
    failed_partition(flights, "2013-01-02", ago=timedelta(minutes=7, seconds=40))
    row = failure_row(browser)
    assert row.startswith("2 failed runs of raw_flights 20")
    assert row.count(" UTC") == 1
    failed_partition(flights, "2013-01-01", ago=timedelta(minutes=9))
    assert failure_row(browser).count(" UTC") == 2


def test_who_may_not_make_partitions_is_offered_no_retry(flights: Asset) -> None:
    failed_partition(flights, "2013-01-01")
    failed_partition(flights, "2013-01-02")
    viewer = browser_of(person("ulf", Role.VIEWER))
    page = sections(viewer)
    assert "Open run" in page
    assert "/runs/retry/" not in page


@pytest.mark.parametrize(
    "query", ["?failed_since=x", "?failed_since=2013-01-01&like=x", "?failed_since=", "?like=7"]
)
def test_a_nonsense_address_retries_nothing(browser: Client, query: str) -> None:
    answer = browser.get(f"/runs/retry/{query}", follow=True)
    assert "No run selected" in answer.content.decode()


def test_backfills_in_progress_tell_their_states_apart(browser: Client, vera: User) -> None:
    asset("raw_flights", DAILY_2013)
    january = written_backfill(vera)
    runs_of(january, "succeeded", 2)
    runs_of(january, "failed", 1)
    runs_of(january, "running", 3)
    runs_of(january, "queued", 1)
    words = " ".join(re.sub("<[^>]*>", "", page_at(browser, "/")).split())
    assert "2 of 31 materialized, 1 failed, 3 running, 1 queued, 24 waiting" in words


def test_the_overview_costs_the_same_for_few_assets_and_for_many(
    browser: Client, flights: Asset
) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            page_at(browser, "/")
        return len(captured)

    failed_partition(flights, "2013-01-01", error="no rows")
    few = statements()
    for number in range(12):
        failed_partition(asset(f"a{number}", DAILY_2013), "2013-01-01", error=f"of {number}")
    assert statements() == few
    assert few <= 25


def test_failed_and_overdue_partitions_are_counted_once_for_tiles_and_list(
    browser: Client, flights: Asset
) -> None:
    record(flights, "2013-01-01", lambda _: "failed")
    with CaptureQueriesContext(connection) as captured:
        page = sections(browser)
    assert "1 failed" in page
    assert 'href="/assets/raw_flights/?select=failed"' in page
    texts = [query["sql"] for query in captured]
    for counted in (
        "assets_app_latepartition AS late",
        "FROM bound JOIN assets_app_partitioncount",
    ):
        assert sum(counted in text for text in texts) == 1, counted


def test_assets_beyond_the_first_with_failed_or_overdue_partitions_are_counted(
    monkeypatch: pytest.MonkeyPatch, browser: Client, flights: Asset
) -> None:
    monkeypatch.setattr(views, "_MOST_ASSETS", 1)
    now = timezone.now()
    for of in (flights, asset("weather", DAILY_2013), asset("planes", DAILY_2013)):
        record(of, "2013-01-01", lambda _: "failed")
        LatePartition.objects.create(
            asset=of, identity=of.identity, key="2013-01-02", window_start=now, window_end=now,
            late_at=now, overdue_at=now,
        )  # fmt: skip
    page = compact(page_at(browser, "/"))
    for state in ("failed", "overdue"):
        text = f"2 more assets with {state} partitions"
        assert f'<a href="/assets/?show={state}">{text}</a>' in page


@pytest.mark.usefixtures("same_hour")
def test_the_overview_answers_nothing_until_something_has_changed(
    browser: Client, flights: Asset
) -> None:
    worker = record_gateway("fine")
    again = polled_address(page_at(browser, "/?span=7d"))
    assert "span=7d" in again
    assert browser.get(again).status_code == 204
    worker.slots = 7
    worker.save()
    answer = browser.get(again)
    assert "of 7 slots in use" in compact(answer.content.decode())
    failed_partition(flights, "2013-01-01")
    assert browser.get(polled_address(answer.content.decode())).status_code == 200
