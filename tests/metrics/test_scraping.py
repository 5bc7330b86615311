"""One scrape: kept for a few seconds, bounded in series and in cost, and whole if a part fails."""

import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest
from django.db import Error, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily, Metric

from accounts_app.models import User
from assets_app.execution.attempt.leases import begin_lease
from assets_app.execution.queue.dispatch import dispatch
from assets_app.models import Gateway, Lease, Outbox, QueueHead, Run, RunAttempt, RunGroup, Schedule
from backfills_app.models import Backfill, BackfillAsset, BackfillState
from slicewise_server.alerts.models import Channel, Delivery
from slicewise_server.events.models import Event
from slicewise_server.metrics import gateways as gateway_metrics
from slicewise_server.metrics import request_counting
from slicewise_server.metrics.collectors import COLLECTORS
from slicewise_server.metrics.models import RunCount, TimeCount
from slicewise_server.metrics.request_counting import RequestCounts
from slicewise_server.metrics.scraping import KEPT_SECONDS, Scraper, collected
from tests.backfills.driven_backfills import ask
from tests.factories import DAILY_2013, asset
from tests.gateways import record_attempt, record_gateway
from tests.metrics.scraped_samples import Scraped
from tests.queued_runs import queue_runs, run_of

Scrape = Callable[[], Scraped]


def one_sample() -> Iterable[Metric]:
    yield GaugeMetricFamily("sample", "A sample.", value=1)


def test_scrapes_in_a_few_seconds_share_one_look(db: None) -> None:
    looks, now = [], [100.0]

    def look() -> Iterable[Metric]:
        looks.append(1)
        return one_sample()

    scraper = Scraper({"look": look}, clock=lambda: now[0])
    for seconds in (0.0, KEPT_SECONDS - 0.1, 0.1, KEPT_SECONDS):
        now[0] += seconds
        scraper.expose("")
    assert len(looks) == 3


def test_scrapes_at_once_share_one_look(transactional_db: None) -> None:
    looks: list[int] = []
    may_end = threading.Event()

    def look() -> Iterable[Metric]:
        looks.append(1)
        may_end.wait(120)
        return one_sample()

    # No time passes: the last thread may come long after the first on a busy machine.
    scraper = Scraper({"look": look}, clock=lambda: 100.0)

    def scrape() -> None:
        scraper.collect()
        connection.close()

    threads = [threading.Thread(target=scrape) for _ in range(5)]
    for thread in threads:
        thread.start()
    may_end.set()
    for thread in threads:
        thread.join()
    assert looks == [1]


def test_a_collector_that_fails_keeps_no_other_away(db: None) -> None:
    def fail() -> Iterable[Metric]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT no_such_column")
        return []

    metrics = Scraped(collected({"faulty": fail, "sound": one_sample}))
    assert metrics("sample") == 1
    assert metrics("slicewise_collector_success", collector="faulty") == 0
    assert metrics("slicewise_collector_success", collector="sound") == 1


def test_a_statement_that_takes_long_is_ended(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slicewise_server.metrics.scraping._STATEMENT_MILLISECONDS", 50)

    def sleep() -> Iterable[Metric]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(600)")
        return []

    metrics = Scraped(collected({"slow": sleep}))
    assert metrics("slicewise_collector_success", collector="slow") == 0
    duration = metrics("slicewise_collector_duration_seconds", collector="slow")
    assert duration is not None
    assert duration < 300


def test_all_collectors_succeed_on_an_empty_database(scrape: Scrape) -> None:
    metrics = scrape()
    assert {
        name: metrics("slicewise_collector_success", collector=name) for name in COLLECTORS
    } == (dict.fromkeys(COLLECTORS, 1.0))


def test_groups_beyond_the_number_are_other(scrape: Scrape, settings: Any) -> None:
    settings.METRICS_GROUPS = 3
    for number in range(6):
        queue_runs(asset(f"asset{number}", DAILY_2013, group=f"group{number}"), 1)
    queue_runs(asset("alone", DAILY_2013), 2)
    metrics = scrape()
    groups = {labels["group"]: labels for labels in metrics.series_of("slicewise_runs")}
    assert groups.keys() == {"group0", "group1", "group2", "other", "none"}
    assert metrics("slicewise_runs", **groups["other"]) == 3
    assert metrics("slicewise_runs", **groups["none"]) == 2


def test_the_series_do_not_grow_with_assets_backfills_or_gateways(
    scrape: Scrape, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_metrics, "MOST_GATEWAYS", 5)
    for number in range(9):
        record_gateway(f"host{number}")
    for number in range(120):
        of = asset(f"asset{number}", DAILY_2013, group=f"group {number}")
        for state in ("queued", "succeeded", "failed"):
            RunCount.objects.create(
                asset_id=of.pk, queue="scheduled", state=state, runs=1, entered=1
            )
    metrics = scrape()
    assert len(metrics.series_of("slicewise_runs")) == 3 * 51
    assert len(metrics.series_of("slicewise_gateway_slots")) == 6
    assert metrics("slicewise_gateway_slots", gateway="other", queue="scheduled") == 4 * 3
    assert len(metrics.samples) < 1_000


def test_the_number_of_statements_is_fixed_and_none_reads_all_runs(scrape: Scrape) -> None:
    def statements() -> list[str]:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            collected(COLLECTORS)
        return [query["sql"] for query in queries]

    few = len(statements())
    for number in range(30):
        queue_runs(asset(f"asset{number}", DAILY_2013, group=f"group{number}"), 2)
    record_gateway("host")
    scrape()
    many = statements()
    assert len(many) == few
    of_runs = [text for text in many if '"assets_app_run"' in text or "assets_app_run " in text]
    assert len(of_runs) == 1
    assert "run.id = head.run_id" in of_runs[0]


def test_the_oldest_queued_run_and_paused_groups(
    alice: User, gateway: Gateway, scrape: Scrape
) -> None:
    flights = asset("flights", DAILY_2013)
    Gateway.objects.update(slots=1)
    runs = [run_of(flights, f"2013-01-0{day}", alice) for day in range(1, 6)]
    dispatch()
    queued = Run.objects.filter(state="queued").order_by("id")
    assert QueueHead.objects.filter(run__in=queued).exists()
    queued.update(queued_at=timezone.now() - timedelta(minutes=7))
    name = "slicewise_oldest_queued_run_age_seconds"
    assert scrape()(name, queue="scheduled") == pytest.approx(420, abs=60)
    assert scrape()(name, queue="backfill") == 0
    RunGroup.objects.filter(pk__in=[run.group_id for run in runs]).update(paused=True)
    dispatch()
    assert scrape()(name, queue="scheduled") == 0


def test_the_lag_of_ticks_and_failing_schedules(scrape: Scrape) -> None:
    assert scrape()("slicewise_tick_lag_seconds") == 0
    flights = asset("flights", DAILY_2013)
    assert flights.producer
    schedule = Schedule.objects.create(
        producer=flights.producer, by_time=True, group=RunGroup.objects.create(kind="schedule"),
        handled_until=timezone.now(), next_at=timezone.now() - timedelta(seconds=90),
    )  # fmt: skip
    assert scrape()("slicewise_tick_lag_seconds") == pytest.approx(90, abs=30)
    assert scrape()("slicewise_failing_schedules") == 0
    Schedule.objects.filter(pk=schedule.pk).update(failures=2, next_at=None)
    assert scrape()("slicewise_tick_lag_seconds") == 0
    assert scrape()("slicewise_failing_schedules") == 1


def test_the_depth_and_age_of_each_outbox(scrape: Scrape) -> None:
    empty = scrape()
    for outbox in ("assets", "events", "alerts"):
        assert empty("slicewise_outbox_entries", outbox=outbox) == 0
        assert empty("slicewise_outbox_oldest_entry_age_seconds", outbox=outbox) == 0
    long_ago = timezone.now() - timedelta(minutes=5)
    [run] = queue_runs(asset("flights", DAILY_2013), 1).runs.all()
    Outbox.objects.create(run=run)
    Outbox.objects.update(created_at=long_ago)
    Event.objects.create(kind="run_failed", at=long_ago)
    Event.objects.create(kind="run_failed", at=long_ago, position=7)
    channel = Channel.objects.create(name="oncall", kind="webhook")
    for state in ("waiting", "delivered"):
        Delivery.objects.create(
            channel=channel, state=state, body={}, send_at=long_ago, give_up_at=timezone.now()
        )
    metrics = scrape()
    for outbox in ("assets", "events", "alerts"):
        assert metrics("slicewise_outbox_entries", outbox=outbox) == 1
        age = metrics("slicewise_outbox_oldest_entry_age_seconds", outbox=outbox)
        assert age == pytest.approx(300, abs=60)


def test_slots_gateways_and_leases(scrape: Scrape) -> None:
    here = record_gateway("here")
    record_gateway("lost", silent_seconds=60)
    record_gateway("gone", silent_seconds=7200)
    for run in queue_runs(asset("flights", DAILY_2013), 2).runs.all():
        record_attempt(here, run)
    live, expired = RunAttempt.objects.all()
    begin_lease(live)
    Lease.objects.create(attempt=expired, until=timezone.now() - timedelta(seconds=5))
    metrics = scrape()
    assert metrics("slicewise_gateway_slots", gateway="here", queue="scheduled") == 3
    assert metrics("slicewise_gateway_slots_used", gateway="here", queue="scheduled") == 2
    assert metrics("slicewise_gateway_slots", gateway="lost", queue="scheduled") is None
    assert metrics("slicewise_gateways", queue="scheduled", state="working") == 1
    assert metrics("slicewise_gateways", queue="scheduled", state="lost") == 1
    assert metrics("slicewise_leases", state="live") == 1
    assert metrics("slicewise_leases", state="expired") == 1


def test_requests_of_all_processes_add_up(scrape: Scrape) -> None:
    one, other = RequestCounts(), RequestCounts()
    one.add("pages|GET|200", 0.02)
    one.add("pages|GET|200", 0.3)
    one.add("api|POST|201", 0.02)
    other.add("pages|GET|200", 40.0)
    for process in (one, other, one):
        process.store()
    metrics = scrape()
    labels = {"handler": "pages", "method": "GET"}
    assert metrics("slicewise_http_requests_total", code="200", **labels) == 3
    name = "slicewise_http_request_duration_seconds"
    assert metrics(f"{name}_count", handler="pages") == 3
    assert metrics(f"{name}_sum", handler="pages") == pytest.approx(40.32)
    assert metrics(f"{name}_bucket", handler="pages", le="0.5") == 2


@transaction.atomic
def store_in_savepoint(counts: RequestCounts) -> None:
    counts.store()


def test_counts_of_requests_outlast_an_outage(
    scrape: Scrape, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = RequestCounts()
    counts.add("pages|GET|200", 0.02)
    with monkeypatch.context() as patch:
        patch.setattr(request_counting, "_STORE", "SELECT no_such_column")
        with pytest.raises(Error):
            store_in_savepoint(counts)
    counts.add("pages|GET|200", 0.02)
    counts.store()
    assert scrape()("slicewise_http_requests_total", handler="pages", method="GET", code="200") == 2


@pytest.mark.parametrize(
    ("method", "path", "labels"),
    [
        ("get", "/sign-in/", "pages|GET|200"),
        ("get", "/api/v1/runs/", "api|GET|401"),
        ("get", "/no/such/page", "pages|GET|404"),
        ("get", "/metrics", "probes|GET|200"),
        ("get", "/static/no.css", "static|GET|404"),
        ("brew", "/sign-in/", "pages|other|403"),
    ],
)
def test_a_request_is_counted_by_a_few_words(
    scrapers_client: Any, monkeypatch: pytest.MonkeyPatch, method: str, path: str, labels: str
) -> None:
    counts = RequestCounts()
    monkeypatch.setattr(request_counting, "COUNTS", counts)
    scrapers_client.generic(method.upper(), path)
    counts.store()
    [row] = TimeCount.objects.all()
    assert (row.labels, row.observations) == (labels, 1)


def test_progress_of_backfills_by_state(alice: User, scrape: Scrape, sent: object) -> None:
    ended, under_way = (
        ask(alice, asset(name, DAILY_2013).name, start="2013-01-01", end="2013-01-04")
        for name in ("ended", "under_way")
    )
    BackfillAsset.objects.filter(backfill=under_way).update(
        total=9, expanded=7, waiting=1, active=2, succeeded=1, failed=2, canceled=0, skipped=1
    )
    Backfill.objects.filter(pk=under_way.pk).update(state="running")
    Backfill.objects.filter(pk=ended.pk).update(state="canceled", run_end_date=timezone.now())
    metrics = scrape()
    states = {labels["state"] for labels in metrics.series_of("slicewise_backfills")}
    assert states == set(BackfillState.values)
    assert metrics("slicewise_backfills", state="running") == 1
    assert metrics("slicewise_backfills", state="canceled") == 1
    numbers = {
        labels["state"]: metrics("slicewise_backfill_partitions", **labels)
        for labels in metrics.series_of("slicewise_backfill_partitions")
    }
    assert numbers == {
        "waiting": 1, "active": 2, "succeeded": 1, "failed": 2, "canceled": 0, "skipped": 1,
        "unexpanded": 2,
    }  # fmt: skip
