"""Schedules in words, how far partitions are, and how long ticks are kept."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.catalogue.timetables import pause_schedule
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import (
    Asset,
    Gateway,
    GroupKind,
    Run,
    RunGroup,
    Schedule,
    ScheduleTick,
)
from assets_app.scheduling import recording
from assets_app.scheduling.descriptions import cron_in_words, describe_schedule
from assets_app.scheduling.missed import missed_by
from assets_app.scheduling.progress import progress_of
from assets_app.scheduling.recording import forget_ticks
from slicewise import Offset, PartitionByInterval, PartitionByProduct, PartitionBySequence
from tests.factories import asset
from tests.scheduling.scheduled_assets import (
    all_of,
    any_of,
    at,
    by,
    cron,
    fail,
    make,
    make_all,
    scheduled,
    write,
)

HOURLY = PartitionByInterval("@hourly", start="2024-01-01")
DAILY = PartitionByInterval("@daily", start="2024-01-01")
MINUTELY = PartitionByInterval("* * * * *", start="2020-01-01")
YEARLY = PartitionByInterval("@yearly", start="2020-01-01")
SEGMENTS = PartitionBySequence(["a", "b"])
BEGAN = at(2024, 7, 1)
NOW = at(2024, 8, 1)
pytestmark = pytest.mark.django_db


def texts(of: Asset) -> dict[str, str]:
    return {row.row.key: row.text for row in progress_of(of, NOW)}


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("@daily", "every day at 00:00"),
        ("@quarterly", "on the first day of each quarter at 00:00"),
        ("*/15 * * * *", "every 15 minutes"),
        ("*/7 * * * *", ""),  # eight minutes or four past the last one of the hour
        ("*/0 * * * *", ""),
        ("5 * * * *", "every hour at minute 5"),
        ("30 6 * * *", "every day at 06:30"),
        ("30 6 * * 1", "every Monday at 06:30"),
        ("0 6 * * 1-5", "every Monday to Friday at 06:00"),
        ("0 6 * * 9", ""),
        ("0 6 2 * *", "on day 2 of each month at 06:00"),
        ("0 6 32 * *", ""),
        ("0 0 1,15 * 2", ""),
    ],
)
def test_common_crons_are_said_in_words(expression: str, words: str) -> None:
    assert cron_in_words(expression) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(60, "every minute"), (5400, "every 90 minutes"), (172_800, "every 2 days")],
)
def test_a_timedelta_is_said_in_its_largest_whole_unit(seconds: int, words: str) -> None:
    scheduled_asset = scheduled("a", {"kind": "timedelta", "seconds": seconds}, since=BEGAN)
    schedule = describe_schedule(scheduled_asset)
    assert schedule is not None
    assert schedule.meaning == f"{words}, counted from 1970-01-01T00:00Z"


def test_the_newest_partitions_that_are_half_there_come_first(
    alice: User, gateway: Gateway
) -> None:
    hourly = asset("hourly", HOURLY)
    daily = scheduled("daily", by("hourly"), DAILY, since=BEGAN)
    write(hourly, "2024-07-01T00:00Z..2024-07-03T01:00Z", gateway, alice)
    write(hourly, "2024-07-06T05:00Z", gateway, alice)
    assert texts(daily) == {"2024-07-06": "hourly 1 of 24", "2024-07-03": "hourly 2 of 24"}


def test_each_side_of_an_and_is_counted(alice: User, gateway: Gateway) -> None:
    hourly, stock = asset("hourly", HOURLY), asset("stock", DAILY)
    daily = scheduled("daily", all_of(by("hourly"), by("stock")), DAILY, since=BEGAN)
    write(hourly, "2024-07-01", gateway, alice)
    (progress,) = progress_of(daily, NOW)
    assert progress.text == "hourly 24 of 24, stock 0 of 1"
    assert [upstream.missing for upstream in progress.upstream] == [[], ["2024-07-01"]]
    write(stock, "2024-07-01", gateway, alice)
    assert progress_of(daily, NOW) == []


def test_where_one_side_suffices_the_other_is_not_waited_for(alice: User, gateway: Gateway) -> None:
    first_upstream, _ = asset("one", DAILY), asset("two", DAILY)
    either = scheduled("either", any_of(by("one"), by("two")), DAILY, since=BEGAN)
    write(first_upstream, "2024-07-01", gateway, alice)
    assert progress_of(either, NOW) == []


def test_a_window_that_is_not_over_says_so(alice: User, gateway: Gateway) -> None:
    upstream = asset("one", DAILY)
    lag = scheduled("lag", by("one"), DAILY, since=BEGAN, upstream={"one": Offset(-1)})
    write(upstream, "2024-07-01", gateway, alice)
    (early,) = progress_of(lag, at(2024, 7, 2, 12))
    assert (early.row.key, early.is_early) == ("2024-07-02", True)
    assert progress_of(lag, at(2024, 7, 3)) == []


def test_materialized_partitions_are_not_shown_as_coming(alice: User, gateway: Gateway) -> None:
    upstream = asset("one", DAILY)
    second = scheduled("two", by("one"), DAILY, since=BEGAN, upstream={"one": None})
    write(upstream, "2024-07-01", gateway, alice)
    write(second, "2024-07-01", gateway, alice)
    make_all(second, gateway)
    assert progress_of(second, NOW) == []


def test_nothing_is_counted_that_has_no_bound(alice: User, gateway: Gateway) -> None:
    hourly = asset("hourly", HOURLY)
    unpartitioned = scheduled("whole", by("hourly"), since=BEGAN)
    segments = scheduled("segments", by("hourly"), SEGMENTS, since=BEGAN)
    write(hourly, "2024-07-01T00:00Z", gateway, alice)
    with CaptureQueriesContext(connection) as statements:
        assert progress_of(unpartitioned, NOW) == progress_of(segments, NOW) == []
    assert len(statements) == 2


def test_a_year_of_minutes_is_too_much_to_count_for_a_page(alice: User, gateway: Gateway) -> None:
    minutes = asset("minutes", MINUTELY)
    year = scheduled("year", by("minutes"), YEARLY, since=BEGAN)
    write(minutes, "2023-07-01T00:00Z", gateway, alice)
    assert progress_of(year, NOW) == []


def test_segments_are_counted_apart(alice: User, gateway: Gateway) -> None:
    up = asset("up", PartitionByProduct([HOURLY, SEGMENTS]))
    down = scheduled("down", by("up"), PartitionByProduct([DAILY, SEGMENTS]), since=BEGAN)
    write(up, "2024-07-01T00:00Z|a", gateway, alice)
    assert texts(down) == {"2024-07-01|a": "up 1 of 24"}


def test_progress_takes_three_statements(alice: User, gateway: Gateway) -> None:
    hourly = asset("hourly", HOURLY)
    daily = scheduled("daily", by("hourly"), DAILY, since=BEGAN)
    write(hourly, "2024-07-01T00:00Z..2024-07-04T01:00Z", gateway, alice)
    with CaptureQueriesContext(connection) as statements:
        assert texts(daily) == {"2024-07-04": "hourly 2 of 24"}
    assert len(statements) == 3


def test_a_pause_misses_the_windows_that_ended_since_the_last_tick() -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    assert missed_by(daily, at(2024, 7, 4, 12)) is None  # not paused
    pause_schedule(daily, paused=True, now=BEGAN)
    Asset.objects.update(paused=True)
    daily = Asset.objects.get()
    missed = missed_by(daily, at(2024, 7, 4, 12))
    assert missed is not None
    assert (missed.count, missed.first, missed.last) == (3, "2024-07-01", "2024-07-03")
    assert missed_by(daily, at(2024, 7, 1, 12)) is None


def test_a_pause_that_has_ended_still_says_what_it_missed(alice: User, gateway: Gateway) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    paused_at, unpaused_at = at(2024, 7, 2, 6), at(2024, 7, 5, 6)
    Schedule.objects.update(
        handled_before_pause=at(2024, 7, 2), paused_at=paused_at, unpaused_at=unpaused_at,
        handled_until=unpaused_at, began_at=unpaused_at,
        missed_spans=[[at(2024, 7, 2).isoformat(), unpaused_at.isoformat()]],
    )  # fmt: skip

    def missed(now: datetime) -> tuple[int, str, str] | None:
        missed = missed_by(Asset.objects.get(pk=daily.pk), now)
        return None if missed is None else (missed.count, missed.first, missed.last)

    assert missed(at(2024, 7, 9)) == (3, "2024-07-02", "2024-07-04")
    assert missed(at(2025, 7, 9)) is None  # too long ago
    write(daily, "2024-07-03", gateway, alice)
    assert missed(at(2024, 7, 9)) == (2, "2024-07-02", "2024-07-04")
    write(daily, "2024-07-02,2024-07-04", gateway, alice)
    assert missed(at(2024, 7, 9)) is None


def test_old_ticks_are_forgotten_in_steps(
    settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SCHEDULE_TICK_DAYS = 30  # type: ignore[attr-defined]
    monkeypatch.setattr(recording, "_FORGOTTEN_AT_ONCE", 10)
    monkeypatch.setattr(recording, "_MOST_STEPS", 3)
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    schedule, now = Schedule.objects.get(), timezone.now()
    ScheduleTick.objects.bulk_create(
        ScheduleTick(schedule=schedule, at=now - timedelta(days=n), last_at=now - timedelta(days=n))
        for n in range(1, 76)
    )
    assert forget_ticks(now) == 30
    assert forget_ticks(now) == 15
    assert forget_ticks(now) == 0
    assert ScheduleTick.objects.count() == 30


def test_a_row_that_still_grows_is_kept() -> None:
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    now = timezone.now()
    ScheduleTick.objects.create(
        schedule=Schedule.objects.get(), at=now - timedelta(days=400), last_at=now, count=400
    )
    assert forget_ticks(now) == 0


def test_partitions_of_a_backfill_are_shown_as_coming_only_while_the_backfill_is_active(
    alice: User, gateway: Gateway
) -> None:
    hourly = asset("hourly", HOURLY)
    daily = scheduled("daily", by("hourly"), DAILY, since=BEGAN)
    write(hourly, "2024-07-01T00:00Z..2024-07-01T05:00Z", gateway, alice)
    of_past = Run.objects.filter(asset=hourly)
    RunGroup.objects.filter(pk__in=of_past.values("group")).update(kind=GroupKind.BACKFILL)
    assert texts(daily) == {}
    # Something else makes one more hour of that day: its other hours count again.
    write(hourly, "2024-07-01T06:00Z", gateway, alice)
    write(hourly, "2024-07-04T06:00Z", gateway, alice)
    assert texts(daily) == {"2024-07-04": "hourly 1 of 24", "2024-07-01": "hourly 7 of 24"}


def test_partitions_of_an_active_backfill_are_shown_as_coming(
    alice: User, gateway: Gateway
) -> None:
    hourly = asset("hourly", HOURLY)
    daily = scheduled("daily", by("hourly"), DAILY, since=BEGAN)
    selection = "2024-07-01T00:00Z..2024-07-01T02:00Z"
    group = materialize(MaterializeRequest(asset=hourly, selection=selection), user=alice)
    RunGroup.objects.filter(pk=group.pk).update(kind=GroupKind.BACKFILL)
    first, *later_runs = group.runs.order_by("id")
    make(first, gateway)
    assert texts(daily) == {"2024-07-01": "hourly 1 of 24"}
    for run in later_runs:
        fail(run, gateway)
    assert texts(daily) == {}


def test_a_whole_asset_over_what_a_past_backfill_made_is_not_on_its_way(
    alice: User, gateway: Gateway
) -> None:
    first_upstream, _ = asset("one"), asset("two")
    both = scheduled("both", all_of(by("one"), by("two")), since=BEGAN)
    write(first_upstream, "", gateway, alice)
    assert texts(both) == {"": "one 1 of 1, two 0 of 1"}
    RunGroup.objects.update(kind=GroupKind.BACKFILL)
    assert texts(both) == {}
