"""Why a queued run has not begun, on the page of the run."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from assets_app.execution.queue.queue_heads import refresh_heads
from assets_app.models import Asset, Gateway, ProducerVersion, Run, RunGroup, RunState
from assets_app.queries.queue_waits import queue_wait_of
from tests.execution.conftest import make_gateway
from tests.factories import DAILY_2013, asset
from tests.pages.markup import compact, page_at
from tests.pages.run_records import recorded_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def flights() -> Asset:
    return asset("raw_flights", DAILY_2013)


def wait_of(run: Run) -> str:
    return queue_wait_of(Run.objects.get(pk=run.pk), timezone.now())


def test_a_queued_run_tells_the_first_reason_that_holds(browser: Client, flights: Asset) -> None:
    run = recorded_run(flights, RunState.QUEUED)
    assert wait_of(run) == f"No worker of the queue {run.queue} is online."
    page = compact(page_at(browser, f"/runs/{run.pk}/"))
    assert wait_of(run) in page
    assert page.index(wait_of(run)) < page.index("Cancel…")
    make_gateway(run.queue)
    assert wait_of(run) == ""
    Gateway.objects.update(spark_away_since=timezone.now())
    assert wait_of(run) == "No worker reaches the Spark server."
    Gateway.objects.update(spark_away_since=None)
    other = recorded_run(flights, RunState.RUNNING)
    Gateway.objects.update(slots=1)
    assert wait_of(run) == f"1 of 1 slot of the queue {run.queue} is in use."
    for version in ProducerVersion.objects.all():
        version.definition["max_active_runs"] = 1
        version.save()
    assert wait_of(run) == "The asset has 1 active run, its limit."
    RunGroup.objects.filter(pk=other.group_id).update(max_active_runs=1, kind="backfill")
    Run.objects.filter(pk=run.pk).update(group=other.group_id)
    assert wait_of(run) == "The backfill has 1 active run, its limit."
    RunGroup.objects.update(paused=True)
    assert wait_of(run) == "The backfill is paused, or is being canceled."


def test_slots_that_are_kept_closed_are_not_free(flights: Asset) -> None:
    run = recorded_run(flights, RunState.QUEUED)
    recorded_run(flights, RunState.RUNNING)
    make_gateway(run.queue)
    Gateway.objects.update(slots=4, closed_slots=3)
    assert wait_of(run) == (
        f"All open slots of the queue {run.queue} are in use. Runs that have lost their workers"
        " keep 3 of 4 slots closed."
    )
    Gateway.objects.update(closed_slots=2)
    assert wait_of(run) == ""


def test_the_limit_of_a_schedule_is_the_limit_of_its_asset(flights: Asset) -> None:
    running = recorded_run(flights, RunState.RUNNING)
    RunGroup.objects.filter(pk=running.group_id).update(max_active_runs=1, kind="schedule")
    run = recorded_run(flights, RunState.QUEUED)
    Run.objects.filter(pk=run.pk).update(group=running.group_id)
    make_gateway(run.queue)
    assert wait_of(run) == "The asset has 1 active run, its limit."


def test_a_run_with_an_application_of_its_own_needs_no_server(flights: Asset) -> None:
    run = recorded_run(flights, RunState.QUEUED)
    make_gateway(run.queue)
    recorded_run(flights, RunState.RUNNING)
    Gateway.objects.update(spark_away_since=timezone.now(), slots=1)
    for version in ProducerVersion.objects.all():
        version.definition["engine"] = "submit"
        version.save()
    assert wait_of(run) == f"1 of 1 slot of the queue {run.queue} is in use."


def test_a_run_waits_for_the_time_of_its_retry(flights: Asset) -> None:
    run = recorded_run(flights, RunState.QUEUED)
    Run.objects.update(not_before=timezone.now() + timedelta(minutes=20))
    assert wait_of(run) == ""


def test_only_a_queued_run_waits_for_its_turn(flights: Asset) -> None:
    assert wait_of(recorded_run(flights, RunState.RUNNING)) == ""


def test_the_page_of_workers_tells_why_the_oldest_run_of_a_queue_waits(
    browser: Client, flights: Asset
) -> None:
    run, _ = (recorded_run(flights, RunState.QUEUED) for _ in range(2))
    refresh_heads(timezone.now())
    address = f'href="/runs/?state=queued&amp;queue={run.queue}"'
    assert address in page_at(browser, "/gateways/")
    make_gateway(run.queue)
    recorded_run(flights, RunState.RUNNING)
    Gateway.objects.update(slots=1)
    page = compact(page_at(browser, "/gateways/"))
    assert f'Oldest:<a href="/runs/{run.pk}/">run {run.pk}</a>. {wait_of(run)}' in page
    Gateway.objects.update(slots=9)
    page = page_at(browser, "/gateways/")
    assert "Oldest:" not in page
    assert "<code>worker-control</code> sends queued runs to free slots" in page
