"""A huge catalogue: 5,000 assets, a million partitions, a backfill of them, 10,000 segments."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

from django.db import connection, transaction
from django.utils import timezone

import slicewise
from accounts_app.models import User
from assets_app.models import RunAttempt, RunLog, RunState
from backfills_app.services import request_from_text
from backfills_app.services.advance.expansion import expand
from bench.graph_catalogue import declare
from bench.grids import record_partitions
from tests.created_backfills import create_backfill
from tests.factories import asset
from tests.gateways import record_gateway
from tests.pages.backfill_records import runs_of
from tests.pages.page_list import Things
from tests.pages.run_records import failed_run, recorded_run
from tests.shots.heartbeats import keep_alive

ASSETS, SEGMENTS, LOG_MEGABYTES = 5_000, 10_000, 100
_MINUTES = slicewise.PartitionByInterval("* * * * *", start="2024-01-01", end="2025-11-26")
_STATIONS = slicewise.PartitionByProduct(
    {
        "day": slicewise.PartitionByInterval("@daily", start="2024-01-01", end="2024-01-31"),
        "station": slicewise.PartitionBySequence([f"S{number:05}" for number in range(SEGMENTS)]),
    }
)


def fill(user: User) -> Things:
    """Fill the catalogue; return the things that addresses name."""
    record_gateway("host-1.scheduled")
    declare(ASSETS)
    minutes = asset("sensor_minutes", _MINUTES, group="team 01", description="Readings by minute.")
    stations = asset("station_days", _STATIONS, group="team 01", description="A day of a station.")
    record_partitions(minutes)
    record_partitions(stations)
    backfill = create_backfill(
        request_from_text(
            "sensor_minutes", "2024-01-01", "2025-11-24", existing="all", max_active_runs=3,
            description="All minutes once more",
        ),
        user=user,
    )  # fmt: skip
    while expand(backfill.pk):
        pass
    backfill.refresh_from_db()
    with transaction.atomic():
        for state, number in (("succeeded", 2000), ("failed", 60), ("running", 3), ("queued", 40)):
            error = "TimeoutError: no answer" if state == "failed" else ""
            runs_of(backfill, state, number, error=error)
    now = timezone.now()
    failed = failed_run(
        minutes, "2024-01-01T00:00Z", error="TimeoutError: the broker does not answer",
        started_at=now - timedelta(hours=2),
    )  # fmt: skip
    _write_long_log(failed.pk)
    running = recorded_run(minutes, RunState.RUNNING, "2024-01-01T00:01Z", started_at=now)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    keep_alive()
    return {
        "word": "mart_0", "asset": "sensor_minutes", "asset_id": minutes.pk, "day": "2024-06-01",
        "hourly_asset": "sensor_minutes", "hour": "2024-06-01",
        "product_asset": "station_days", "product_day": "2024-01-01",
        "scheduled_asset": "sensor_minutes", "selection": "2024-01",
        "materialized_key": "2024-01-01T00:02Z", "failed_key": "2024-01-01T00:00Z",
        "failed_run": failed.pk, "running_run": running.pk,
        "backfill": backfill.pk, "ended_backfill": backfill.pk,
        "backfill_fields": "asset=station_days&start=2024-01-01&end=2024-01-31&existing=all",
    }  # fmt: skip


def _write_long_log(run_id: int) -> None:
    """Write a log of many megabytes, in blocks of the size that workers write."""
    attempt = RunAttempt.objects.create(
        run_id=run_id, number=1, token=uuid4(), started_at=timezone.now(), ended_at=timezone.now(),
        outcome="failed", error="TimeoutError: the broker does not answer",
    )  # fmt: skip
    RunLog.objects.bulk_create(_blocks(attempt), batch_size=100)


def _blocks(attempt: RunAttempt) -> Iterator[RunLog]:
    line = f"INFO  a reading of the sensor: {'7' * 30}\n"
    lines = line * (64 * 1024 // len(line))
    for sequence in range(LOG_MEGABYTES * 1_000_000 // len(lines)):
        yield RunLog(attempt=attempt, sequence=sequence, text=lines)
