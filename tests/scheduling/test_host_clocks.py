"""The wrong clock of a host decides nothing: due times, overdue partitions and recorded times go by
the database's clock.
"""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.catalogue.freshness_watches import store_watches
from assets_app.catalogue.pausing import set_paused
from assets_app.catalogue.services import sync_bundle
from assets_app.execution.request.reporting import ReportedWrite, report_write
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, Run, Schedule
from assets_app.queries.clock import database_now
from assets_app.queries.overview import asset_statuses
from assets_app.scheduling.freshness import watch_freshness
from backfills_app.models import BackfillState
from backfills_app.services import cancel_backfill
from slicewise import PartitionByInterval
from slicewise.declaring import ExternalSpec
from slicewise_server.web.request_errors import InvalidRequest
from tests.backfills.driven_backfills import start
from tests.catalogue.conftest import Bundle, bundle
from tests.cli.commands import json_of
from tests.clients import api_client_of, browser_of
from tests.factories import DAILY_2013, asset, external
from tests.scheduling.scheduled_assets import at, cron, scheduled

__all__ = ["bundle"]

DAILY = PartitionByInterval("@daily", start="2024-01-01")
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_day")]


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
    with pytest.raises(InvalidRequest, match="has not ended yet; the last partition"):
        materialize(MaterializeRequest(asset=daily, selection=day(0)), user=alice)
    with pytest.raises(InvalidRequest, match="has not ended yet; the last partition"):
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
    claimed = next(place for place, text in enumerate(texts) if "WITH requested AS" in text)
    assert inserted == claimed + 1


# Of apps with assets and backfills. Sign-ins, sessions and tokens go by the clock of the web
# server: the libraries that write their times do so.
_ROOT = Path(__file__).parents[2]
# Also by another name.
_HOST_CLOCK = re.compile(
    r"timezone\.now|timezone import (now|.* as )|(timezone|datetime) as |datetime\.now\(|\.utcnow"
    r"|time\.time\("
)


def test_no_code_of_assets_and_backfills_asks_the_clock_of_its_host() -> None:
    places = [
        f"{path.relative_to(_ROOT)}:{number}"
        for app in ("assets_app", "backfills_app")
        for path in sorted((_ROOT / app).rglob("*.py"))
        if "migrations" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if _HOST_CLOCK.search(line)
    ]
    assert places == []


@pytest.mark.usefixtures("sent")
def test_a_backfill_begins_and_ends_by_one_clock(wrong: timedelta, alice: User) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = start(alice, end="2013-01-02")
    cancel_backfill(backfill, user=alice)
    backfill.refresh_from_db()
    assert backfill.state == BackfillState.CANCELED
    assert backfill.run_end_date is not None
    assert is_now(backfill.run_end_date)
    assert is_now(backfill.updated_at)


def watched(name: str, within: timedelta) -> Asset:
    """Watch an asset from two days ago on: both days are late, and overdue after ``within``."""
    of = asset(name, DAILY)
    freshness = {"within": within // timedelta(seconds=1), "warn": 1}
    spec = ExternalSpec(name=name, freshness=freshness, file="a.py", line=1)
    with transaction.atomic():
        store_watches(of.bundle, [], [spec], now=database_now() - timedelta(days=2))
    watch_freshness(database_now())
    return of


@pytest.fixture
def overdue(alice: User) -> Asset:
    """Return the one asset with overdue partitions, beside an asset whose partitions are late."""
    watched("visits", timedelta(days=3))
    return watched("sales", timedelta(seconds=2))


def test_partitions_are_overdue_by_the_database(
    overdue: Asset, wrong: timedelta, alice: User
) -> None:
    api, browser = api_client_of(alice), browser_of(alice)
    names = [found["name"] for found in api.get("/api/v1/assets/?overdue=true").data["results"]]
    assert names == ["sales"]
    listed = browser.get("/assets/?show=overdue").content.decode()
    assert "/assets/sales/" in listed
    assert "/assets/visits/" not in listed
    for found in (api.get("/api/v1/assets/").data["results"], json_of("assets", "list")):
        counts = {entry["name"]: (entry["overdue"], entry["late"]) for entry in found}
        assert counts == {"sales": (2, 0), "visits": (0, 2)}
    sales, visits = asset_statuses(list(Asset.objects.order_by("name")))
    assert (sales.late.overdue, visits.late.overdue) == (2, 0)


def test_partitions_are_expected_by_the_database(wrong: timedelta, alice: User) -> None:
    daily = asset("daily", PartitionByInterval("@daily", start=day(10)))
    api, browser = api_client_of(alice), browser_of(alice)
    assert api.get("/api/v1/assets/daily/").data["expected"] == 10
    assert len(api.get("/api/v1/assets/daily/partitions/").data["results"]) == 10
    (status,) = asset_statuses([daily])
    assert status.expected == 10
    assert "Not yet due" in browser.get(f"/assets/daily/partitions/{day(0)}/").content.decode()
    assert "Not yet due" not in browser.get(f"/assets/daily/partitions/{day(1)}/").content.decode()
