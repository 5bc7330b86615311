"""Downstream partitions that a recorded run makes due, and partitions that it does not."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.models import (
    Asset,
    AssetPartition,
    Gateway,
    Outbox,
    Run,
    ScheduleTruncation,
    Trigger,
)
from assets_app.scheduling.outbox import process_outbox
from assets_app.scheduling.recording import forget_ticks
from assets_app.scheduling.requeue_due import requeue_due
from slicewise import Offset, PartitionByInterval, PartitionByProduct, PartitionBySequence
from tests.factories import asset
from tests.scheduling.scheduled_assets import (
    all_of,
    any_of,
    at,
    begin,
    by,
    fail,
    finish,
    make_all,
    scheduled,
    waiting,
    write,
)

HOURLY = PartitionByInterval("@hourly", start="2024-01-01")
SHIFTED = PartitionByInterval("30 * * * *", start="2024-01-01")
DAILY = PartitionByInterval("@daily", start="2024-01-01")
MONTHLY = PartitionByInterval("@monthly", start="2020-01-01")
YEARLY = PartitionByInterval("@yearly", start="2020-01-01")
SEGMENTS = PartitionBySequence(["marketing-dwh", "engineering-dwh"])
BEGAN = at(2024, 1, 1)
NOW = at(2024, 8, 1)
pytestmark = pytest.mark.django_db


def test_a_day_is_due_when_its_24_hours_are_there(alice: User, gateway: Gateway) -> None:
    hourly = asset("hourly", HOURLY)
    daily = scheduled("daily", by("hourly"), DAILY, since=BEGAN)
    write(hourly, "2024-07-01T00:00Z..2024-07-01T22:00Z", gateway, alice)
    process_outbox(NOW)
    assert waiting(daily) == []
    write(hourly, "2024-07-01T23:00Z", gateway, alice)
    process_outbox(NOW)
    assert waiting(daily) == ["2024-07-01"]
    assert Run.objects.get(asset=daily).trigger == Trigger.UPSTREAM


def test_a_shifted_hour_needs_two(alice: User, gateway: Gateway) -> None:
    hourly = asset("hourly", HOURLY)
    shifted = scheduled("shifted", by("hourly"), SHIFTED, since=BEGAN)
    write(hourly, "2024-07-01T14:00Z", gateway, alice)
    process_outbox(NOW)
    assert waiting(shifted) == []
    write(hourly, "2024-07-01T15:00Z", gateway, alice)
    process_outbox(NOW)
    assert waiting(shifted) == ["2024-07-01T14:30Z"]


def test_a_year_makes_its_12_months_due(alice: User, gateway: Gateway) -> None:
    yearly = asset("yearly", YEARLY)
    monthly = scheduled("monthly", by("yearly"), MONTHLY, since=BEGAN)
    write(yearly, "2023", gateway, alice)
    process_outbox(NOW)
    assert waiting(monthly) == [f"2023-{month:02}-01" for month in range(1, 13)]


def test_segments_upstream_make_the_hours_due_that_ended_since_they_were_made_before(
    alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    spend = asset("spend", SEGMENTS)
    both = PartitionByProduct([PartitionByInterval("@hourly"), SEGMENTS])
    analysis = scheduled("analysis", by("spend"), both, since=at(2024, 7, 1))
    write(spend, "*", gateway, alice)
    _made_at(spend, at(2024, 7, 2))
    process_outbox(NOW)
    assert len(waiting(analysis)) == 48
    make_all(analysis, gateway)
    write(spend, "marketing-dwh", gateway, alice)
    _made_at(spend, at(2024, 7, 2, 3), version=2)
    process_outbox(NOW)
    assert waiting(analysis) == [f"2024-07-02T0{hour}:00Z|marketing-dwh" for hour in range(3)]


def test_an_unpartitioned_upstream_asset_makes_no_history_due(
    alice: User, gateway: Gateway
) -> None:
    unpartitioned = asset("whole")
    daily = scheduled("daily", by("whole"), DAILY, since=at(2024, 7, 1))
    write(unpartitioned, "", gateway, alice)
    _made_at(unpartitioned, at(2024, 7, 3, 12))
    process_outbox(NOW)
    assert waiting(daily) == ["2024-07-01", "2024-07-02"]


def test_excluded_windows_are_not_waited_for_where_all_of_a_time_is_needed(
    alice: User, gateway: Gateway
) -> None:
    weekdays = PartitionByInterval("@daily", start="2024-07-05", exclude="0 0 * * 6,0")
    spend = asset("spend", PartitionByProduct([weekdays, SEGMENTS]))
    totals = scheduled("totals", by("spend"), SEGMENTS, since=BEGAN)
    write(spend, "2024-07-05|marketing-dwh", gateway, alice)
    process_outbox(at(2024, 7, 9))
    assert waiting(totals) == []
    write(spend, "2024-07-08|marketing-dwh", gateway, alice)
    process_outbox(at(2024, 7, 9))
    assert waiting(totals) == ["marketing-dwh"]


def test_either_of_two_suffices_where_they_are_joined_by_or(alice: User, gateway: Gateway) -> None:
    first, second = asset("one", DAILY), asset("two", DAILY)
    either = scheduled("either", any_of(by("one"), by("two")), DAILY, since=BEGAN)
    write(first, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    assert waiting(either) == ["2024-07-01"]
    make_all(either, gateway)
    process_outbox(NOW)
    assert waiting(either) == []
    write(second, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    assert waiting(either) == ["2024-07-01"]


def test_both_are_needed_where_they_are_joined_by_and(alice: User, gateway: Gateway) -> None:
    first, second = asset("one", DAILY), asset("two", DAILY)
    both = scheduled("both", all_of(by("one"), by("two")), DAILY, since=BEGAN)
    write(first, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    assert waiting(both) == []
    write(second, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    assert waiting(both) == ["2024-07-01"]


def test_expressions_may_be_nested(alice: User, gateway: Gateway) -> None:
    first, second, three = (asset(name, DAILY) for name in ("one", "two", "three"))
    nested = scheduled(
        "nested", any_of(all_of(by("one"), by("two")), by("three")), DAILY, since=BEGAN
    )
    write(first, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    assert waiting(nested) == []
    write(three, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    assert waiting(nested) == ["2024-07-01"]
    make_all(nested, gateway)
    write(second, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    assert waiting(nested) == ["2024-07-01"]


def test_an_unpartitioned_asset_is_due_after_each_upstream_run(
    alice: User, gateway: Gateway
) -> None:
    daily = asset("daily", DAILY)
    report = scheduled("report", by("daily"), since=BEGAN)
    for day in ("2024-07-01", "2024-07-02"):
        write(daily, day, gateway, alice)
        process_outbox(NOW)
        assert waiting(report) == [""]
        make_all(report, gateway)
    assert process_outbox(NOW) == 1  # of the report itself: nothing depends on it
    assert waiting(report) == []


def test_a_re_made_partition_makes_what_follows_due_again_and_nothing_else(
    alice: User, gateway: Gateway
) -> None:
    upstream = asset("one", DAILY)
    second = scheduled("two", by("one"), DAILY, since=BEGAN, upstream={"one": None})
    write(upstream, "2024-07-01..2024-07-02", gateway, alice)
    process_outbox(NOW)
    make_all(second, gateway)
    write(upstream, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    assert waiting(second) == ["2024-07-01"]


def test_partitions_with_the_newest_inputs_are_not_materialized_again(
    alice: User, gateway: Gateway
) -> None:
    upstream = asset("one", DAILY)
    second = scheduled("two", by("one"), DAILY, since=BEGAN, upstream={"one": None})
    write(upstream, "2024-07-01", gateway, alice)
    write(second, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    assert waiting(second) == []


def test_an_asset_that_only_schedules_is_compared_by_its_version_too(
    alice: User, gateway: Gateway
) -> None:
    upstream = asset("one", DAILY)
    second = scheduled("two", by("one"), DAILY, since=BEGAN)
    write(upstream, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    make_all(second, gateway)
    Outbox.objects.create(run=Run.objects.filter(asset=upstream).get())
    process_outbox(NOW)
    assert waiting(second) == []


def test_an_upstream_partition_re_made_while_the_downstream_runs_is_not_missed(
    alice: User, gateway: Gateway
) -> None:
    upstream = asset("one", DAILY)
    second = scheduled("two", by("one"), DAILY, since=BEGAN, upstream={"one": None})
    write(upstream, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    running = begin(Run.objects.get(asset=second), gateway)
    write(upstream, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    assert waiting(second) == []
    finish(running)
    requeue_due(NOW)
    assert waiting(second) == ["2024-07-01"]
    make_all(second, gateway)
    requeue_due(NOW)
    assert waiting(second) == []


def test_a_run_that_began_after_the_upstream_was_re_made_is_enough(
    alice: User, gateway: Gateway
) -> None:
    upstream = asset("one", DAILY)
    second = scheduled("two", by("one"), DAILY, since=BEGAN, upstream={"one": None})
    write(upstream, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    write(upstream, "2024-07-01", gateway, alice)
    process_outbox(NOW)  # the run of two waits in the queue: it will read the newest
    make_all(second, gateway)
    requeue_due(NOW)
    assert waiting(second) == []


def test_two_recorded_at_once_make_due_what_needs_both(alice: User, gateway: Gateway) -> None:
    hourly = asset("hourly", HOURLY)
    scheduled("daily", by("hourly"), DAILY, since=BEGAN)
    write(hourly, "2024-07-01", gateway, alice)
    assert Outbox.objects.count() == 24
    first = Outbox.objects.order_by("id").first()
    assert first is not None
    process_outbox(NOW)
    assert waiting(Asset.objects.get(name="daily")) == ["2024-07-01"]
    assert not Outbox.objects.exists()


def test_a_backfill_makes_nothing_due(alice: User, gateway: Gateway) -> None:
    upstream = asset("one", DAILY)
    second = scheduled("two", by("one"), DAILY, since=BEGAN)
    write(upstream, "2024-07-01", gateway, alice)
    Outbox.objects.all().delete()
    Run.objects.update(trigger=Trigger.BACKFILL)
    from assets_app.execution.queue.settling import _write_outbox

    _write_outbox(Run.objects.get().pk)
    process_outbox(NOW)
    assert waiting(second) == []


def test_a_failed_run_makes_nothing_due(alice: User, gateway: Gateway) -> None:
    from assets_app.execution.request.requests import MaterializeRequest, materialize

    upstream = asset("one", DAILY)
    second = scheduled("two", by("one"), DAILY, since=BEGAN)
    group = materialize(MaterializeRequest(asset=upstream, selection="2024-07-01"), user=alice)
    fail(group.runs.get(), gateway)
    assert process_outbox(NOW) == 0
    assert waiting(second) == []


def test_a_lagging_window_is_due_once_it_is_over(alice: User, gateway: Gateway) -> None:
    upstream = asset("one", DAILY)
    lag = scheduled("lag", by("one"), DAILY, since=BEGAN, upstream={"one": Offset(-1)})
    write(upstream, "2024-07-01", gateway, alice)
    process_outbox(at(2024, 7, 2, 0, 5))
    assert waiting(lag) == []
    assert requeue_due(at(2024, 7, 2, 12)) == 0
    requeue_due(at(2024, 7, 3))
    assert waiting(lag) == ["2024-07-02"]


def test_a_paused_asset_is_not_made(alice: User, gateway: Gateway) -> None:
    upstream = asset("one", DAILY)
    second = scheduled("two", by("one"), DAILY, since=BEGAN)
    Asset.objects.filter(name="two").update(paused=True)
    write(upstream, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    assert waiting(second) == []


def test_layers_follow_one_another(alice: User, gateway: Gateway) -> None:
    upstream = asset("one", DAILY)
    second = scheduled("two", by("one"), DAILY, since=BEGAN, upstream={"one": None})
    three = scheduled("three", by("two"), MONTHLY, since=BEGAN, upstream={"two": None})
    write(upstream, "2024-06", gateway, alice)
    process_outbox(NOW)
    assert len(waiting(second)) == 30
    make_all(second, gateway)
    process_outbox(NOW)
    assert waiting(three) == ["2024-06-01"]


def test_one_write_queues_a_limited_number_of_partitions(
    alice: User, gateway: Gateway, settings: object
) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 5  # type: ignore[attr-defined]
    yearly = asset("yearly", YEARLY)
    monthly = scheduled("monthly", by("yearly"), MONTHLY, since=BEGAN)
    write(yearly, "2023", gateway, alice)
    process_outbox(NOW)
    assert waiting(monthly) == [f"2023-{month:02}-01" for month in range(8, 13)]
    truncation = ScheduleTruncation.objects.get()
    assert (truncation.asset, truncation.count, truncation.queued) == (monthly, 7, 5)
    assert (truncation.first, truncation.last) == ("2023-01-01", "2023-07-01")
    assert (truncation.start, truncation.end, truncation.at) == ("2023-01-01", "2023-07-01", NOW)


def test_the_same_truncation_again_is_one_row_and_is_forgotten_with_the_ticks(
    alice: User, gateway: Gateway, settings: Any
) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 5
    yearly = asset("yearly", YEARLY)
    scheduled("monthly", by("yearly"), MONTHLY, since=BEGAN)
    for hours in (0, 1):
        write(yearly, "2023", gateway, alice)
        process_outbox(NOW + timedelta(hours=hours))
    assert ScheduleTruncation.objects.get().at == NOW + timedelta(hours=1)
    forget_ticks(NOW + timedelta(days=settings.SCHEDULE_TICK_DAYS))
    assert ScheduleTruncation.objects.exists()
    forget_ticks(NOW + timedelta(days=settings.SCHEDULE_TICK_DAYS + 1))
    assert not ScheduleTruncation.objects.exists()


def test_a_write_is_not_cut_for_what_others_have_made_due(
    alice: User, gateway: Gateway, settings: Any
) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 12
    yearly = asset("yearly", YEARLY)
    monthly = scheduled("monthly", by("yearly"), MONTHLY, since=BEGAN)
    for year in ("2021", "2023", "2022"):
        write(yearly, year, gateway, alice)
    process_outbox(NOW)
    months = [f"{year}-{month:02}-01" for year in (2021, 2023, 2022) for month in range(1, 13)]
    assert waiting(monthly) == months
    assert not ScheduleTruncation.objects.exists()


def test_of_several_writes_each_has_its_own_limit(
    alice: User, gateway: Gateway, settings: Any
) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 5
    yearly = asset("yearly", YEARLY)
    monthly = scheduled("monthly", by("yearly"), MONTHLY, since=BEGAN, upstream={"yearly": None})
    for year in ("2022", "2023", "2023"):
        write(yearly, year, gateway, alice)
    process_outbox(NOW)
    due = [f"{year}-{month:02}-01" for year in (2022, 2023) for month in range(8, 13)]
    assert waiting(monthly) == due
    assert [row.count for row in ScheduleTruncation.objects.all()] == [7, 7]
    make_all(monthly, gateway)
    assert requeue_due(NOW) == 0


def test_partitions_due_again_have_no_limit_like_a_write(
    alice: User, gateway: Gateway, settings: Any
) -> None:
    upstream = asset("one", DAILY)
    lag = scheduled("lag", by("one"), DAILY, since=BEGAN, upstream={"one": Offset(-2, -1)})
    write(upstream, "2024-06-30..2024-07-01", gateway, alice)
    process_outbox(at(2024, 7, 1))
    settings.MAX_PARTITIONS_PER_TICK = 0
    requeue_due(NOW)
    assert waiting(lag) == ["2024-07-02"]
    assert not ScheduleTruncation.objects.exists()


def test_a_backfill_upstream_is_no_tick_for_what_alone_has_time(
    alice: User, gateway: Gateway
) -> None:
    totals = asset("totals")
    hourly = scheduled("report", by("totals"), HOURLY, since=at(2024, 6, 30, 23))
    write(totals, "", gateway, alice)
    _made_at(totals, at(2024, 7, 1))
    process_outbox(NOW)
    assert waiting(hourly) == ["2024-06-30T23:00Z"]
    make_all(hourly, gateway)
    write(totals, "", gateway, alice)
    Outbox.objects.all().delete()
    Run.objects.filter(asset=totals, materializations__version=2).update(trigger=Trigger.BACKFILL)
    _made_at(totals, at(2024, 7, 1, 12), version=2)
    write(totals, "", gateway, alice)
    _made_at(totals, at(2024, 7, 2), version=3)
    process_outbox(NOW)
    assert len(waiting(hourly)) == 24


def test_statements_do_not_grow_with_what_was_made(alice: User, gateway: Gateway) -> None:
    upstream = asset("one", DAILY)
    scheduled("two", by("one"), DAILY, since=BEGAN)

    def statements(selection: str) -> int:
        write(upstream, selection, gateway, alice)
        with CaptureQueriesContext(connection) as statements:
            process_outbox(NOW)
        return len(statements)

    assert statements("2024-01-01..2024-01-02") == statements("2024-02")


def test_an_empty_outbox_is_one_statement() -> None:
    with CaptureQueriesContext(connection) as statements:
        process_outbox(NOW)
    assert len(statements) == 1


def _made_at(of: Asset, moment: datetime, version: int = 1) -> None:
    from assets_app.models import Materialization

    Materialization.objects.filter(partition__asset=of, version=version).update(created_at=moment)
    AssetPartition.objects.filter(asset=of, version=version).update(materialized_at=moment)
