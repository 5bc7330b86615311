"""What the ticks of schedules by time queue, and what they say where they queue nothing."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.catalogue.services import set_paused
from assets_app.catalogue.timetables import store_schedules
from assets_app.execution import ending
from assets_app.execution.ending import Failure
from assets_app.execution.requests import MaterializeRequest, materialize
from assets_app.models import (
    Asset,
    AssetPartition,
    Gateway,
    PartitionCount,
    Run,
    Schedule,
    ScheduleTick,
    TickReason,
    Trigger,
)
from assets_app.scheduling.again import queue_again
from assets_app.scheduling.ticking import handle_ticks
from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence
from tests.cast import together
from tests.scheduling.scenes import at, begin, cron, fail, make, make_all, scheduled, waiting

HOURLY = PartitionByInterval("@hourly")
DAILY = PartitionByInterval("@daily")
SEGMENTS = PartitionBySequence(["marketing-dwh", "engineering-dwh"])
pytestmark = pytest.mark.django_db


def ticks(of: Asset) -> list[tuple[str, int, int]]:
    """Reason, count and partitions queued of each row, the first one first."""
    rows = ScheduleTick.objects.filter(schedule__producer=of.producer).order_by("at")
    return [(row.reason, row.count, row.queued) for row in rows]


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


def test_segments_are_made_at_each_tick_unless_made_since_the_last(
    alice: User, gateway: Gateway
) -> None:
    spend = scheduled("spend", cron("@daily"), SEGMENTS, since=at(2024, 7, 1))
    handle_ticks(at(2024, 7, 2))
    assert waiting(spend) == ["marketing-dwh", "engineering-dwh"]
    make_all(spend, gateway)
    AssetPartition.objects.filter(key="marketing-dwh").update(materialized_at=at(2024, 7, 2, 1))
    AssetPartition.objects.filter(key="engineering-dwh").update(materialized_at=at(2024, 7, 1, 23))
    handle_ticks(at(2024, 7, 3))
    assert waiting(spend) == ["engineering-dwh"]


def test_what_is_not_partitioned_is_made_once_a_tick() -> None:
    whole = scheduled("whole", cron("@hourly"), since=at(2024, 7, 1))
    handle_ticks(at(2024, 7, 1, 3))
    assert waiting(whole) == [""]


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


def test_only_the_latest_is_made_where_that_is_wanted_and_the_others_are_skipped() -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1), pending="latest")
    handle_ticks(at(2024, 7, 5))
    assert waiting(daily) == ["2024-07-04"]
    skipped = AssetPartition.objects.filter(state="skipped").values_list("key", flat=True)
    assert sorted(skipped) == ["2024-07-01", "2024-07-02", "2024-07-03"]
    assert PartitionCount.objects.get(state="skipped").count == 3
    assert ScheduleTick.objects.get().passed_over == 3


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
    producer.current_version.definition["schedule"] = cron("@hourly")
    store_schedules([producer], now=at(2024, 7, 1, 5, 30))
    producer.current_version.save()
    handle_ticks(at(2024, 7, 1, 6))
    assert len(waiting(daily)) == 6


def test_what_comes_due_while_a_run_holds_it_is_made_when_that_run_fails(
    alice: User, gateway: Gateway
) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    group = materialize(MaterializeRequest(asset=daily, selection="2024-07-01"), user=alice)
    begun = begin(group.runs.get(), gateway)
    handle_ticks(at(2024, 7, 2))
    assert waiting(daily) == []
    assert ticks(daily) == [(TickReason.IN_FLIGHT, 1, 0)]
    assert queue_again(at(2024, 7, 2)) == 0
    assert ending.fail(begun.row, Failure(error="ValueError: no"))
    assert queue_again(at(2024, 7, 2)) == 1
    assert waiting(daily) == ["2024-07-01"]


def test_what_comes_due_while_a_run_holds_it_is_not_made_twice(
    alice: User, gateway: Gateway
) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    group = materialize(MaterializeRequest(asset=daily, selection="2024-07-01"), user=alice)
    handle_ticks(at(2024, 7, 2))
    make(group.runs.get(), gateway)
    assert queue_again(at(2024, 7, 2)) == 1
    assert waiting(daily) == []


def test_the_whole_that_came_due_while_it_was_made_is_made_once_more(gateway: Gateway) -> None:
    whole = scheduled("whole", cron("@hourly"), since=at(2024, 7, 1))
    handle_ticks(at(2024, 7, 1, 1))
    first = Run.objects.get()
    handle_ticks(at(2024, 7, 1, 2))
    make(first, gateway)
    queue_again(at(2024, 7, 1, 2))
    assert waiting(whole) == [""]
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
        with CaptureQueriesContext(connection) as seen:
            assert handle_ticks(at(2024, 7, day + 1)) >= many
        return len(seen)

    assert statements(3, 1) == statements(40, 2)


def test_schedules_of_one_hour_keep_what_is_their_own() -> None:
    made = {
        "days": scheduled("days", cron("@daily"), DAILY, since=at(2024, 7, 1)),
        "more_days": scheduled("more_days", cron("@daily"), DAILY, since=at(2024, 6, 29)),
        "hours": scheduled("hours", cron("@daily"), HOURLY, since=at(2024, 7, 1)),
        "last_hour": scheduled(
            "last_hour", cron("@daily"), HOURLY, since=at(2024, 7, 1), pending="latest"
        ),
        "segments": scheduled("segments", cron("@daily"), SEGMENTS, since=at(2024, 7, 1)),
        "whole": scheduled("whole", cron("@daily"), since=at(2024, 7, 1)),
    }
    assert handle_ticks(at(2024, 7, 2)) == len(made)
    found = {name: waiting(asset) for name, asset in made.items()}
    assert len(found.pop("hours")) == 24
    assert found == {
        "days": ["2024-07-01"],
        "more_days": ["2024-06-29", "2024-06-30", "2024-07-01"],
        "last_hour": ["2024-07-01T23:00Z"],
        "segments": ["marketing-dwh", "engineering-dwh"],
        "whole": [""],
    }


def test_nothing_due_is_one_statement() -> None:
    scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    with CaptureQueriesContext(connection) as seen:
        handle_ticks(at(2024, 7, 1, 1))
    assert len(seen) == 1
