"""Which instants a schedule by time ticks at, and which partitions a tick makes."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

from slicewise import (
    DefinitionError,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
)
from slicewise.calendar.time_schedules import TimeSchedule
from slicewise.partitions.due import (
    ended_between,
    partitions_of_last_window,
    partitions_of_last_windows,
)

HOURLY = PartitionByInterval("@hourly", timezone="America/New_York")
DAILY = PartitionByInterval("@daily", start=date(2024, 1, 1), exclude="0 0 * * 6,0")


def at(*values: int) -> datetime:
    return datetime(*values, tzinfo=UTC)  # type: ignore[misc,arg-type]


def rule(expression: str, **more: str) -> TimeSchedule:
    return TimeSchedule.from_json({"kind": "cron", "expression": expression}, **more)


def test_a_daily_schedule_ticks_at_local_midnight() -> None:
    daily = rule("@daily", timezone="America/New_York")
    assert daily.next_after(at(2024, 7, 1, 3)) == at(2024, 7, 1, 4)
    assert daily.next_after(at(2024, 7, 1, 4)) == at(2024, 7, 2, 4)
    assert daily.last_until(at(2024, 7, 1, 4)) == at(2024, 7, 1, 4)
    assert daily.last_until(at(2024, 7, 1, 3, 59)) == at(2024, 6, 30, 4)


def test_a_schedule_ticks_between_its_dates_only() -> None:
    bounded = rule("@daily", start="2024-01-10T00:00:00+00:00", end="2024-01-12T00:00:00+00:00")
    assert bounded.next_after(at(2023, 1, 1)) == at(2024, 1, 10)
    assert bounded.last_until(at(2024, 1, 9)) is None
    assert bounded.next_after(at(2024, 1, 12)) is None
    assert bounded.last_until(at(2025, 1, 1)) == at(2024, 1, 12)
    assert bounded.count(at(2023, 1, 1), at(2025, 1, 1)) == 3


def test_a_timedelta_aligns_to_the_start_date() -> None:
    every = {"kind": "timedelta", "seconds": 480.0}
    aligned = TimeSchedule.from_json(every, start="2021-12-10T10:35:00+00:00")
    assert aligned.next_after(at(2021, 12, 10, 10, 35)) == at(2021, 12, 10, 10, 43)
    assert TimeSchedule.from_json(every).next_after(at(1970, 1, 1)) == at(1970, 1, 1, 0, 8)


def test_a_schedule_by_assets_has_no_ticks() -> None:
    with pytest.raises(DefinitionError, match="has no ticks of its own"):
        TimeSchedule.from_json({"kind": "asset", "name": "raw"})


def test_a_daily_tick_makes_the_24_hours_that_ended_since_the_last_one() -> None:
    keys = ended_between(HOURLY, at(2024, 7, 1, 4), at(2024, 7, 2, 4))
    assert len(keys) == 24
    assert keys.hull is not None
    assert (keys.hull.start, keys.hull.end) == (at(2024, 7, 1, 4), at(2024, 7, 2, 4))


def test_a_day_of_change_has_23_or_25() -> None:
    assert len(ended_between(HOURLY, at(2024, 3, 10, 5), at(2024, 3, 11, 4))) == 23
    assert len(ended_between(HOURLY, at(2024, 11, 3, 4), at(2024, 11, 4, 5))) == 25


def test_an_hourly_tick_makes_a_day_at_midnight_only() -> None:
    days = PartitionByInterval("@daily", start=date(2024, 1, 1))
    ticks = [at(2024, 7, 1) + timedelta(hours=hour) for hour in range(26)]
    texts = [ended_between(days, first, second).text for first, second in pairwise(ticks)]
    assert texts == [""] * 23 + ["2024-07-01", ""]


def test_a_late_tick_makes_all_that_ended_meanwhile() -> None:
    assert len(ended_between(HOURLY, at(2024, 7, 1), at(2024, 7, 8))) == 168


def test_segments_are_made_at_every_tick() -> None:
    letters = PartitionBySequence(["a", "b"])
    assert len(ended_between(letters, at(2024, 7, 1), at(2024, 7, 1, 1))) == 2


def test_a_product_makes_every_segment_of_the_windows_that_ended() -> None:
    both = PartitionByProduct([HOURLY, PartitionBySequence(["marketing-dwh", "engineering-dwh"])])
    due = ended_between(both, at(2024, 7, 1, 4), at(2024, 7, 2, 4))
    assert len(due) == 48
    assert [key.text for key in partitions_of_last_window(due)] == [
        "2024-07-01T23:00-04:00|marketing-dwh",
        "2024-07-01T23:00-04:00|engineering-dwh",
    ]


def test_nothing_before_the_start_is_due() -> None:
    assert not ended_between(DAILY, at(2023, 12, 1), at(2024, 1, 1))
    assert ended_between(DAILY, at(2023, 12, 1), at(2024, 1, 2)).text == "2024-01-01"


def test_the_last_windows_do_not_count_excluded_ones() -> None:
    monday_morning = at(2024, 1, 15)
    assert [str(day) for day in partitions_of_last_windows(DAILY, monday_morning, 3)] == [
        "2024-01-10",
        "2024-01-11",
        "2024-01-12",
    ]


def test_the_last_windows_end_with_the_first_one() -> None:
    assert len(partitions_of_last_windows(DAILY, at(2024, 1, 3), 10)) == 2
    assert not partitions_of_last_windows(DAILY, at(2024, 1, 3), 0)
    assert not partitions_of_last_windows(PartitionBySequence(["a"]), at(2024, 1, 3), 2)
