"""Records that fill every page of the server."""

from datetime import timedelta
from uuid import UUID, uuid4

from django.contrib.auth.models import Group
from django.db import transaction
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
_ERROR = "KeyError: 'dest'"


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
        "asset": "flights", "asset_id": failed.asset_id, "day": "2013-02-01",
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
        "flights", _WINTER, upstream={"weather": None}, description="Flights of a day.",
        group="flights", tags=["prod"], owners=["vera"], uri="file:///lake/flights",
        outlet_validations=[_CHECK],
    )  # fmt: skip
    delays = asset("delays", _WINTER_BY_AIRPORT, upstream={"flights": None}, group="flights")
    busy = asset("busy", DAILY_2013, upstream={"flights": None})
    asset("paused", DAILY_2013, paused=True)
    asset("whole")
    add_partitions(asset("carriers", _CARRIERS), ["AA", "UA"], user=user)
    hours = scheduled("hours", cron("0 * * * *"), _HOURLY, since=at(2024, 1, 1))
    scheduled("report", any_of(by("flights"), by("weather")), DAILY_2013, since=at(2024, 1, 1))
    for upstream, downstream in ((weather, flights), (flights, delays), (flights, busy)):
        AssetDependency.objects.create(upstream=upstream, downstream=downstream, inlet=True)
    record(weather, "2013")
    record(flights, "2013-01-01..2013-02-28", lambda place: _STATES[place % len(_STATES)])
    record(delays, "date=2013-01-01..2013-02-28", lambda place: _STATES[place % len(_STATES)])
    record(hours, "2024-01-01..2024-01-06", lambda place: _STATES[place % len(_STATES)])


def _record_runs() -> tuple[Run, Run]:
    """Create runs of all states; return one that failed, with a log, and one that is running."""
    flights, busy = Asset.objects.get(name="flights"), Asset.objects.get(name="busy")
    now = timezone.now()
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
    running = recorded_run(busy, RunState.RUNNING, "2013-01-05", started_at=now)
    record(busy, "2013-01-05")
    busy.partitions.update(state="missing", held_by=running)
    return failed[0], running


def _record_backfills(user: User) -> tuple[Backfill, Backfill]:
    """Create a backfill that is at work and one that has ended."""
    with transaction.atomic():
        started = written_backfill(user, "paused", description="Once more.")
        for state, number in (("succeeded", 9), ("failed", 2), ("running", 3), ("queued", 4)):
            runs_of(started, state, number)
        ended = written_backfill(user, "busy", "2013-02-01", "2013-02-01")
        runs_of(ended, "failed", 1, error=_ERROR)
    return started, ended


def _record_server(user: User) -> None:
    """Create workers, an alert rule, an edge of another tool, and a bundle with an error."""
    record_gateway("host-1.scheduled")
    record_gateway("host-1.backfill", queue="backfill", silent_seconds=99)
    channel, _ = alerts.create_channel(
        "hook", "webhook", address="https://hooks.example/T0/s3cret", user=user
    )
    alerts.save_rule(None, {"name": "failures", "channel": channel, "tags": ["prod"]}, user=user)
    alerts.send_test(channel, user=user)
    now = timezone.now()
    LineageEdge.objects.create(
        digest="1", upstream=Asset.objects.get(name="flights"), downstream=None,
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
