"""Schedules that join times and assets: the instants at which partitions are due."""

from datetime import datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.catalogue.timetables import pause_schedule, store_schedules
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import (
    Asset,
    AssetPartition,
    Gateway,
    Materialization,
    Outbox,
    Run,
    RunAttempt,
    Schedule,
    Target,
    TickReason,
    Trigger,
)
from assets_app.scheduling import joined_ticks, queueing
from assets_app.scheduling.missed import Missed, missed_by
from assets_app.scheduling.outbox import process_outbox
from assets_app.scheduling.partition_marks import PartitionsLocked
from assets_app.scheduling.progress import progress_of
from assets_app.scheduling.requeue_due import requeue_due
from assets_app.scheduling.ticking import handle_ticks
from slicewise import (
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
)
from tests.factories import asset, together
from tests.scheduling.beats import look, written
from tests.scheduling.scheduled_assets import (
    all_of,
    any_of,
    at,
    begin,
    by,
    cron,
    every,
    fail,
    finish,
    make_all,
    scheduled,
    ticks,
    waiting,
    write,
)

HOURLY = PartitionByInterval("@hourly", start="2024-01-01")
DAILY = PartitionByInterval("@daily", start="2024-01-01")
BERLIN = PartitionByInterval("@daily", timezone="Europe/Berlin", start="2024-01-01")
SEGMENTS = PartitionBySequence(["north", "south"])
BEGAN = at(2024, 7, 1)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
pytestmark = pytest.mark.django_db


def made_at(of: Asset, gateway: Gateway, when: datetime) -> None:
    """Bring the waiting runs of an asset to their success, as if the runs had begun at a moment."""
    runs = list(Run.objects.filter(asset=of, state="queued").values_list("pk", flat=True))
    make_all(of, gateway)
    RunAttempt.objects.filter(run__in=runs).update(started_at=when)


# ---------------------------------------------------------------- a | time


def test_either_is_due_by_the_asset_before_the_tick(alice: User, gateway: Gateway) -> None:
    up = asset("up", DAILY)
    either = scheduled("either", any_of(by("up"), cron("0 6 * * *")), DAILY, since=BEGAN)
    written(up, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    assert waiting(either) == ["2024-07-01"]
    assert Run.objects.get(asset=either).trigger == Trigger.UPSTREAM
    make_all(either, gateway)
    look(at(2024, 7, 2, 6))
    assert waiting(either) == []
    assert ticks(either)[1:] == [(TickReason.EXISTS, 1, 0)]


def test_either_is_due_by_the_tick_where_the_asset_is_late(alice: User, gateway: Gateway) -> None:
    up = asset("up", DAILY)
    either = scheduled("either", any_of(by("up"), cron("0 6 * * *")), DAILY, since=BEGAN)
    look(at(2024, 7, 2, 5, 59))
    assert waiting(either) == []
    look(at(2024, 7, 2, 6))
    assert waiting(either) == ["2024-07-01"]
    run = Run.objects.select_related("tick").get(asset=either)
    assert run.trigger == Trigger.SCHEDULE
    assert run.tick is not None
    assert run.tick.at == at(2024, 7, 2, 6)
    make_all(either, gateway)
    # What comes late is new, and makes it again; later ticks do not.
    look(at(2024, 7, 3, 5))
    assert waiting(either) == []
    written(up, "2024-07-01", at(2024, 7, 3, 5, 30), gateway, alice)
    assert waiting(either) == ["2024-07-01"]


def test_a_tick_makes_each_window_due_once(gateway: Gateway) -> None:
    asset("up", DAILY)
    either = scheduled("either", any_of(by("up"), cron("@hourly")), DAILY, since=BEGAN)
    look(at(2024, 7, 2))
    fail(Run.objects.get(asset=either), gateway)
    for hour in range(1, 4):
        look(at(2024, 7, 2, hour))
    assert waiting(either) == []
    assert ticks(either) == [("", 24, 1), (TickReason.NOTHING_ENDED, 3, 0)]


def test_a_weekly_tick_makes_all_windows_of_the_week_beside_a_daily_one() -> None:
    asset("up", DAILY)
    joined = scheduled(
        "joined", any_of(all_of(by("up"), cron("@daily")), cron("@weekly")), DAILY, since=BEGAN
    )
    for day in range(2, 8):
        look(at(2024, 7, day) - HOUR)
        look(at(2024, 7, day))
    # Sunday 7 July is the first weekly tick.
    assert waiting(joined) == [f"2024-07-0{day}" for day in range(1, 7)]


# ---------------------------------------------------------------- a & time


def test_both_are_due_at_the_first_tick_at_which_the_asset_is_materialized(
    alice: User, gateway: Gateway
) -> None:
    up = asset("up", DAILY)
    both = scheduled("both", all_of(by("up"), cron("0 6 * * *")), DAILY, since=BEGAN)
    written(up, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    assert waiting(both) == []
    look(at(2024, 7, 2, 6))
    assert waiting(both) == ["2024-07-01"]
    assert Run.objects.get(asset=both).trigger == Trigger.SCHEDULE
    assert ticks(both)[1:] == [("", 1, 1)]
    make_all(both, gateway)
    # After its first tick it waits for the next one.
    look(at(2024, 7, 3, 6))
    assert waiting(both) == []
    assert ticks(both)[2:] == [(TickReason.UPSTREAM, 1, 0)]
    written(up, "2024-07-02", at(2024, 7, 3, 7), gateway, alice)
    look(at(2024, 7, 4, 5, 59))
    assert waiting(both) == []
    look(at(2024, 7, 4, 6))
    assert waiting(both) == ["2024-07-02"]
    assert Run.objects.get(asset=both, state="queued").tick is not None


def test_partitions_materialized_again_upstream_count_at_the_next_tick(
    alice: User, gateway: Gateway
) -> None:
    up = asset("up", DAILY)
    both = scheduled(
        "both", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN, upstream={"up": None}
    )
    written(up, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    look(at(2024, 7, 3))
    made_at(both, gateway, at(2024, 7, 3))
    look(at(2024, 7, 4))
    assert waiting(both) == []
    for hour in (1, 2):
        written(up, "2024-07-01", at(2024, 7, 4, hour), gateway, alice)
        assert waiting(both) == []
    look(at(2024, 7, 5))
    assert waiting(both) == ["2024-07-01"]


def test_ticks_for_which_the_rest_does_not_hold_are_one_line() -> None:
    asset("up", DAILY)
    both = scheduled("both", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    for day in range(2, 6):
        look(at(2024, 7, day))
    assert ticks(both) == [(TickReason.UPSTREAM, 4, 0)]


def test_a_write_that_was_recorded_before_a_tick_and_evaluated_after_it_is_in_time(
    alice: User, gateway: Gateway
) -> None:
    up = asset("up", DAILY)
    both = scheduled("both", all_of(by("up"), cron("0 6 * * *")), DAILY, since=BEGAN)
    look(at(2024, 7, 2, 6))
    write(up, "2024-07-01", gateway, alice)
    Materialization.objects.update(created_at=at(2024, 7, 3, 5, 59, 59))
    handle_ticks(at(2024, 7, 3, 6))
    process_outbox(at(2024, 7, 3, 6, 0, 1))
    assert waiting(both) == ["2024-07-01"]


def test_a_window_that_is_not_over_waits_for_its_end_and_then_for_a_tick(
    alice: User, gateway: Gateway
) -> None:
    up = asset("up")
    both = scheduled("both", all_of(by("up"), cron("0 6 * * *")), DAILY, since=BEGAN)
    written(up, "", at(2024, 7, 1, 12), gateway, alice)
    look(at(2024, 7, 2))
    assert waiting(both) == []
    look(at(2024, 7, 2, 6))
    assert waiting(both) == ["2024-07-01"]


def test_two_times_are_met_once_both_have_ticked() -> None:
    both = scheduled("both", all_of(cron("@daily"), cron("30 12 * * *")), DAILY, since=BEGAN)
    look(at(2024, 7, 2))
    assert waiting(both) == []
    look(at(2024, 7, 2, 12, 30))
    assert waiting(both) == ["2024-07-01"]
    look(at(2024, 7, 3))
    assert waiting(both) == ["2024-07-01"]


def test_a_part_waits_for_its_own_time_and_for_no_other(alice: User, gateway: Gateway) -> None:
    first, second = asset("one", DAILY), asset("two", DAILY)
    joined = scheduled(
        "joined",
        any_of(all_of(by("one"), cron("@daily")), all_of(by("two"), cron("0 * * * *"))),
        DAILY, since=BEGAN,
    )  # fmt: skip
    written(first, "2024-07-01", at(2024, 7, 2, 0, 30), gateway, alice)
    look(at(2024, 7, 2, 1))
    assert waiting(joined) == []
    written(second, "2024-07-01", at(2024, 7, 2, 1, 30), gateway, alice)
    look(at(2024, 7, 2, 2))
    assert waiting(joined) == ["2024-07-01"]


def test_an_asset_beside_a_part_with_a_time_makes_due_by_itself(
    alice: User, gateway: Gateway
) -> None:
    first, second = asset("one", DAILY), asset("two", DAILY)
    joined = scheduled(
        "joined", any_of(by("one"), all_of(by("two"), cron("@daily"))), DAILY, since=BEGAN
    )
    written(second, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    assert waiting(joined) == []
    written(first, "2024-07-01", at(2024, 7, 2, 2), gateway, alice)
    assert waiting(joined) == ["2024-07-01"]


# ---------------------------------------------------------------- without windows


def test_partitions_without_window_are_due_at_each_tick_where_a_time_alone_suffices(
    alice: User, gateway: Gateway
) -> None:
    up = asset("up")
    unpartitioned = scheduled(
        "whole", any_of(by("up"), cron("@daily")), since=BEGAN, upstream={"up": None}
    )
    for day in (2, 3):
        look(at(2024, 7, day))
        assert waiting(unpartitioned) == [""], day
        made_at(unpartitioned, gateway, at(2024, 7, day))
        look(at(2024, 7, day, 1))
        assert waiting(unpartitioned) == []
    written(up, "", at(2024, 7, 3, 2), gateway, alice)
    assert waiting(unpartitioned) == [""]
    assert Run.objects.get(asset=unpartitioned, state="queued").trigger == Trigger.UPSTREAM


def test_partitions_without_window_are_due_at_a_tick_where_the_asset_has_a_new_version(
    alice: User, gateway: Gateway
) -> None:
    up = asset("up", DAILY)
    segments = scheduled(
        "segments", all_of(by("up"), every(6 * HOUR)), SEGMENTS, since=BEGAN, upstream={"up": None}
    )
    look(at(2024, 7, 1, 6))
    assert waiting(segments) == []
    written(up, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    assert waiting(segments) == []
    look(at(2024, 7, 2, 6))
    assert waiting(segments) == ["north", "south"]
    made_at(segments, gateway, at(2024, 7, 2, 6))
    look(at(2024, 7, 2, 12))
    assert waiting(segments) == []


def test_a_tick_during_a_run_makes_what_has_no_window_once_more(gateway: Gateway) -> None:
    asset("up")
    unpartitioned = scheduled("whole", any_of(by("up"), cron("@hourly")), since=BEGAN)
    look(at(2024, 7, 1, 1))
    run = Run.objects.get(asset=unpartitioned)
    attempt = begin(run, gateway)
    Run.objects.update(created_at=at(2024, 7, 1, 1))
    RunAttempt.objects.filter(run=run).update(started_at=at(2024, 7, 1, 1))
    look(at(2024, 7, 1, 2))
    assert ticks(unpartitioned) == [("", 1, 1), (TickReason.IN_FLIGHT, 1, 0)]
    finish(attempt)
    look(at(2024, 7, 1, 2, 10))
    assert waiting(unpartitioned) == [""]
    made_at(unpartitioned, gateway, at(2024, 7, 1, 2, 10))
    look(at(2024, 7, 1, 2, 20))
    assert waiting(unpartitioned) == []


def test_a_run_that_began_after_the_tick_is_the_one_that_the_tick_asks_for(
    gateway: Gateway,
) -> None:
    asset("up")
    unpartitioned = scheduled("whole", any_of(by("up"), cron("@hourly")), since=BEGAN)
    look(at(2024, 7, 1, 1))
    look(at(2024, 7, 1, 2))
    made_at(unpartitioned, gateway, at(2024, 7, 1, 2, 5))
    look(at(2024, 7, 1, 2, 10))
    assert waiting(unpartitioned) == []


def test_runs_that_find_partitions_are_queued_at_each_tick(gateway: Gateway) -> None:
    asset("up")
    customers = PartitionAtRuntime(name="customers")
    runtime_asset = scheduled("found", any_of(by("up"), cron("@hourly")), customers, since=BEGAN)
    look(at(2024, 7, 1, 1))
    assert Run.objects.filter(asset=runtime_asset).count() == 1
    look(at(2024, 7, 1, 1, 30))
    assert Run.objects.filter(asset=runtime_asset).count() == 1


def test_each_segment_of_a_window_is_due() -> None:
    asset("up", SEGMENTS)
    both = scheduled(
        "both", any_of(by("up"), cron("@daily")), PartitionByProduct([HOURLY, SEGMENTS]),
        since=BEGAN,
    )  # fmt: skip
    look(at(2024, 7, 2))
    assert len(waiting(both)) == 48


# ---------------------------------------------------------------- clocks


def test_a_time_goes_by_the_zone_of_the_asset_or_by_its_own() -> None:
    asset("up", BERLIN)
    of_asset = scheduled(
        "of_asset", any_of(by("up"), cron("@daily")), BERLIN, since=BEGAN, timezone="Europe/Berlin"
    )
    own_zone = scheduled(
        "own", any_of(by("up"), cron("@daily", "Asia/Kolkata")), BERLIN, since=BEGAN,
        timezone="Europe/Berlin",
    )  # fmt: skip
    look(at(2024, 7, 1, 22))
    assert (waiting(of_asset), waiting(own_zone)) == (["2024-07-01"], [])
    look(at(2024, 7, 2, 18, 30))
    assert waiting(own_zone) == ["2024-07-01"]


def test_on_days_of_change_each_window_is_due_once() -> None:
    hours = PartitionByInterval("@hourly", timezone="Europe/Berlin", start="2024-01-01")
    asset("up", hours)
    joined = scheduled(
        "joined", any_of(by("up"), cron("30 2 * * *"), cron("@hourly")), hours,
        since=at(2024, 10, 26, 22), timezone="Europe/Berlin",
    )  # fmt: skip
    for half_hours in range(1, 51):
        look(at(2024, 10, 26, 22) + half_hours * HOUR / 2)
    assert len(waiting(joined)) == len(set(waiting(joined))) == 25
    at_spring = scheduled(
        "at_spring", all_of(cron("30 2 * * *"), cron("@hourly")), BERLIN,
        since=at(2024, 3, 30, 12), timezone="Europe/Berlin",
    )  # fmt: skip
    # There is no 02:30 on 31 March: the tick is the first instant after the gap, 03:00.
    look(at(2024, 3, 31, 0, 59))
    assert waiting(at_spring) == []
    look(at(2024, 3, 31, 1))
    assert waiting(at_spring) == ["2024-03-30"]


def test_after_downtime_the_next_look_makes_what_all_ticks_meanwhile_were_about() -> None:
    asset("up", HOURLY)
    joined = scheduled("joined", any_of(by("up"), cron("0 */6 * * *")), HOURLY, since=BEGAN)
    look(at(2024, 7, 3, 13))
    assert len(waiting(joined)) == 60
    assert ticks(joined) == [("", 10, 60)]
    assert Schedule.objects.get(producer=joined.producer).next_at == at(2024, 7, 3, 18)


def test_after_long_downtime_no_transaction_takes_more_than_its_share(settings: object) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 27  # type: ignore[attr-defined]
    asset("up", HOURLY)
    joined = scheduled("joined", any_of(by("up"), cron("0 */6 * * *")), HOURLY, since=BEGAN)
    now, sizes = at(2024, 7, 3, 13), []
    for _ in range(4):
        handle_ticks(now)
        sizes.append(len(waiting(joined)))
        assert not AssetPartition.objects.filter(due_again=True).exists()
    assert sizes == [24, 48, 60, 60]
    assert ticks(joined) == [("", 4, 24), ("", 4, 24), ("", 2, 12)]
    assert Schedule.objects.get(producer=joined.producer).next_at == at(2024, 7, 3, 18)


def test_after_long_downtime_what_waited_for_a_late_tick_is_made_by_it(
    settings: object, alice: User, gateway: Gateway
) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 12  # type: ignore[attr-defined]
    up = asset("up", HOURLY)
    both = scheduled("both", all_of(by("up"), cron("0 */6 * * *")), HOURLY, since=BEGAN)
    written(up, "2024-07-02T10:00Z", at(2024, 7, 2, 11), gateway, alice)
    # It waits for the tick of noon; ticks until then are about more than there is room for.
    Schedule.objects.filter(producer=both.producer).update(handled_until=BEGAN, next_at=BEGAN)
    for _ in range(6):
        look(at(2024, 7, 2, 13))
    assert waiting(both) == ["2024-07-02T10:00Z"]


def test_more_than_one_tick_may_queue_is_looked_at_in_the_next_moments(settings: object) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 10  # type: ignore[attr-defined]
    asset("up", HOURLY)
    joined = scheduled("joined", any_of(by("up"), cron("@daily")), HOURLY, since=BEGAN)
    look(at(2024, 7, 2))
    assert len(waiting(joined)) == 24
    assert not AssetPartition.objects.filter(due_again=True).exists()


# ---------------------------------------------------------------- no catch-up, pauses, changes


def test_history_is_not_due_by_a_time(alice: User, gateway: Gateway) -> None:
    up = asset("up", HOURLY)
    joined = scheduled("joined", any_of(by("up"), cron("@daily")), DAILY, since=at(2024, 7, 1, 12))
    # Something of old days is made upstream: they are not complete, and no tick is about them.
    written(up, "2024-06-28T00:00Z", at(2024, 7, 1, 13), gateway, alice)
    look(at(2024, 7, 2))
    assert waiting(joined) == ["2024-07-01"]
    written(up, "2024-06-28T01:00Z..2024-06-28T23:00Z", at(2024, 7, 2, 1), gateway, alice)
    assert waiting(joined) == ["2024-07-01", "2024-06-28"]


def test_old_days_that_are_written_upstream_are_due_at_the_next_tick(
    alice: User, gateway: Gateway
) -> None:
    up = asset("up", DAILY)
    both = scheduled("both", all_of(by("up"), cron("@daily")), DAILY, since=at(2024, 7, 1, 12))
    written(up, "2024-06-28", at(2024, 7, 1, 13), gateway, alice)
    assert waiting(both) == []
    look(at(2024, 7, 2))
    assert waiting(both) == ["2024-06-28"]


def test_a_paused_asset_makes_nothing_and_unpausing_does_not_catch_up(
    alice: User, gateway: Gateway
) -> None:
    up = asset("up", DAILY)
    joined = scheduled("joined", any_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    pause(joined, True, at(2024, 7, 1, 12))
    written(up, "2024-06-20", at(2024, 7, 1, 13), gateway, alice)
    look(at(2024, 7, 3, 12))
    assert waiting(joined) == []
    pause(joined, False, at(2024, 7, 3, 13))
    look(at(2024, 7, 4))
    assert waiting(joined) == ["2024-07-03"]


def test_missed_partitions_are_listed_during_a_pause_and_afterwards(
    alice: User, gateway: Gateway
) -> None:
    up = asset("up", DAILY)
    joined = scheduled("joined", any_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    both = scheduled("both", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    for paused_asset in (joined, both):
        pause(paused_asset, True, at(2024, 7, 1, 12))
    assert missed(joined, at(2024, 7, 1, 23)) is None
    written(up, "2024-07-02", at(2024, 7, 3, 1), gateway, alice)
    for now in (at(2024, 7, 3, 12), at(2024, 7, 4, 1)):
        missed_keys, of_both = missed(joined, now), missed(both, now)
        assert missed_keys is not None
        assert of_both is not None
        assert (missed_keys.first, missed_keys.is_by_time, missed_keys.is_all) == (
            "2024-07-01",
            False,
            True,
        )
        assert (of_both.first, of_both.count) == ("2024-07-02", 1)
        assert missed_keys.last == ("2024-07-02" if now.day == 3 else "2024-07-03")
    for paused_asset in (joined, both):
        pause(paused_asset, False, at(2024, 7, 4, 2))
    after = missed(joined, at(2024, 7, 4, 3))
    assert after is not None
    assert (after.first, after.last) == ("2024-07-01", "2024-07-03")
    write(joined, "2024-07-01..2024-07-03", gateway, alice)
    assert missed(joined, at(2024, 7, 4, 3)) is None


def test_a_pause_of_what_waits_for_a_tick_drops_it(alice: User, gateway: Gateway) -> None:
    up = asset("up", DAILY)
    both = scheduled("both", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    written(up, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    pause(both, True, at(2024, 7, 2, 2))
    look(at(2024, 7, 3))
    assert waiting(both) == []
    pause(both, False, at(2024, 7, 3, 1))
    look(at(2024, 7, 4))
    assert waiting(both) == []


def test_a_time_that_is_added_goes_on_from_where_the_plain_one_was() -> None:
    asset("up", DAILY)
    daily_asset = scheduled("made", cron("@daily"), DAILY, since=BEGAN)
    look(at(2024, 7, 2))
    declare(daily_asset, any_of(by("up"), cron("0 6 * * *")), at(2024, 7, 3, 1))
    row = Schedule.objects.get(producer=daily_asset.producer)
    assert (row.by_time, row.began_at, row.next_at) == (False, at(2024, 7, 2), at(2024, 7, 2, 6))
    look(at(2024, 7, 3, 6))
    assert waiting(daily_asset) == ["2024-07-01", "2024-07-02"]


def test_a_plain_time_goes_on_from_the_last_of_its_own_ticks() -> None:
    asset("up", DAILY)
    daily_asset = scheduled("made", any_of(by("up"), cron("@weekly")), DAILY, since=BEGAN)
    declare(daily_asset, cron("@weekly"), at(2024, 7, 4))
    look(at(2024, 7, 7))
    assert waiting(daily_asset) == [f"2024-07-0{day}" for day in range(1, 7)]


def test_a_time_that_joins_assets_alone_begins_then() -> None:
    asset("up", DAILY)
    daily_asset = scheduled("made", by("up"), DAILY, since=BEGAN)
    declare(daily_asset, any_of(by("up"), cron("@daily")), at(2024, 7, 4, 12))
    look(at(2024, 7, 5))
    assert waiting(daily_asset) == ["2024-07-04"]


def test_an_expression_that_loses_its_times_waits_for_none(alice: User, gateway: Gateway) -> None:
    up = asset("up", DAILY)
    daily_asset = scheduled("made", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    written(up, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    declare(daily_asset, by("up"), at(2024, 7, 2, 2))
    row = Schedule.objects.get(producer=daily_asset.producer)
    assert (row.next_at, row.handled_until) == (None, BEGAN)
    # It was put off, and is evaluated by what holds then.
    look(at(2024, 7, 3))
    assert waiting(daily_asset) == ["2024-07-01"]


# ---------------------------------------------------------------- failures, others, costs


def test_a_schedule_that_fails_holds_up_no_other_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asset("up", DAILY)
    bad = scheduled("bad", any_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    good = scheduled("good", any_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    evaluate_rows = queueing.evaluate_rows

    def failing(of: Target, *arguments: object) -> object:
        if of.asset == bad:
            raise RuntimeError("no")
        return evaluate_rows(of, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(joined_ticks, "evaluate_rows", failing)
        look(at(2024, 7, 2))
    assert (waiting(bad), waiting(good)) == ([], ["2024-07-01"])
    row = Schedule.objects.get(producer=bad.producer)
    assert (row.failures, row.error) == (1, "RuntimeError: no")
    assert row.next_at == at(2024, 7, 2, 0, 1)
    look(at(2024, 7, 2, 0, 1))
    assert waiting(bad) == ["2024-07-01"]
    assert Schedule.objects.get(producer=bad.producer).failures == 0


def test_partitions_that_waited_for_a_failed_tick_are_queued_by_the_next_attempt(
    alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = asset("up", DAILY)
    both = scheduled("both", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    written(up, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)

    def failing(*_: object) -> object:
        raise RuntimeError("no")

    with monkeypatch.context() as patched:
        patched.setattr(joined_ticks, "evaluate_rows", failing)
        patched.setattr(queueing, "evaluate_rows", failing)
        look(at(2024, 7, 3))
    assert waiting(both) == []
    look(at(2024, 7, 3, 0, 5))
    assert waiting(both) == ["2024-07-01"]


def test_outlets_of_one_function_are_due_together(alice: User, gateway: Gateway) -> None:
    up = asset("up", DAILY)
    rule = any_of(by("up"), cron("@daily"))
    first_outlet, second_outlet = together(
        "pair", ["one", "two"], DAILY, options={"schedule": rule}, schedule=rule
    )
    for outlet in (first_outlet, second_outlet):
        up.downstream_edges.create(downstream=outlet, scheduling=True)
    assert first_outlet.producer is not None
    store_schedules([first_outlet.producer], now=BEGAN)
    look(at(2024, 7, 2))
    assert waiting(first_outlet) == ["2024-07-01"]
    assert AssetPartition.objects.filter(held_by__isnull=False).count() == 2
    make_all(first_outlet, gateway)
    written(up, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    assert waiting(first_outlet) == ["2024-07-01"]


def test_a_window_that_another_run_holds_at_the_tick_is_looked_at_when_that_has_ended(
    alice: User, gateway: Gateway
) -> None:
    up = asset("up", DAILY)
    both = scheduled(
        "both", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN, upstream={"up": None}
    )
    written(up, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    look(at(2024, 7, 3))
    attempt = begin(Run.objects.get(asset=both), gateway)
    # Newer than what the run has read, and there at the next tick.
    written(up, "2024-07-01", at(2024, 7, 3, 1), gateway, alice)
    look(at(2024, 7, 4))
    finish(attempt)
    look(at(2024, 7, 4, 1))
    assert waiting(both) == ["2024-07-01"]


def test_partitions_evaluated_before_a_tick_are_queued_by_that_tick(
    alice: User, gateway: Gateway
) -> None:
    up = asset("up", DAILY)
    both = scheduled("both", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    look(at(2024, 7, 2, 1))
    write(up, "2024-07-01", gateway, alice)
    Materialization.objects.update(created_at=at(2024, 7, 2, 23, 59, 59))
    moment = at(2024, 7, 3) + timedelta(milliseconds=50)
    while process_outbox(moment):
        pass
    while requeue_due(moment):
        pass
    assert waiting(both) == []
    look(moment)
    (run,) = Run.objects.filter(asset=both)
    assert run.tick is not None
    assert ticks(both)[-1] == ("", 1, 1)
    fail(run, gateway)
    look(at(2024, 7, 3, 1))
    assert waiting(both) == [], "one tick makes it once"


def test_evaluations_put_off_until_a_failing_tick_wait_for_its_next_attempt(
    alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = asset("up", DAILY)
    both = scheduled("both", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    written(up, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    with monkeypatch.context() as patched:
        patched.setattr(joined_ticks, "evaluate_rows", Mock(side_effect=RuntimeError("no")))
        handle_ticks(at(2024, 7, 3))
    assert requeue_due(at(2024, 7, 3, 0, 0, 30)) == 0
    assert waiting(both) == []
    look(at(2024, 7, 3, 0, 5))
    (run,) = Run.objects.filter(asset=both)
    assert run.tick is not None


def test_a_partition_that_is_locked_at_its_tick_is_looked_at_by_the_next_beat(
    alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = asset("up", DAILY)
    both = scheduled("both", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    look(at(2024, 7, 2, 1))
    write(up, "2024-07-01", gateway, alice)
    Materialization.objects.update(created_at=at(2024, 7, 2, 23, 59, 59))
    with monkeypatch.context() as patched:
        patched.setattr(joined_ticks, "refuse_locked", Mock(side_effect=PartitionsLocked("locked")))
        handle_ticks(at(2024, 7, 3))
        while process_outbox(at(2024, 7, 3, 0, 0, 1)):
            pass
        while requeue_due(at(2024, 7, 3, 0, 0, 1)):
            pass
    assert waiting(both) == []
    look(at(2024, 7, 3, 0, 0, 1))
    (run,) = Run.objects.filter(asset=both)
    assert run.tick is not None


def test_a_run_that_was_asked_for_after_the_tick_is_the_one_that_the_tick_asks_for(
    alice: User, gateway: Gateway
) -> None:
    asset("up", DAILY)
    either = scheduled("either", any_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    look(at(2024, 7, 2))
    materialize(MaterializeRequest(asset=either, selection="2024-07-02"), user=alice)
    run = Run.objects.get(asset=either, tick=None)
    Run.objects.filter(pk=run.pk).update(created_at=at(2024, 7, 3) + timedelta(milliseconds=20))
    look(at(2024, 7, 3) + timedelta(milliseconds=50))
    fail(run, gateway)
    look(at(2024, 7, 3, 1))
    assert waiting(either) == ["2024-07-01"]


def test_a_window_that_a_run_held_at_its_tick_and_did_not_make_is_made_after_it(
    alice: User, gateway: Gateway
) -> None:
    asset("up", DAILY)
    either = scheduled("either", any_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    look(at(2024, 7, 2))
    materialize(MaterializeRequest(asset=either, selection="2024-07-02"), user=alice)
    run = Run.objects.get(asset=either, tick=None)
    Run.objects.filter(pk=run.pk).update(created_at=at(2024, 7, 2, 23))
    look(at(2024, 7, 3) + timedelta(milliseconds=50))
    fail(run, gateway)
    look(at(2024, 7, 3, 1))
    assert waiting(either) == ["2024-07-01", "2024-07-02"]


def test_failed_partitions_of_a_tick_are_not_shown_as_due_at_the_next_tick(
    alice: User, gateway: Gateway
) -> None:
    up = asset("up", DAILY)
    both = scheduled("both", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    written(up, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    look(at(2024, 7, 3))
    fail(Run.objects.get(asset=both), gateway)
    look(at(2024, 7, 3, 1))
    assert progress_of(Asset.objects.get(pk=both.pk), at(2024, 7, 3, 2)) == []
    look(at(2024, 7, 4))
    assert waiting(both) == []


def test_partitions_that_wait_for_a_tick_are_shown_as_coming(alice: User, gateway: Gateway) -> None:
    up = asset("up", DAILY)
    both = scheduled("both", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    written(up, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    (progress,) = progress_of(Asset.objects.get(pk=both.pk), at(2024, 7, 2, 2))
    assert progress.waits_for_tick
    assert progress.text == "up 1 of 1, waits for a tick"
    look(at(2024, 7, 3))
    make_all(both, gateway)
    assert progress_of(Asset.objects.get(pk=both.pk), at(2024, 7, 3, 2)) == []


def test_upstream_partitions_of_a_backfill_wait_for_no_tick(alice: User, gateway: Gateway) -> None:
    up = asset("up", DAILY)
    both = scheduled("both", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    write(up, "2024-06-01", gateway, alice)
    Outbox.objects.all().delete()
    look(at(2024, 7, 2))
    assert waiting(both) == []


def test_a_tick_costs_the_same_statements_for_many_windows() -> None:
    asset("up", HOURLY)

    def statements(name: str, schedule: dict[str, Any], until: datetime) -> int:
        scheduled(name, any_of(by("up"), schedule), HOURLY, since=BEGAN)
        with CaptureQueriesContext(connection) as statements:
            handle_ticks(until)
        return len(statements)

    few = statements("few", cron("@hourly"), at(2024, 7, 1, 1))
    Schedule.objects.update(next_at=None)
    assert statements("many", cron("@daily"), at(2024, 7, 2)) == few


def pause(of: Asset, paused: bool, when: datetime) -> None:
    """Pause or resume at a moment."""
    Asset.objects.filter(pk=of.pk).update(paused=paused)
    of.paused = paused
    pause_schedule(of, paused=paused, now=when)


def missed(of: Asset, now: datetime) -> Missed | None:
    """Return the partitions that were missed during the last pause."""
    return missed_by(Asset.objects.get(pk=of.pk), now)


def declare(of: Asset, schedule: dict[str, Any], when: datetime) -> None:
    """Give an asset another schedule."""
    producer = of.producer
    assert producer is not None
    assert producer.current_version is not None
    version = producer.current_version
    version.definition = version.definition | {"schedule": schedule}
    producer.current_version.save(update_fields=["definition"])
    Asset.objects.filter(pk=of.pk).update(schedule=schedule)
    names = {term["name"] for term in schedule.get("of", [schedule]) if "name" in term}
    for name in names:
        upstream = Asset.objects.get(name=name)
        upstream.downstream_edges.get_or_create(downstream=of, defaults={"scheduling": True})
    store_schedules([producer], now=when)
