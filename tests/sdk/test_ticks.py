"""Ticks in bulk agree with ticks one by one, and cron fields with croniter's reading."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pendulum
import pytest
from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise import DefinitionError, Interval, PartitionByInterval
from slicewise.calendar.cadence import CronCadence, read_cadence, read_cron
from slicewise.calendar.ticks import ticks_of
from slicewise.calendar.zones import to_instant, zone
from tests.sdk.strategies import cadences, crons, instants, spans, zones


@given(cron=crons, name=zones, span=spans(), step=st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_many_ticks_are_the_ticks_one_by_one(
    cron: str, name: str, span: tuple[datetime, datetime], step: int
) -> None:
    ticks = ticks_of(read_cadence(cron), zone(name), 0)
    start, end = (to_instant(moment) for moment in span)
    numbers = range(ticks.rank(start), ticks.rank(end), step)
    one_by_one = [ticks.tick(number) for number in numbers]
    assert list(ticks.at(numbers)) == one_by_one
    assert list(ticks.ticks(numbers.start, numbers.stop))[::step] == one_by_one
    instants = range(start, end, 1741)
    assert list(ticks.ranks(instants)) == [ticks.rank(instant) for instant in instants]


@given(cadence=cadences, name=zones, instant=instants)
@settings(max_examples=80, deadline=None)
def test_the_number_of_a_tick_is_its_rank(
    cadence: str | timedelta, name: str, instant: datetime
) -> None:
    ticks = ticks_of(read_cadence(cadence), zone(name), 0)
    second = to_instant(instant)
    number = ticks.rank(second)
    assert ticks.rank(ticks.tick(number)) == number
    assert ticks.tick(number - 1) < second <= ticks.tick(number)


@st.composite
def _fields(draw: st.DrawFn, low: int, high: int, special: tuple[str, ...] = ()) -> str:
    """Draw one field of a cron expression."""
    value = st.integers(low, high)
    item = st.one_of(
        st.just("*"),
        value.map(str),
        st.integers(1, 9).map(lambda step: f"*/{step}"),
        st.builds(lambda first, second: f"{first}-{second}", value, value),
        st.builds(
            lambda first, second, step: f"{first}-{second}/{step}", value, value, st.integers(1, 5)
        ),
    )
    lists = st.lists(item, min_size=1, max_size=3).map(",".join)
    return draw(st.one_of(lists, st.sampled_from(special)) if special else lists)


@given(
    fields=st.tuples(
        _fields(0, 59),
        _fields(0, 23),
        _fields(1, 31, ("L", "15W", "1W", "31W", "L,3", "?")),
        _fields(1, 12, ("jan,JUL", "apr-OCT")),
        _fields(0, 7, ("5#2", "L5", "fri#1", "1#5,0#4", "MON-FRI", "7", "5-7", "?")),
    ),
    start=st.datetimes(datetime(1890, 1, 1), datetime(2120, 1, 1)),
)
@settings(max_examples=300, deadline=None)
def test_fields_are_read_as_croniter_reads_them(fields: tuple[str, ...], start: datetime) -> None:
    try:
        cadence = read_cron(" ".join(fields))
    except DefinitionError:
        return
    on = cadence.fields.on
    if (on.nth and on.by_month) or (on.nearest and on.by_week):
        return  # either field may pick a day, says cron's rule; croniter drops one of them
    walk = croniter(cadence.text, start)
    walls = [datetime(1970, 1, 1) + timedelta(seconds=wall) for wall in _after(cadence, start, 30)]
    assert walls == [walk.get_next(datetime) for _ in range(30)]


def _after(cadence: CronCadence, start: datetime, count: int) -> Sequence[int]:
    ticks = cadence.wall_ticks
    first = ticks.rank(int((start - datetime(1970, 1, 1)).total_seconds() // 60) * 60 + 60)
    return ticks.ticks(first, first + count)


@pytest.mark.parametrize(
    ("cron", "days"),
    [
        ("0 0 13 * 5#2", [12, 13]),
        ("0 0 1,L * L3", [1, 31]),
        ("0 0 15W * 1", [1, 8, 15, 22, 29]),
        ("0 0 13 * 5", [5, 12, 13, 19, 26]),
        ("0 0 31 * 5-7", [5, 6, 7, 12, 13, 14, 19, 20, 21, 26, 27, 28, 31]),
        ("0 0 6W * *", [5]),
        ("0 0 W7 * *", [8]),
        ("0 0 ? 1 0", [7, 14, 21, 28]),
        ("0 0 1-7/3 JAN *", [1, 4, 7]),
        ("0 0 * * SUN", [7, 14, 21, 28]),
        ("0 0 * * FRI-MON", [1, 5, 6, 7, 8, 12, 13, 14, 15, 19, 20, 21, 22, 26, 27, 28, 29]),
        ("0 0 * * 1#5,2#5", [29, 30]),
        ("*,5 0 31 * *", [31]),
    ],
)
def test_days_of_january_2024(cron: str, days: list[int]) -> None:
    ticks = _after(read_cron(cron), datetime(2023, 12, 31, 23, 59), 70)
    walls = [datetime(1970, 1, 1) + timedelta(seconds=wall) for wall in ticks]
    assert sorted({wall.day for wall in walls if (wall.year, wall.month) == (2024, 1)}) == days


def test_the_nearest_weekday_stays_in_its_month() -> None:
    # June 2024 begins with a Saturday and ends with a Sunday.
    for cron, day in (("0 0 1W 6 *", 3), ("0 0 30W 6 *", 28), ("0 0 15W 6 *", 14)):
        (wall,) = _after(read_cron(cron), datetime(2024, 5, 31), 1)
        assert datetime(1970, 1, 1) + timedelta(seconds=wall) == datetime(2024, 6, day)


def test_only_a_window_of_whole_days_is_named_by_a_date() -> None:
    halves = PartitionByInterval("0 0,12 * * *").windows("2024-07-03", "2024-07-04")
    assert [str(half) for half in halves] == ["2024-07-03T00:00Z", "2024-07-03T12:00Z"]


def test_days_of_the_calendar_repeat_only_after_400_years() -> None:
    leap_days = PartitionByInterval("0 0 29 2 *")
    starts = [window.start.year for window in leap_days.windows("1890-01-01", "2120-01-01")]
    assert 1900 not in starts
    assert {1896, 1904, 2000, 2096, 2104} <= set(starts)
    assert leap_days.count("1600-01-01", "2000-01-01") == 96


def test_datetimes_of_any_library_and_zone_are_read() -> None:
    berlin = PartitionByInterval("@daily", timezone=ZoneInfo("Europe/Berlin"))
    plain = datetime(2024, 6, 1, 12, tzinfo=UTC)
    by_pendulum = pendulum.datetime(2024, 6, 1, 12)
    assert berlin.window_at(plain) == berlin.window_at(by_pendulum)
    assert berlin.count(by_pendulum, by_pendulum.add(days=3)) == 2
    assert PartitionByInterval("@daily", timezone=pendulum.timezone("Europe/Berlin")) == berlin


def test_an_interval_is_its_two_instants_in_whatever_zone_it_is_written() -> None:
    start, end = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)
    first, second = Interval(start, end), Interval(start, end, "Asia/Kolkata")
    assert first == second
    assert hash(first) == hash(second)
    assert (str(first), str(second)) == ("2024-01-01", "2024-01-01T05:30+05:30")
    assert second.local_start.isoformat() == "2024-01-01T05:30:00+05:30"
    assert start in first
    assert end not in first
