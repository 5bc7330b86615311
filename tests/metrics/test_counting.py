"""The kept counts of runs equal the runs, whoever changes the runs, and in whatever statement."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from threading import Thread

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.queue.transitions import move, move_all
from assets_app.models import TRANSITIONS, Asset, Queue, Run, RunState
from slicewise_server.metrics.buckets import BOUNDS, bucket_of
from slicewise_server.metrics.counting import count_runs
from slicewise_server.metrics.models import RunChange, RunCount
from tests.factories import DAILY_2013, asset
from tests.metrics.scraped_samples import Scraped
from tests.queued_runs import queue_runs
from tests.supervised_runs import BY_CODE, ENDED, SPARK, Worker, execute

Scrape = Callable[[], Scraped]


@pytest.fixture
def flights(db: None) -> Asset:
    return asset("flights", DAILY_2013, group="flights")


def kept() -> Counter[tuple[int, str, str]]:
    """Return the counts that are kept, by asset, queue and state, without zeros."""
    rows = RunCount.objects.exclude(runs=0)
    return Counter({(row.asset_id, row.queue, row.state): row.runs for row in rows})


def counted() -> Counter[tuple[int, str, str]]:
    """Return the counts of the runs on record."""
    return Counter(Run.objects.values_list("asset", "queue", "state"))


ENDS = ("succeeded", "failed", "canceled", "skipped")


def way_to(state: RunState) -> list[RunState]:
    """Return a shortest way from waiting to a state, along the table of transitions."""
    ways = [[RunState.WAITING]]
    for way in ways:
        if way[-1] == state:
            return way
        ways += [[*way, new] for new in TRANSITIONS[way[-1]] if new not in way]
    raise AssertionError(f"no way to {state}")


def waiting_runs(of: Asset, number: int) -> list[int]:
    group = queue_runs(of, 1, Queue.BACKFILL)
    [queued] = group.runs.all()
    runs = [
        Run(
            group=group,
            producer_version=queued.producer_version,
            asset=of,
            trigger=queued.trigger,
            queue=queued.queue,
            state=RunState.WAITING,
            partition_count=1,
        )
        for _ in range(number)
    ]
    return sorted(run.pk for run in Run.objects.bulk_create(runs))


def move_on(run_ids: list[int], old: RunState, new: RunState) -> None:
    assert move_all(run_ids, old, new, ended_at=timezone.now() if new in ENDS else None) == run_ids


def test_counts_follow_every_transition(flights: Asset) -> None:
    for old, states in TRANSITIONS.items():
        for new in states:
            run_ids = waiting_runs(flights, 3)
            for step, next_step in pairwise(way_to(old)):
                move_on(run_ids, step, next_step)
            count_runs()
            assert kept() == counted()
            move_on(run_ids[:2], old, new)
            assert RunChange.objects.count() == 2
            count_runs()
            assert kept() == counted(), f"{old} to {new}"


def test_an_update_that_leaves_the_state_notes_nothing(flights: Asset) -> None:
    queue_runs(flights, 3)
    count_runs()
    Run.objects.update(error="x", not_before=timezone.now())
    assert not RunChange.objects.exists()


def test_deleted_runs_are_taken_off_and_stay_in_the_sum_of_ends(
    flights: Asset, scrape: Scrape
) -> None:
    group = queue_runs(flights, 5)
    canceled = list(group.runs.values_list("id", flat=True))
    move_all(canceled, RunState.QUEUED, RunState.CANCELED, ended_at=timezone.now())
    labels = {"state": "canceled", "queue": "scheduled", "group": "flights"}
    assert scrape()("slicewise_runs", **labels) == 5
    Run.objects.all().delete()
    metrics = scrape()
    assert kept() == counted() == Counter()
    assert metrics("slicewise_runs", **labels) == 0
    assert metrics("slicewise_runs_ended_total", **labels) == 5


def test_a_rolled_back_change_is_not_counted(flights: Asset) -> None:
    queue_runs(flights, 1)
    count_runs()
    with transaction.atomic():
        queue_runs(flights, 7)
        transaction.set_rollback(True)
    assert count_runs() == 0
    assert kept() == counted()


def test_fifty_thousand_runs_in_one_statement_are_one_change(flights: Asset) -> None:
    # The first statement of the connection has one run: its plan must do for the others.
    one = queue_runs(flights, 1).runs.get()
    move(one.pk, RunState.QUEUED, RunState.CANCELED, ended_at=timezone.now())
    many = queue_runs(flights, 50_000)
    count_runs()
    Run.objects.filter(group=many).update(state=RunState.CANCELED, ended_at=timezone.now())
    assert sorted(RunChange.objects.values_list("state", "change")) == [
        ("canceled", 50_000),
        ("queued", -50_000),
    ]
    count_runs()
    assert kept() == counted()


@pytest.mark.django_db(transaction=True)
def test_two_processes_that_count_at_once_count_each_change_once(
    transactional_db: None,
) -> None:
    flights = asset("flights", DAILY_2013)

    def count_often() -> None:
        for _ in range(20):
            count_runs()
        connections.close_all()

    threads = [Thread(target=count_often) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        queue_runs(flights, 2)
    for thread in threads:
        thread.join()
    count_runs()
    assert kept() == counted()


def test_runs_by_state_queue_and_group_and_their_times(
    run: Run, worker: Worker, scrape: Scrape
) -> None:
    Asset.objects.update(group="flights")
    before = scrape()
    labels = {"queue": "scheduled", "group": "flights"}
    assert before("slicewise_runs", state="queued", **labels) == 1
    assert before("slicewise_queued_runs", queue="scheduled") == 1
    assert before("slicewise_queued_runs", queue="backfill") == 0
    worker.said = [*SPARK, BY_CODE, ENDED]
    assert execute(run).state == RunState.FAILED
    after = scrape()
    assert after("slicewise_runs", state="queued", **labels) == 0
    assert after("slicewise_runs", state="failed", **labels) == 1
    assert after("slicewise_runs_ended_total", state="failed", **labels) == 1
    assert after("slicewise_run_start_delay_seconds_count", queue="scheduled") == 1
    assert after("slicewise_run_duration_seconds_count", queue="scheduled", state="failed") == 1


def test_a_retry_counts_as_one_more_end(alice: User, flights: Asset, scrape: Scrape) -> None:
    run = queue_runs(flights, 1).runs.get()
    for _ in range(2):
        move(run.pk, RunState.QUEUED, RunState.FAILED, ended_at=timezone.now())
        move(run.pk, RunState.FAILED, RunState.QUEUED, ended_at=None)
    metrics = scrape()
    labels = {"state": "failed", "queue": "scheduled", "group": "flights"}
    assert metrics("slicewise_runs", **labels) == 0
    assert metrics("slicewise_runs_ended_total", **labels) == 2


def test_times_fall_into_the_buckets_of_the_database_and_of_the_server(flights: Asset) -> None:
    edges = [edge for bound in BOUNDS for edge in (bound - 0.001, bound, bound + 0.001)]
    with connection.cursor() as cursor:
        cursor.execute("SELECT metrics_bucket(t) FROM unnest(%s::float[]) AS t", [edges])
        assert [row[0] for row in cursor.fetchall()] == [bucket_of(edge) for edge in edges]


def test_the_sum_and_the_buckets_of_a_time(flights: Asset, scrape: Scrape) -> None:
    now = timezone.now()
    for seconds in (0.02, 3, 7, 1e6):
        [run] = queue_runs(flights, 1).runs.all()
        Run.objects.filter(pk=run.pk).update(
            state=RunState.DISPATCHED, queued_at=now - timedelta(seconds=seconds)
        )
        move(run.pk, RunState.DISPATCHED, RunState.RUNNING, started_at=now, attempt_count=1)
    metrics = scrape()
    name = "slicewise_run_start_delay_seconds"
    assert metrics(f"{name}_sum", queue="scheduled") == pytest.approx(1_000_010.02)
    bounds = {"0.01": 0, "0.05": 1, "2.5": 1, "5.0": 2, "10.0": 3, "86400.0": 3, "+Inf": 4}
    for bound, number in bounds.items():
        assert metrics(f"{name}_bucket", queue="scheduled", le=bound) == number


def test_a_second_attempt_is_no_start_delay(flights: Asset, scrape: Scrape) -> None:
    [run] = queue_runs(flights, 1).runs.all()
    now = timezone.now()
    move(run.pk, RunState.QUEUED, RunState.DISPATCHED, queued_at=now)
    move(run.pk, RunState.DISPATCHED, RunState.RUNNING, started_at=now, attempt_count=2)
    assert scrape()("slicewise_run_start_delay_seconds_count", queue="scheduled") is None
