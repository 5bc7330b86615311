"""The duration that a preview estimates, by past runs."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.models import Asset, Gateway, Run, RunState
from backfills_app.models import Backfill
from backfills_app.services import check_backfill, request_from_text
from backfills_app.services.request.estimates import Estimate, estimated
from tests.backfills.driven_backfills import ask, run_all
from tests.factories import DAILY_2013, asset
from tests.pages.run_records import recorded_run, repeat_run
from tests.query_plans import rows_read

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def raw() -> Asset:
    return asset("raw", DAILY_2013)


def lasted(backfill: Backfill, *seconds: float) -> None:
    """Set the durations of a backfill's runs, in the order of the runs."""
    now = timezone.now()
    runs = Run.objects.filter(group=backfill.group_id, state=RunState.SUCCEEDED).order_by("id")
    assert len(runs) == len(seconds)
    for run, took in zip(runs, seconds, strict=True):
        Run.objects.filter(pk=run.pk).update(started_at=now - timedelta(seconds=took), ended_at=now)


def estimate_of(user: User, end: str, **options: object) -> Estimate | None:
    """Return the estimate of a preview from the first of February on."""
    request = request_from_text("raw", "2013-02-01", end, existing="all", **options)
    return check_backfill(request, user=user).estimate


@pytest.mark.usefixtures("raw")
def test_two_runs_tell_nothing_and_three_tell_the_median(alice: User, worker: Gateway) -> None:
    two = ask(alice, "raw", start="2013-01-01", end="2013-01-02")
    run_all(worker)
    lasted(two, 2.0, 4.0)
    assert estimate_of(alice, "2013-02-10", max_active_runs=1) is None
    third = ask(alice, "raw", start="2013-01-03", end="2013-01-03")
    run_all(worker)
    lasted(third, 3.0)
    estimate = estimate_of(alice, "2013-02-10", max_active_runs=1)
    assert estimate is not None
    assert estimate.seconds == pytest.approx(30, rel=0.01)
    assert estimate.low < estimate.seconds < estimate.high
    assert estimate.runs_seen == 3


@pytest.mark.usefixtures("raw")
def test_runs_of_a_day_tell_nothing_of_runs_of_a_week(alice: User, worker: Gateway) -> None:
    days = ask(alice, "raw", start="2013-01-01", end="2013-01-04")
    run_all(worker)
    lasted(days, *[1.0] * 4)
    assert estimate_of(alice, "2013-02-28", strategy=7) is None
    weeks = ask(
        alice, "raw", start="2013-01-01", end="2013-01-28", strategy=7, existing="all",
    )  # fmt: skip
    run_all(worker)
    lasted(weeks, *[2.0] * 4)
    estimate = estimate_of(alice, "2013-02-28", strategy=7, max_active_runs=1)
    assert estimate is not None
    assert estimate.seconds == pytest.approx(8, rel=0.01)
    of_days = estimate_of(alice, "2013-02-28", max_active_runs=1)
    assert of_days is not None
    assert of_days.seconds == pytest.approx(28, rel=0.01)


def test_runs_with_many_fewer_partitions_are_passed_over_in_the_index(raw: Asset) -> None:
    now = timezone.now()
    times: dict[str, Any] = {"started_at": now - timedelta(seconds=60), "ended_at": now}
    for count, times_more in ((30, 2), (1, 500)):
        run = recorded_run(raw, RunState.SUCCEEDED, partition_count=count, **times)
        repeat_run(run, times_more)
    with CaptureQueriesContext(connection) as statements:
        estimate = estimated(raw, partitions=30, runs=1, at_once=1)
    assert estimate is not None
    assert (estimate.seconds, estimate.runs_seen) == (60, 3)
    (statement,) = statements.captured_queries
    assert rows_read(statement["sql"]) < 10
