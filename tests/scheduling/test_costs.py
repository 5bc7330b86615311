"""The rows that a look at schedules reads: no more for a long history or for later windows."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.queue.waiting import wake_waiting
from assets_app.models import (
    AssetPartition,
    AwaitedPartition,
    Gateway,
    Outbox,
    Schedule,
    ScheduleTick,
    Target,
    TickReason,
)
from assets_app.queries.upstream_needs import needs_of_any
from assets_app.scheduling import recording
from assets_app.scheduling.outbox import process_outbox
from assets_app.scheduling.queueing import examined_edges
from assets_app.scheduling.readiness import evaluate
from assets_app.scheduling.requeue_due import requeue_due
from slicewise import PartitionByInterval
from slicewise.partitions.due import ended_between
from slicewise.partitions.rows import partition_rows
from tests.factories import asset
from tests.query_plans import rows_read
from tests.queued_runs import claim_runs
from tests.scheduling.scheduled_assets import (
    at,
    by,
    cron,
    fresh,
    make,
    make_all,
    scheduled,
    waiting,
    write,
)

BEGAN = at(2024, 7, 1)
pytestmark = pytest.mark.django_db


def test_a_look_at_what_came_due_again_reads_nothing_that_is_not_due_yet() -> None:
    hours = asset("hours", PartitionByInterval("@hourly"))
    AssetPartition.objects.bulk_create(
        AssetPartition(
            asset=hours,
            identity=hours.identity,
            key=str(number),
            window_start=BEGAN + timedelta(hours=number),
            window_end=BEGAN + timedelta(hours=number + 1),
            due_again=True,
            due_at=BEGAN + timedelta(hours=number + 1),
        )
        for number in range(5_000)
    )
    with CaptureQueriesContext(connection) as statements:
        assert requeue_due(BEGAN) == 0
    assert len(statements) == 2
    assert [rows_read(query["sql"]) for query in statements.captured_queries] == [0, 0]


def test_the_last_tick_of_a_schedule_is_one_row_however_many_there_are() -> None:
    names = ("one", "two", "three")
    for name in names:
        scheduled(name, cron("@hourly"), since=BEGAN)
    schedules = list(Schedule.objects.values_list("pk", flat=True))
    ScheduleTick.objects.bulk_create(
        ScheduleTick(
            schedule_id=schedule,
            at=BEGAN + timedelta(hours=number),
            last_at=BEGAN + timedelta(hours=number),
            reason=TickReason.NOTHING_ENDED,
        )
        for schedule in schedules
        for number in range(2_000)
    )
    # The row itself, and the one after it that shows that no other is of its time.
    assert rows_read(recording._LAST_ROWS, [schedules, TickReason.NOTHING_ENDED]) <= 6


@pytest.mark.parametrize("version", [0, 1], ids=["failed", "materialized"])
def test_a_schedule_reads_one_partition_of_an_asset_of_which_any_suffices(
    version: int,
) -> None:
    hours = asset("hours", PartitionByInterval("@hourly", start="2024-01-01"))
    news = scheduled("news", fresh("hours", timedelta(hours=1)), since=BEGAN)
    AssetPartition.objects.bulk_create(
        AssetPartition(
            asset=hours, identity=hours.identity, key=str(number), version=version,
            state="materialized" if version else "failed",
            window_start=BEGAN + timedelta(hours=number),
            window_end=BEGAN + timedelta(hours=number + 1),
            # The newest data has an old window.
            materialized_at=BEGAN - timedelta(hours=number) if version else None,
        )
        for number in range(1_000)
    )  # fmt: skip
    edges = list(examined_edges().filter(downstream=news))
    with CaptureQueriesContext(connection) as statements:
        rows = list(partition_rows(None, None))
        (evaluation,) = evaluate(Target(news), edges, rows, made=[], now=BEGAN)
        (need,) = needs_of_any(news, ["hours"])
    assert evaluation.upstream_statuses["hours"].newest_at == need.newest_at
    assert need.newest_at == (BEGAN if version else None)
    assert need.materialized == version
    looks = [query["sql"] for query in statements if "assets_app_assetpartition" in query["sql"]]
    assert [rows_read(look) for look in looks] == [version, version]


def test_a_look_at_what_waits_reads_nothing_while_nothing_has_ended(gateway: Gateway) -> None:
    definition = PartitionByInterval("@hourly", start="2024-01-01")
    hours = asset("hours", definition, options={"depends_on_past": True})
    asked_for = ended_between(definition, BEGAN, BEGAN + timedelta(hours=1_500))
    runs = claim_runs(hours, [[row] for row in partition_rows(definition, asked_for)])
    assert [run.state for run in runs[:3]] == ["queued", "waiting", "waiting"]
    asked_at = timezone.now()
    # In the first minutes, and then every quarter of an hour.
    for minutes in (0, 10):
        while AwaitedPartition.objects.filter(
            look_at__lte=asked_at + timedelta(minutes=minutes)
        ).exists():
            assert wake_waiting(asked_at + timedelta(minutes=minutes)) == 0
    soon = asked_at + timedelta(minutes=15)
    with CaptureQueriesContext(connection) as statements:
        assert wake_waiting(soon) == 0
    (look,) = (
        query["sql"] for query in statements if "assets_app_awaitedpartition" in query["sql"]
    )
    assert rows_read(look) == 0
    make(runs[0], gateway)
    assert AwaitedPartition.objects.filter(look_at__lte=soon).count() == 1
    assert wake_waiting(soon) == 1


def test_an_asset_that_reads_all_of_another_names_none_of_it(alice: User, gateway: Gateway) -> None:
    daily = asset("daily", PartitionByInterval("@daily", start="2024-01-01"))
    total = scheduled("whole", by("daily"), since=BEGAN, upstream={"daily": None})

    def look_again() -> list[str]:
        """Return the partitions that are queued when the asset comes due again."""
        Outbox.objects.all().delete()
        AssetPartition.objects.filter(asset=total).update(due_again=True)
        with CaptureQueriesContext(connection) as statements:
            assert requeue_due(at(2024, 8, 1)) == 1
        assert not [query["sql"] for query in statements if "2024-07-0" in query["sql"]]
        return waiting(total)

    write(daily, "2024-07-01..2024-07-03", gateway, alice)
    write(total, "", gateway, alice)
    assert look_again() == []
    write(daily, "2024-07-03", gateway, alice)
    assert look_again() == [""]
    make_all(total, gateway)
    assert look_again() == []


def test_no_more_is_evaluated_at_once_than_a_transaction_has_room_for(
    alice: User, gateway: Gateway, settings: Any
) -> None:
    settings.MAX_PARTITIONS_PER_TRANSACTION = 2
    daily = asset("daily", PartitionByInterval("@daily", start="2024-01-01"))
    follows = scheduled("follows", by("daily"), daily.definition, since=BEGAN)
    days = [f"2024-07-0{day}" for day in (1, 2, 3)]
    for day in days:
        write(daily, day, gateway, alice)
    assert [process_outbox(at(2024, 8, 1)) for _ in range(3)] == [2, 1, 0]
    assert waiting(follows) == days
