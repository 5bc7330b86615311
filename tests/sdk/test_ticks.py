"""Ticks in bulk agree with ticks one by one; machines and clocks do not matter."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pendulum
from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise import Interval, PartitionByInterval
from slicewise.cadence import read_cadence
from slicewise.ticks import place
from slicewise.zones import to_instant, zone
from tests.sdk.strategies import cadences, crons, instants, spans, zones


@given(cron=crons, name=zones, span=spans(), step=st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_many_ticks_are_the_ticks_one_by_one(
    cron: str, name: str, span: tuple[datetime, datetime], step: int
) -> None:
    ticks = place(read_cadence(cron), zone(name), 0)
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
    ticks = place(read_cadence(cadence), zone(name), 0)
    second = to_instant(instant)
    number = ticks.rank(second)
    assert ticks.rank(ticks.tick(number)) == number
    assert ticks.tick(number - 1) < second <= ticks.tick(number)


def test_boundaries_are_the_same_whatever_zone_the_process_is_in() -> None:
    program = (
        "from slicewise import PartitionByInterval\n"
        "lord_howe = PartitionByInterval('@hourly', timezone='Australia/Lord_Howe')\n"
        "print([str(key) for key in lord_howe.select('2024-04-06..2024-04-08')])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "TZ": name, "PYTHONTZPATH": ""},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for name in ("UTC", "Australia/Lord_Howe", "America/New_York")
    }
    assert len(printed) == 1


def test_datetimes_of_any_library_and_zone_are_read() -> None:
    berlin = PartitionByInterval("@daily", timezone=ZoneInfo("Europe/Berlin"))
    plain = datetime(2024, 6, 1, 12, tzinfo=UTC)
    by_pendulum = pendulum.datetime(2024, 6, 1, 12)
    assert berlin.window_at(plain) == berlin.window_at(by_pendulum)
    assert berlin.count(by_pendulum, by_pendulum.add(days=3)) == 2
    assert PartitionByInterval("@daily", timezone=pendulum.timezone("Europe/Berlin")) == berlin


def test_an_interval_is_its_two_instants_in_whatever_zone_it_is_written() -> None:
    start, end = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)
    one, two = Interval(start, end), Interval(start, end, "Asia/Kolkata")
    assert one == two
    assert hash(one) == hash(two)
    assert (str(one), str(two)) == ("2024-01-01", "2024-01-01T05:30+05:30")
    assert two.local_start.isoformat() == "2024-01-01T05:30:00+05:30"
    assert start in one
    assert end not in one
