"""Records that fill every page of the server, with long names and long errors."""

from datetime import timedelta
from uuid import UUID, uuid4

from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.utils import timezone
from knox.models import AuthToken

from accounts_app.models import User
from accounts_app.policy import Role
from assets_app.execution.request.runtime_partitions import add_partitions
from assets_app.models import (
    Asset,
    AssetDependency,
    Bundle,
    BundleVersion,
    Run,
    RunAttempt,
    RunLog,
    RunState,
    ValidationResult,
)
from backfills_app.models import Backfill
from slicewise import PartitionAtRuntime, PartitionByInterval, PartitionByProduct
from slicewise_server.alerts import services as alerts
from slicewise_server.lineage.models import LineageEdge
from tests.factories import AIRPORTS, DAILY_2013, asset, external
from tests.gateways import record_gateway
from tests.pages.backfill_records import runs_of, written_backfill
from tests.pages.page_list import Things
from tests.pages.run_records import failed_partition, recorded_run
from tests.partition_records import record
from tests.scheduling.scheduled_assets import any_of, at, by, cron, scheduled

# Long enough for every zoom, and short: axe takes some 30 ms for each cell.
_HOURLY = PartitionByInterval("@hourly", start="2024-01-01", end="2024-01-08")
_WINTER = PartitionByInterval("@daily", start="2013-01-01", end="2013-03-11")
_WINTER_BY_AIRPORT = PartitionByProduct({"date": _WINTER, "airport": AIRPORTS})
_CHECK = {
    "kind": "not_null", "name": "not_null(dest)", "severity": "warn",
    "description": "No row has a null in 'dest'.", "columns": ["dest"],
}  # fmt: skip
_STATES = ("materialized", "materialized", "failed", "skipped", "canceled", "materialized")
_CARRIERS = PartitionAtRuntime(name="carrier")
_NAME = "flights_of_all_airlines_by_airport_with_the_weather_of_the_hour_and_of_the_day_before"
_PAUSED_NAME = f"{_NAME}_paused"
_ERROR = (
    "ValueError: the file s3://lake/raw/2013/01/05/part-0001.parquet of the flights of the day has"
    " no column 'dep_delay'; the file has dest, origin and carrier"
)


def filled_pages(user: User) -> Things:
    """Fill the pages for an administrator; return the things that the addresses of pages name."""
    User.objects.filter(pk=user.pk).update(is_staff=True, email="vera@example.org")
    user.groups.add(Group.objects.get_or_create(name=Role.ADMIN.value)[0])
    user.refresh_from_db()
    AuthToken.objects.create(user=user)
    _record_assets(user)
    failed, running = _record_runs()
    started, ended = _record_backfills(user)
    _record_server(user)
    return {
        "word": "flights", "user": user.pk,
        "asset": _NAME, "asset_id": failed.asset_id, "day": "2013-02-01",
        "hourly_asset": "hours", "hour": "2024-01-02",
        "product_asset": "delays", "product_day": "2013-01-01", "scheduled_asset": "report",
        "found_asset": "carriers", "external_asset": "weather", "whole_asset": "whole",
        "selection": "2013-02", "materialized_key": "2013-02-01", "failed_key": "2013-03-01",
        "failed_run": failed.pk, "running_run": running.pk,
        "backfill": started.pk, "ended_backfill": ended.pk,
        "backfill_fields": "asset=delays&start=2013-02-27&end=2013-03-03",
        "channel": "hook", "alert_rule": "failures",
    }  # fmt: skip


def _record_assets(user: User) -> None:
    """Create assets in many states, related to one another."""
    weather = external("weather", DAILY_2013, group="sources", tags=["prod"])
    flights = asset(
        _NAME, _WINTER, upstream={"weather": None}, description="Flights of a day. " * 9,
        group="flights", tags=["prod", "finance-quarterly"],
        owners=["vera", "ada.lovelace@example.org"], uri="file:///lake/flights",
        outlet_validations=[_CHECK],
    )  # fmt: skip
    delays = asset("delays", _WINTER_BY_AIRPORT, upstream={_NAME: None}, group="flights")
    busy = asset("busy", DAILY_2013, upstream={_NAME: None})
    asset(_PAUSED_NAME, DAILY_2013, paused=True)
    asset("whole")
    add_partitions(asset("carriers", _CARRIERS), ["AA", "UA"], user=user)
    hours = scheduled("hours", cron("0 * * * *"), _HOURLY, since=at(2024, 1, 1))
    scheduled("report", any_of(by(_NAME), by("weather")), DAILY_2013, since=at(2024, 1, 1))
    for upstream, downstream in ((weather, flights), (flights, delays), (flights, busy)):
        AssetDependency.objects.create(upstream=upstream, downstream=downstream, inlet=True)
    record(weather, "2013")
    record(flights, "2013-01-01..2013-02-28", lambda place: _STATES[place % len(_STATES)])
    record(delays, "date=2013-01-01..2013-02-28", lambda place: _STATES[place % len(_STATES)])
    record(hours, "2024-01-01..2024-01-06", lambda place: _STATES[place % len(_STATES)])


def _record_runs() -> tuple[Run, Run]:
    """Create runs of all states; return one that failed, with a log, and one that is running."""
    flights, busy = Asset.objects.get(name=_NAME), Asset.objects.get(name="busy")
    now = timezone.now()
    _count_on_from(12_345_678)
    failed = [
        failed_partition(flights, f"2013-03-0{day}", error=_ERROR, ago=timedelta(days=day / 3))
        for day in range(1, 8)
    ]  # fmt: skip
    attempt = RunAttempt.objects.create(
        run=failed[0], number=1, token=uuid4(), started_at=now, ended_at=now, outcome="failed"
    )
    RunLog.objects.create(attempt=attempt, sequence=1, text="INFO begin\nERROR no rows\n")
    for place, passed in enumerate((True, False)):
        ValidationResult.objects.create(
            attempt=attempt, position=place, asset=flights, name="not_null(dest)", when="outlet",
            severity="warn", passed=passed, evaluated=True, message="3 rows",
        )  # fmt: skip
    for hours, state in enumerate((RunState.SUCCEEDED, RunState.CANCELED, RunState.SKIPPED)):
        ended = now - timedelta(hours=hours)
        recorded_run(flights, state, started_at=ended - timedelta(minutes=3), ended_at=ended)
    recorded_run(busy, RunState.QUEUED, "2013-01-06")
    # A long time ago is told in full: day, time, and zone.
    Run.objects.filter(state="queued").update(created_at=now - timedelta(days=300))
    started = now - timedelta(hours=17, minutes=59)
    running = recorded_run(busy, RunState.RUNNING, "2013-01-05", started_at=started)
    record(busy, "2013-01-05")
    busy.partitions.update(state="missing", held_by=running)
    return failed[0], running


def _count_on_from(number: int) -> None:
    """Give new runs the ids of a server that has worked for years."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [Run._meta.db_table, number]
        )


def _record_backfills(user: User) -> tuple[Backfill, Backfill]:
    """Create a backfill that is at work and one that has ended."""
    with transaction.atomic():
        started = written_backfill(user, _PAUSED_NAME, description="Once more. " * 9)
        for state, number in (("succeeded", 9), ("failed", 2), ("running", 3), ("queued", 4)):
            runs_of(started, state, number)
        ended = written_backfill(user, "busy", "2013-02-01", "2013-02-01")
        runs_of(ended, "failed", 1, error=_ERROR)
    return started, ended


def _record_server(user: User) -> None:
    """Create workers, an alert rule, an edge of another tool, and a bundle with an error."""
    record_gateway("host-1.example.org.scheduled")
    record_gateway("host-1.example.org.backfill", queue="backfill", silent_seconds=99)
    channel, _ = alerts.create_channel(
        "hook", "webhook", address="https://hooks.example/T0/s3cret", user=user
    )
    alerts.save_rule(None, {"name": "failures", "channel": channel, "tags": ["prod"]}, user=user)
    alerts.send_test(channel, user=user)
    now = timezone.now()
    LineageEdge.objects.create(
        digest="1", upstream=Asset.objects.get(name=_NAME), downstream=None,
        upstream_namespace="kafka://broker", upstream_name="clicks", downstream_name="dashboard",
        downstream_namespace="bi://tool", job_namespace="imports", job_name="nightly",
        last_run_id=UUID(int=1), first_seen_at=now, last_seen_at=now,
    )  # fmt: skip
    error = {"path": "wrong.py", "message": "SyntaxError", "line": 3, "traceback": "Traceback"}
    broken = Bundle.objects.create(name="broken", path="/nowhere", error="No such folder")
    broken.current_version = BundleVersion.objects.create(
        bundle=broken, digest="1" * 64, archive=b"", import_errors=[error]
    )
    broken.save()
