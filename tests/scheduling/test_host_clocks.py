"""The wrong clock of a host decides nothing: due times go by the database's clock."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.catalogue.services import set_paused, sync_bundle
from assets_app.execution.request.reporting import ReportedWrite, report_write
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Run, Schedule
from assets_app.queries.clock import database_now
from slicewise import PartitionByInterval
from slicewise_server.web.request_errors import InvalidRequest
from tests.catalogue.conftest import Bundle, bundle
from tests.factories import asset, external
from tests.scheduling.scenes import at, cron, scheduled

__all__ = ["bundle"]

DAILY = PartitionByInterval("@daily", start="2024-01-01")
pytestmark = pytest.mark.django_db


@pytest.fixture(params=[timedelta(days=-3), timedelta(days=3)], ids=["slow", "fast"])
def wrong(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> timedelta:
    """Return the error of this host's clock; the database has its own clock."""
    error: timedelta = request.param
    now = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + error)
    return error


def is_now(moment: datetime) -> bool:
    return abs(moment - database_now()) < timedelta(minutes=5)


def day(days_ago: int) -> str:
    return f"{database_now() - timedelta(days=days_ago):%Y-%m-%d}"


def test_unpausing_goes_on_from_the_present(wrong: timedelta, alice: User) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    set_paused(daily, True, user=alice)
    set_paused(daily, False, user=alice)
    schedule = Schedule.objects.get()
    assert is_now(schedule.handled_until)
    assert schedule.next_at is not None
    assert timedelta() < schedule.next_at - database_now() <= timedelta(days=1)


def test_a_schedule_that_is_declared_begins_at_present(wrong: timedelta, bundle: Bundle) -> None:
    declared = 'from slicewise import asset\n@asset(schedule="@daily")\ndef whole(): ...\n'
    assert sync_bundle("trials", bundle(a=declared)).errors == []
    assert is_now(Schedule.objects.get().handled_until)


def test_a_window_may_be_made_once_it_is_over(wrong: timedelta, alice: User) -> None:
    daily, reported = asset("daily", DAILY), external("reported", DAILY)
    with pytest.raises(InvalidRequest, match="is after the last partition"):
        materialize(MaterializeRequest(asset=daily, selection=day(0)), user=alice)
    with pytest.raises(InvalidRequest, match="is after the last partition"):
        report_write(ReportedWrite(asset=reported, selection=day(0)), user=alice)
    materialize(MaterializeRequest(asset=daily, selection=day(1)), user=alice)
    assert [run.selection for run in Run.objects.all()] == [day(1)]
    report_write(ReportedWrite(asset=reported, selection=day(1)), user=alice)


def test_how_long_a_run_has_waited_goes_by_the_database(wrong: timedelta, alice: User) -> None:
    materialize(MaterializeRequest(asset=asset("whole")), user=alice)
    run = Run.objects.get()
    assert run.queued_at is not None
    assert is_now(run.created_at)
    assert is_now(run.queued_at)


def test_a_run_is_made_and_queued_at_one_time_that_no_statement_of_its_own_asks_for(
    wrong: timedelta, alice: User
) -> None:
    daily = asset("daily", DAILY)
    request = MaterializeRequest(asset=daily, selection=day(2))
    with CaptureQueriesContext(connection) as statements:
        run = materialize(request, user=alice).runs.get()
    assert is_now(run.created_at)
    # A run that is queued later than it was made counts as tried, and is not withdrawn.
    assert run.queued_at == run.created_at
    texts = [statement["sql"] for statement in statements]
    inserted = next(place for place, text in enumerate(texts) if "INTO assets_app_run\n" in text)
    claimed = next(place for place, text in enumerate(texts) if "WITH wanted AS" in text)
    assert inserted == claimed + 1
