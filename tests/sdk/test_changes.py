"""Days on which clocks change."""

from collections.abc import Callable
from datetime import date, datetime, timedelta

import pytest

from slicewise import PartitionByInterval
from tests.sdk.reference import changes, scanned_ticks
from tests.sdk.strategies import ZONES

Matches = Callable[[datetime], bool]
CADENCES: dict[str, Matches] = {
    "0 * * * *": lambda wall: wall.minute == 0,
    "30 * * * *": lambda wall: wall.minute == 30,
    "*/20 * * * *": lambda wall: wall.minute % 20 == 0,
    "15 * * * 0,6": lambda wall: wall.minute == 15 and wall.weekday() > 4,
    "0 0 * * *": lambda wall: wall.hour == wall.minute == 0,
    "30 2 * * *": lambda wall: (wall.hour, wall.minute) == (2, 30),
    "0 */2 * * *": lambda wall: wall.minute == 0 and wall.hour % 2 == 0,
    "1,59 0-3 * * *": lambda wall: wall.minute in (1, 59) and wall.hour < 4,
    "0 0 * * 1-5": lambda wall: wall.hour == wall.minute == 0 and wall.weekday() < 5,
    "30 1 1-7 * *": lambda wall: (wall.hour, wall.minute) == (1, 30) and wall.day < 8,
}


@pytest.mark.parametrize("zone", ZONES)
def test_a_scan_of_the_clock_minute_by_minute_finds_the_same_boundaries(zone: str) -> None:
    for change in changes(zone, 2010, 2011):
        start = change.replace(minute=0) - timedelta(hours=26)
        minutes = 64 * 60
        for cron, matches in CADENCES.items():
            elapsed = cron.split()[1] == "*"
            scanned = scanned_ticks(matches, elapsed, zone, start, minutes)
            windows = PartitionByInterval(cron, timezone=zone).windows(
                start - timedelta(days=8), start + timedelta(days=40)
            )
            end = start + timedelta(minutes=minutes)
            found = [window.start for window in windows if start <= window.start < end]
            assert found == scanned, (cron, change)


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
