"""The partitions that ticks of schedules by time queue, and the reasons of ticks that queue
nothing.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.catalogue.pausing import set_paused
from assets_app.catalogue.timetables import store_schedules
from assets_app.execution.attempt import ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import (
    Asset,
    AssetPartition,
    Gateway,
    PartitionCount,
    Run,
    RunAttempt,
    Schedule,
    ScheduleTick,
    ScheduleTruncation,
    TickReason,
    Trigger,
)
from assets_app.scheduling import ended
from assets_app.scheduling.requeue_due import requeue_due
from assets_app.scheduling.ticking import handle_ticks
from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence
from slicewise.partitions.rows import PartitionRow, partition_rows
from tests.factories import together
from tests.scheduling.scheduled_assets import (
    at,
    begin,
    cron,
    fail,
    make,
    make_all,
    scheduled,
    ticks,
    waiting,
    write,
)

HOURLY = PartitionByInterval("@hourly")
DAILY = PartitionByInterval("@daily")
SEGMENTS = PartitionBySequence(["marketing-dwh", "engineering-dwh"])
pytestmark = pytest.mark.django_db


def began(of: Asset, key: str, when: datetime) -> None:
    """Have the last run that made a partition begun at this time, instead of just now."""
    run = AssetPartition.objects.get(asset=of, key=key).last_run_id
    RunAttempt.objects.filter(run=run).update(started_at=when)


def test_a_daily_schedule_of_hourly_partitions_makes_24_of_them() -> None:
    hourly = scheduled("hourly", cron("@daily"), HOURLY, since=at(2024, 7, 1))
    assert handle_ticks(at(2024, 7, 1, 23, 59)) == 0
    assert handle_ticks(at(2024, 7, 2, 0, 0, 1)) == 1
    assert len(waiting(hourly)) == 24
    assert (waiting(hourly)[0], waiting(hourly)[-1]) == ("2024-07-01T00:00Z", "2024-07-01T23:00Z")
    assert set(Run.objects.values_list("trigger", flat=True)) == {Trigger.SCHEDULE}


def test_an_hourly_schedule_of_daily_partitions_records_23_ticks_that_make_nothing() -> None:
    daily = scheduled("daily", cron("@hourly"), DAILY, since=at(2024, 7, 1))
    for hour in range(1, 26):
        handle_ticks(at(2024, 7, 1) + timedelta(hours=hour, seconds=1))
    assert waiting(daily) == ["2024-07-01"]
    assert ticks(daily) == [
        (TickReason.NOTHING_ENDED, 23, 0),
        ("", 1, 1),
        (TickReason.NOTHING_ENDED, 1, 0),
    ]


def test_activating_an_asset_makes_nothing_of_its_history_due() -> None:
    old = scheduled(
        "old", cron("@daily"), PartitionByInterval("@daily", start="2013-01-01"),
        since=at(2024, 7, 1, 12),
    )  # fmt: skip
    handle_ticks(at(2024, 7, 1, 13))
    assert waiting(old) == []
    handle_ticks(at(2024, 7, 2))
    assert waiting(old) == ["2024-07-01"]


def test_after_downtime_the_next_tick_makes_all_that_ended_meanwhile() -> None:
    hourly = scheduled("hourly", cron("@hourly"), HOURLY, since=at(2024, 7, 1))
    handle_ticks(at(2024, 7, 1, 5, 30))
    assert waiting(hourly) == [f"2024-07-01T0{hour}:00Z" for hour in range(5)]
    assert ticks(hourly) == [("", 5, 5)]
    assert Schedule.objects.get().next_at == at(2024, 7, 1, 6)


def test_more_than_one_tick_may_queue_comes_with_the_next_ones(settings: object) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 10  # type: ignore[attr-defined]
    hourly = scheduled("hourly", cron("@daily"), HOURLY, since=at(2024, 7, 1))
    for _ in range(4):
        handle_ticks(at(2024, 7, 2))
    assert len(waiting(hourly)) == 24
    assert [queued for _, _, queued in ticks(hourly)] == [10, 10, 4]


def test_a_partition_made_by_hand_is_not_made_again(alice: User, gateway: Gateway) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    materialize(MaterializeRequest(asset=daily, selection="2024-07-01"), user=alice)
    make_all(daily, gateway)
    handle_ticks(at(2024, 7, 2))
    assert waiting(daily) == []
    assert ticks(daily) == [(TickReason.EXISTS, 1, 0)]


def test_partitions_without_window_are_queued_at_every_tick(gateway: Gateway) -> None:
    unpartitioned = scheduled("whole", cron("@hourly"), since=at(2024, 7, 1))
    spend = scheduled("spend", cron("@hourly"), SEGMENTS, since=at(2024, 7, 1))
    for hour in range(1, 6):
        handle_ticks(at(2024, 7, 1, hour))
        assert waiting(unpartitioned) == [""], f"at {hour}:00"
        assert waiting(spend) == ["marketing-dwh", "engineering-dwh"], f"at {hour}:00"
        make_all(unpartitioned, gateway)
        make_all(spend, gateway)
    assert ticks(unpartitioned) == ticks(unpartitioned)[:1] * 5
    assert set(AssetPartition.objects.values_list("version", flat=True)) == {5}


def test_a_segment_made_by_hand_since_the_tick_before_is_left_out_once(
    alice: User, gateway: Gateway
) -> None:
    spend = scheduled("spend", cron("@daily"), SEGMENTS, since=at(2024, 7, 1))
    handle_ticks(at(2024, 7, 2))
    make_all(spend, gateway)
    write(spend, "marketing-dwh", gateway, alice)
    began(spend, "marketing-dwh", at(2024, 7, 2, 1))
    handle_ticks(at(2024, 7, 3))
    assert waiting(spend) == ["engineering-dwh"]
    assert ScheduleTick.objects.latest("at").existing == 1
    make_all(spend, gateway)
    handle_ticks(at(2024, 7, 4))
    assert waiting(spend) == ["marketing-dwh", "engineering-dwh"]


def test_a_tick_queues_partitions_of_a_manual_run_that_began_before_the_tick(
    alice: User, gateway: Gateway
) -> None:
    unpartitioned = scheduled("whole", cron("@hourly"), since=at(2024, 7, 1))
    materialize(MaterializeRequest(asset=unpartitioned), user=alice)
    handle_ticks(at(2024, 7, 1, 1))
    assert ticks(unpartitioned) == [(TickReason.IN_FLIGHT, 1, 0)]
    make_all(unpartitioned, gateway)
    began(unpartitioned, "", at(2024, 7, 1, 0, 50))
    requeue_due(at(2024, 7, 1, 1))
    fail(Run.objects.get(state="queued"), gateway)
    handle_ticks(at(2024, 7, 1, 2))
    assert waiting(unpartitioned) == [""]


def test_an_unpartitioned_asset_is_queued_once_a_tick() -> None:
    unpartitioned = scheduled("whole", cron("@hourly"), since=at(2024, 7, 1))
    handle_ticks(at(2024, 7, 1, 3))
    assert waiting(unpartitioned) == [""]


def test_a_product_makes_each_segment_of_what_ended() -> None:
    both = scheduled(
        "both", cron("@daily"), PartitionByProduct([HOURLY, SEGMENTS]), since=at(2024, 7, 1)
    )
    handle_ticks(at(2024, 7, 2))
    assert len(waiting(both)) == 48


def test_the_last_partitions_are_made_again_where_they_are_there(gateway: Gateway) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1), refresh=2)
    handle_ticks(at(2024, 7, 2))
    make_all(daily, gateway)
    handle_ticks(at(2024, 7, 3))
    assert waiting(daily) == ["2024-07-01", "2024-07-02"]
    make_all(daily, gateway)
    handle_ticks(at(2024, 7, 4))
    assert waiting(daily) == ["2024-07-01", "2024-07-02", "2024-07-03"]


MINUTELY = PartitionByInterval("* * * * *", start="2000-01-01")


def test_a_tick_refreshes_a_limited_number_of_partitions_and_names_the_left_out_ones(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 100
    listed: list[int] = []

    def list_rows(*arguments: Any) -> Iterator[PartitionRow]:
        if arguments[1] is not None:
            listed.append(len(arguments[1]))
            assert listed[-1] <= 100
        return partition_rows(*arguments)

    monkeypatch.setattr(ended, "partition_rows", list_rows)
    old = scheduled("old", cron("@hourly"), MINUTELY, since=at(2024, 7, 1), refresh=10**9)
    daily = scheduled("daily", cron("@hourly"), DAILY, since=at(2024, 6, 30, 23, 30), refresh=1)
    assert handle_ticks(at(2024, 7, 1, 1)) == 2
    assert sum(listed) == 60 + 100 + 1 + 1
    assert len(waiting(old)) == 60
    assert waiting(daily) == ["2024-06-30"]
    truncation = ScheduleTruncation.objects.get()
    assert (truncation.asset, truncation.queued) == (old, 100)
    assert truncation.first == "2000-01-01T00:00Z"
    assert truncation.last == "2024-06-30T22:19Z"
    minutes = (at(2024, 7, 1) - at(2000, 1, 1)) // timedelta(minutes=1)
    assert truncation.count == minutes - 100


def test_refreshed_partitions_are_limited_by_whole_windows(settings: Any) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 5
    both = PartitionByProduct([PartitionByInterval("@daily", start="2024-06-01"), SEGMENTS])
    scheduled("both", cron("@daily"), both, since=at(2024, 7, 1), refresh=4)
    handle_ticks(at(2024, 7, 2))
    truncation = ScheduleTruncation.objects.get()
    assert (truncation.queued, truncation.count) == (4, 4)


def test_only_the_latest_is_made_where_that_is_wanted_and_the_others_are_skipped() -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1), pending="latest")
    handle_ticks(at(2024, 7, 5))
    assert waiting(daily) == ["2024-07-04"]
    skipped = AssetPartition.objects.filter(state="skipped").values_list("key", flat=True)
    assert sorted(skipped) == ["2024-07-01", "2024-07-02", "2024-07-03"]
    assert PartitionCount.objects.get(state="skipped").count == 3
    assert ScheduleTick.objects.get().superseded == 3


def test_only_the_latest_is_made_if_more_ended_than_one_tick_queues(settings: Any) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 10
    daily = cron("@daily")
    hourly = scheduled("hourly", daily, HOURLY, since=at(2024, 7, 1), pending="latest")
    for _ in range(4):
        handle_ticks(at(2024, 7, 2))
    assert waiting(hourly) == ["2024-07-01T23:00Z"]
    assert AssetPartition.objects.filter(state="skipped").count() == 23
    assert [tick.superseded for tick in ScheduleTick.objects.order_by("id")] == [10, 10, 3]
    assert {tick.reason for tick in ScheduleTick.objects.all()} == {""}


def test_superseded_partitions_are_skipped_of_all_assets_that_are_made_together() -> None:
    options = {"schedule": cron("@daily"), "pending": "latest"}
    both = together("both", ["one", "two"], DAILY, options=options)
    assert both[0].producer is not None
    store_schedules([both[0].producer], now=at(2024, 7, 1))
    handle_ticks(at(2024, 7, 4))
    for outlet in both:
        skipped = AssetPartition.objects.filter(asset=outlet, state="skipped")
        assert sorted(skipped.values_list("key", flat=True)) == ["2024-07-01", "2024-07-02"]
        assert PartitionCount.objects.get(asset=outlet, state="skipped").count == 2
    assert ScheduleTick.objects.get().superseded == 2


def test_a_transaction_skips_no_more_partitions_of_many_outlets_than_of_one(
    settings: Any,
) -> None:
    settings.MAX_PARTITIONS_PER_TICK = settings.MAX_PARTITIONS_PER_TRANSACTION = 40
    options = {"schedule": cron("@daily"), "pending": "latest"}
    outlets = together("many", [f"outlet_{n}" for n in range(4)], HOURLY, options=options)
    assert outlets[0].producer is not None
    store_schedules([outlets[0].producer], now=at(2024, 7, 1))
    handle_ticks(at(2024, 7, 2))
    assert AssetPartition.objects.count() == 40
    while handle_ticks(at(2024, 7, 2)):
        pass
    assert AssetPartition.objects.filter(state="skipped").count() == 4 * 23
    assert waiting(outlets[0]) == ["2024-07-01T23:00Z"]


def test_a_partition_that_the_definition_has_lost_is_not_queued_again() -> None:
    daily = PartitionByProduct([DAILY, SEGMENTS])
    both = scheduled("both", cron("@daily"), daily, since=at(2024, 7, 1))
    window = {"window_start": at(2024, 6, 30), "window_end": at(2024, 7, 1), "due_again": True}
    for segment in ("marketing-dwh", "sales-dwh"):
        key = f"2024-06-30|{segment}"
        AssetPartition.objects.create(
            asset=both, identity=both.identity, key=key, segment=segment, **window
        )
    assert requeue_due(at(2024, 7, 1)) == 2
    assert waiting(both) == ["2024-06-30|marketing-dwh"]
    assert not AssetPartition.objects.filter(due_again=True).exists()


def test_a_range_asset_makes_all_that_ended_in_one_run() -> None:
    hourly = scheduled("hourly", cron("@daily"), HOURLY, since=at(2024, 7, 1), strategy="range")
    handle_ticks(at(2024, 7, 2))
    assert waiting(hourly) == ["2024-07-01T00:00Z..2024-07-01T23:00Z"]


def test_an_asset_that_was_paused_before_its_schedule_was_there_makes_nothing() -> None:
    both = together("both", ["one", "two"], DAILY, options={"schedule": cron("@daily")})
    producer = both[0].producer
    assert producer is not None
    store_schedules([producer], now=at(2024, 7, 1))
    Asset.objects.filter(name="two").update(paused=True)
    assert handle_ticks(at(2024, 7, 3)) == 0
    assert Schedule.objects.get().next_at is None
    assert not Run.objects.exists()


def test_a_paused_asset_makes_nothing_and_unpausing_does_not_catch_up(alice: User) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    set_paused(daily, True, user=alice)
    assert handle_ticks(at(2024, 7, 3)) == 0
    set_paused(daily, False, user=alice)
    schedule = Schedule.objects.get()
    assert schedule.next_at is not None
    assert schedule.next_at > at(2026, 1, 1)  # from now on, whenever that is
    assert handle_ticks(at(2024, 7, 3)) == 0


def test_a_schedule_ticks_between_its_dates(gateway: Gateway) -> None:
    bounded = scheduled(
        "bounded", cron("@daily"), DAILY, since=at(2024, 7, 1),
        start_date="2024-07-03T00:00:00+00:00", end_date="2024-07-04T00:00:00+00:00",
    )  # fmt: skip
    handle_ticks(at(2024, 7, 2))
    assert waiting(bounded) == []
    handle_ticks(at(2024, 8, 1))
    assert waiting(bounded) == ["2024-07-01", "2024-07-02", "2024-07-03"]
    assert Schedule.objects.get().next_at is None


def test_a_changed_schedule_goes_on_from_where_the_old_one_was() -> None:
    daily = scheduled("daily", cron("@daily"), HOURLY, since=at(2024, 7, 1))
    producer = daily.producer
    assert producer is not None
    assert producer.current_version is not None
    version = producer.current_version
    version.definition = version.definition | {"schedule": cron("@hourly")}
    store_schedules([producer], now=at(2024, 7, 1, 5, 30))
    producer.current_version.save()
    handle_ticks(at(2024, 7, 1, 6))
    assert len(waiting(daily)) == 6


def test_partitions_due_while_a_run_holds_them_are_queued_when_that_run_fails(
    alice: User, gateway: Gateway
) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    group = materialize(MaterializeRequest(asset=daily, selection="2024-07-01"), user=alice)
    attempt = begin(group.runs.get(), gateway)
    handle_ticks(at(2024, 7, 2))
    assert waiting(daily) == []
    assert ticks(daily) == [(TickReason.IN_FLIGHT, 1, 0)]
    assert requeue_due(at(2024, 7, 2)) == 0
    assert ending.fail(attempt.row, Failure(error="ValueError: no"))
    assert requeue_due(at(2024, 7, 2)) == 1
    assert waiting(daily) == ["2024-07-01"]


def test_partitions_due_while_a_run_holds_them_are_not_materialized_twice(
    alice: User, gateway: Gateway
) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    group = materialize(MaterializeRequest(asset=daily, selection="2024-07-01"), user=alice)
    handle_ticks(at(2024, 7, 2))
    make(group.runs.get(), gateway)
    assert requeue_due(at(2024, 7, 2)) == 1
    assert waiting(daily) == []


def test_held_partitions_to_refresh_are_queued_when_the_holding_run_is_canceled(
    alice: User, gateway: Gateway
) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1), refresh=1)
    handle_ticks(at(2024, 7, 2))
    make_all(daily, gateway)
    group = materialize(MaterializeRequest(asset=daily, selection="2024-07-01"), user=alice)
    handle_ticks(at(2024, 7, 3))
    make(Run.objects.get(selection="2024-07-02"), gateway)
    cancel_run(group.runs.get(), user=alice)
    requeue_due(at(2024, 7, 3))
    assert waiting(daily) == ["2024-07-01"]


def test_partitions_of_which_one_outlet_is_held_stay_due(gateway: Gateway) -> None:
    both = together("both", ["one", "two"], DAILY, options={"schedule": cron("@daily")})
    assert both[0].producer is not None
    store_schedules([both[0].producer], now=at(2024, 7, 1))
    handle_ticks(at(2024, 7, 2))
    fail(Run.objects.get(), gateway)
    # One outlet came due, and a run of something else has the other just then.
    AssetPartition.objects.filter(asset=both[0]).update(due_again=True)
    other_asset = scheduled("other", cron("@daily"), since=at(2024, 7, 1))
    handle_ticks(at(2024, 7, 2))
    holder = Run.objects.get(asset=other_asset)
    AssetPartition.objects.filter(asset=both[1]).update(held_by=holder)
    assert requeue_due(at(2024, 7, 2)) == 1
    assert waiting(both[0]) == []
    AssetPartition.objects.filter(asset=both[1]).update(held_by=None)
    assert requeue_due(at(2024, 7, 2)) == 1
    assert Run.objects.filter(state="queued", asset__in=both).count() == 1


def test_the_whole_that_came_due_while_it_was_made_is_made_once_more(gateway: Gateway) -> None:
    unpartitioned = scheduled("whole", cron("@hourly"), since=at(2024, 7, 1))
    handle_ticks(at(2024, 7, 1, 1))
    first = Run.objects.get()
    handle_ticks(at(2024, 7, 1, 2))
    make(first, gateway)
    requeue_due(at(2024, 7, 1, 2))
    assert waiting(unpartitioned) == [""]
    assert Run.objects.count() == 2


def test_a_tick_handled_twice_makes_nothing_twice() -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    handle_ticks(at(2024, 7, 2))
    assert handle_ticks(at(2024, 7, 2)) == 0
    assert len(waiting(daily)) == 1


def test_a_failed_scheduled_run_is_not_due_by_itself(gateway: Gateway) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    handle_ticks(at(2024, 7, 2))
    fail(Run.objects.get(), gateway)
    handle_ticks(at(2024, 7, 3))
    assert waiting(daily) == ["2024-07-02"]


def test_statements_do_not_grow_with_schedules() -> None:
    def statements(many: int, day: int) -> int:
        for number in range(many):
            scheduled(f"a{day}-{number}", cron("@daily"), DAILY, since=at(2024, 7, day))
        with CaptureQueriesContext(connection) as statements:
            assert handle_ticks(at(2024, 7, day + 1)) >= many
        return len(statements)

    assert statements(3, 1) == statements(40, 2)


def test_schedules_of_one_hour_keep_what_is_their_own() -> None:
    assets_by_name = {
        "days": scheduled("days", cron("@daily"), DAILY, since=at(2024, 7, 1)),
        "more_days": scheduled("more_days", cron("@daily"), DAILY, since=at(2024, 6, 29)),
        "hours": scheduled("hours", cron("@daily"), HOURLY, since=at(2024, 7, 1)),
        "last_hour": scheduled(
            "last_hour", cron("@daily"), HOURLY, since=at(2024, 7, 1), pending="latest"
        ),
        "segments": scheduled("segments", cron("@daily"), SEGMENTS, since=at(2024, 7, 1)),
        "whole": scheduled("whole", cron("@daily"), since=at(2024, 7, 1)),
    }
    assert handle_ticks(at(2024, 7, 2)) == len(assets_by_name)
    waiting_keys = {name: waiting(asset) for name, asset in assets_by_name.items()}
    assert len(waiting_keys.pop("hours")) == 24
    assert waiting_keys == {
        "days": ["2024-07-01"],
        "more_days": ["2024-06-29", "2024-06-30", "2024-07-01"],
        "last_hour": ["2024-07-01T23:00Z"],
        "segments": ["marketing-dwh", "engineering-dwh"],
        "whole": [""],
    }


def test_nothing_due_is_one_statement() -> None:
    scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    with CaptureQueriesContext(connection) as statements:
        handle_ticks(at(2024, 7, 1, 1))
    assert len(statements) == 1
