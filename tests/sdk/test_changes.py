"""Days on which clocks change."""

from datetime import UTC, date, datetime, timedelta

import pytest

from slicewise import PartitionByInterval
from tests.sdk.scan import Reading, readings, ticks
from tests.sdk.strategies import ZONES

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
            assert _begun(definition, reading) == ticks(cron, reading), (cron, change)


def _begun(definition: PartitionByInterval, reading: Reading) -> list[int]:
    """Minutes since the epoch, of those read, at which a window begins."""
    first, last = reading.start, reading.start + len(reading.shown) - 1
    ends = [definition.window_at(datetime.fromtimestamp(each * 60, UTC)) for each in (first, last)]
    assert ends[0] is not None
    assert ends[1] is not None
    windows = definition.windows(ends[0].start, ends[1].end)
    return [start for window in windows if first <= (start := window.first_second // 60) <= last]


@pytest.mark.parametrize("zone", ZONES)
def test_the_scan_meets_every_change_of_the_zone(zone: str) -> None:
    unchanged = {"UTC", "Asia/Kolkata", "Asia/Kathmandu"}
    assert (len(readings(zone)) == 1) == (zone in unchanged)
    kinds = {len(ticks("0 0 * * *", reading)) for reading in readings(zone)}
    assert kinds <= {2, 3}


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
    assert sum((each.duration for each in inside), timedelta()) == window.duration


def test_apia_has_no_30th_of_december_2011() -> None:
    daily = PartitionByInterval("@daily", timezone="Pacific/Apia")
    texts = [str(key) for key in daily.select("2011-12-28..2012-01-01")]
    assert texts == ["2011-12-28", "2011-12-29", "2011-12-31", "2012-01-01"]
    with pytest.raises(ValueError, match="2011-12-30"):
        daily.parse("2011-12-30")


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
