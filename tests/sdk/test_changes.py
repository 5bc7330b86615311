"""Days on which clocks change."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

from slicewise import (
    Interval,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionKeyError,
    SelectionError,
    downstream_partitions,
    upstream_partitions,
)
from tests.sdk.offset_changes import YEARS, Reading, changes, readings, ticks
from tests.sdk.strategies import CHANGES, ZONES

CRONS = [
    "0 * * * *",
    "30 * * * *",
    "*/7 * * * *",
    "15 * * * 0,6",
    "0 0 * * *",
    "30 2 * * *",
    "0 */2 * * *",
    "1,59 0-3 * * *",
    "0 0 * * 1-5",
    "30 1 1-7 * *",
    "0 3 13 * 5",
    "10 2 L * *",
    "0 1 * * 0#1,0#2",
    "0 2 * 3,10 L0",
    "0 0 29 2 *",
    "45 0-23 1 1,4,7,10 *",
]


@pytest.mark.parametrize("zone", ZONES)
def test_the_clock_read_minute_by_minute_ticks_at_the_same_boundaries(zone: str) -> None:
    for cron in CRONS:
        definition = PartitionByInterval(cron, timezone=zone)
        for reading in readings(zone):
            change = datetime.fromtimestamp(reading.start * 60, UTC)
            assert _window_starts(definition, reading) == ticks(cron, reading), (cron, change)


@pytest.mark.parametrize("zone", ZONES)
def test_exactly_the_windows_beside_a_clock_change_belong_to_the_definition(zone: str) -> None:
    for cron in ("0 */2 * * *", "0 0 * * *"):
        definition = PartitionByInterval(cron, timezone=zone)
        for change in CHANGES[zone]:
            around = [datetime.fromtimestamp(change + days * 86_400, UTC) for days in (-2, 2)]
            windows = list(definition.windows(*around))
            for window in windows:
                assert window in definition
            real = {(window.start, window.end) for window in windows}
            usual = windows[0].duration
            for window in windows[1:-1]:
                for end in (window.start + usual, datetime.fromtimestamp(change, UTC)):
                    if window.start < end and (window.start, end) not in real:
                        assert Interval(window.start, end) not in definition


def _window_starts(definition: PartitionByInterval, reading: Reading) -> list[int]:
    """List the minutes since the epoch, within the reading, at which a window begins."""
    first, last = reading.start, reading.start + len(reading.shown) - 1
    ends = [
        definition.window_at(datetime.fromtimestamp(minute * 60, UTC)) for minute in (first, last)
    ]
    assert ends[0] is not None
    assert ends[1] is not None
    windows = definition.windows(ends[0].start, ends[1].end)
    return [start for window in windows if first <= (start := window.first_second // 60) <= last]


@pytest.mark.parametrize("zone", ZONES)
def test_the_scan_meets_every_change_of_the_zone(zone: str) -> None:
    change_times = [int(moment.timestamp()) for moment in changes(zone, *YEARS)]
    assert change_times == CHANGES[zone]
    assert bool(change_times) == (zone not in {"UTC", "Asia/Kolkata", "Asia/Kathmandu"})


def _hours(definition: PartitionByInterval, day: date) -> list[str]:
    return [str(key) for key in definition.select(day.isoformat())]


def test_the_day_of_fall_back_has_25_keys_in_new_york() -> None:
    keys = _hours(PartitionByInterval("@hourly", timezone="America/New_York"), date(2024, 11, 3))
    assert len(set(keys)) == 25
    assert keys[1:3] == ["2024-11-03T01:00-04:00", "2024-11-03T01:00-05:00"]


def test_the_day_of_spring_forward_has_23_keys_in_berlin() -> None:
    keys = _hours(PartitionByInterval("@hourly", timezone="Europe/Berlin"), date(2024, 3, 31))
    assert len(keys) == 23
    assert keys[1:3] == ["2024-03-31T01:00+01:00", "2024-03-31T03:00+02:00"]


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("America/New_York", "2024-03-10", 23),
        ("America/New_York", "2024-11-03", 25),
        ("Australia/Lord_Howe", "2024-04-07", 24.5),
        ("Australia/Lord_Howe", "2024-10-06", 23.5),
        ("Antarctica/Troll", "2024-03-31", 22),
        ("Antarctica/Troll", "2024-10-27", 26),
        ("America/Sao_Paulo", "2018-11-04", 23),
        ("America/Havana", "2024-11-03", 25),
        ("Europe/Dublin", "1990-03-25", 23),
        ("Europe/Dublin", "2024-10-27", 25),
        ("Africa/Casablanca", "2024-03-10", 25),  # Ramadan begins
        ("Africa/Casablanca", "2024-04-14", 23),  # Ramadan is over
        ("Africa/Cairo", "2024-04-26", 23),
        ("Africa/Cairo", "2024-10-31", 25),
        ("Pacific/Chatham", "2024-04-07", 25),
        ("America/Sao_Paulo", "2018-02-17", 25),
        ("America/St_Johns", "2010-03-14", 23),
        ("America/St_Johns", "2010-11-07", 25),
        ("Asia/Kathmandu", "2024-03-31", 24),
        ("Pacific/Apia", "2011-12-29", 24),
        ("Pacific/Apia", "2011-12-31", 24),
    ],
)
def test_a_day_of_change_has_its_own_length(zone: str, day: str, hours: float) -> None:
    daily = PartitionByInterval("@daily", timezone=zone)
    window = daily.parse(day)
    assert window.duration == timedelta(hours=hours)
    assert window.text == day
    quarters = PartitionByInterval("*/15 * * * *", timezone=zone)
    inside = quarters.windows(window.start, window.end)
    assert sum((hour.duration for hour in inside), timedelta()) == window.duration


@pytest.mark.parametrize("zone", ZONES)
def test_hours_tile_every_day_of_change(zone: str) -> None:
    daily = PartitionByInterval("@daily", timezone=zone)
    hourly = PartitionByInterval("@hourly", timezone=zone)
    by_clock = PartitionByInterval("30 0,1,2,3,22,23 * * *", timezone=zone)
    for change in CHANGES[zone]:
        moment = datetime.fromtimestamp(change, UTC)
        days = list(daily.windows(moment - timedelta(days=3), moment + timedelta(days=3)))
        assert all(hour.end == next_hour.start for hour, next_hour in pairwise(days))
        assert len({day.text for day in days}) == len(days) >= 4
        for day in days:
            hours = list(hourly.windows(day.start - timedelta(hours=2), day.end))
            inside = [hour for hour in hours if hour.end > day.start]
            texts = {hour.text for hour in inside}
            assert len(texts) == len(inside) > 20
            assert inside[-1].end <= day.end
            assert all(hour.end == next_hour.start for hour, next_hour in pairwise(inside))
            assert all(by_clock.parse(hour.text) == hour for hour in by_clock.select(day.text))


def test_the_hour_of_a_half_hour_change_is_an_hour_and_a_half() -> None:
    hourly = PartitionByInterval("@hourly", timezone="Australia/Lord_Howe")
    longer = hourly.parse("2024-04-07T01:00+11:00")
    assert longer.duration == timedelta(minutes=90)
    assert longer.local_end.isoformat() == "2024-04-07T02:00:00+10:30"
    halves = PartitionByInterval("*/30 * * * *", timezone="Australia/Lord_Howe")
    assert [str(half) for half in halves.windows(longer.start, longer.end)] == [
        "2024-04-07T01:00+11:00",
        "2024-04-07T01:30+11:00",
        "2024-04-07T01:30+10:30",
    ]


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [("UTC", "2024-01-01", 24), ("America/New_York", "2024-11-03", 25)],
)
def test_a_day_needs_all_hours_of_all_segments_and_each_makes_it_due(
    zone: str, day: str, hours: int
) -> None:
    daily, hourly = (
        PartitionByInterval(cadence, timezone=zone) for cadence in ("@daily", "@hourly")
    )
    dwhs = PartitionBySequence(["marketing-dwh", "engineering-dwh"])
    both = PartitionByProduct([hourly, dwhs])
    key = daily.parse(day)
    assert len(upstream_partitions(daily, hourly, key)) == hours
    needed = upstream_partitions(daily, both, key)
    assert len(needed) == 2 * hours
    assert all(list(downstream_partitions(both, daily, partition)) == [key] for partition in needed)


def test_apia_has_no_30th_of_december_2011() -> None:
    daily = PartitionByInterval("@daily", timezone="Pacific/Apia")
    texts = [str(key) for key in daily.select("2011-12-28..2012-01-01")]
    assert texts == ["2011-12-28", "2011-12-29", "2011-12-31", "2012-01-01"]
    message = "the clock of Pacific/Apia never showed 2011-12-30"
    with pytest.raises(PartitionKeyError, match=message):
        daily.parse("2011-12-30")
    for definition in (daily, PartitionByInterval("@hourly", timezone="Pacific/Apia")):
        for text in ("2011-12-30", "2011-12-29..2011-12-30", "2011-12-30..2012-01-01"):
            with pytest.raises(SelectionError, match=message):
                definition.select(text)


def test_where_a_fold_crosses_midnight_the_repeated_minutes_go_to_the_new_date() -> None:
    daily = PartitionByInterval("@daily", timezone="America/St_Johns")
    before, after = daily.parse("2009-10-31"), daily.parse("2009-11-01")
    assert before.duration == timedelta(hours=24)
    assert after.duration == timedelta(hours=25)


def test_weekdays_by_cron_give_friday_72_hours_and_by_exclusion_24() -> None:
    by_cron = PartitionByInterval("0 0 * * 1-5")
    assert by_cron.parse("2024-01-05").duration == timedelta(hours=72)
    by_exclusion = PartitionByInterval("@daily", exclude="0 0 * * 6,0")
    assert by_exclusion.parse("2024-01-05").duration == timedelta(hours=24)
    assert [str(key) for key in by_exclusion.select("2024-01-05..2024-01-08")] == [
        "2024-01-05",
        "2024-01-08",
    ]


def test_excluding_two_o_clock_follows_the_clock_of_hourly_windows() -> None:
    hourly = PartitionByInterval("@hourly", timezone="America/New_York", exclude="0 1 * * *")
    assert len(hourly.select("2024-11-03")) == 23
    skipped = PartitionByInterval("@hourly", timezone="America/New_York", exclude="0 2 * * *")
    assert len(skipped.select("2024-03-10")) == 23


def test_far_years_follow_the_rule_of_the_zone() -> None:
    daily = PartitionByInterval("@daily", timezone="America/New_York")
    assert daily.parse("2150-03-08").duration == timedelta(hours=23)
    assert daily.count(date(2049, 1, 1), date(2052, 1, 1)) == 365 * 3
