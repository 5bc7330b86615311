"""Bounds and exclusions of definitions (calendar rules 2, 7 and 8)."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from slicewise import DefinitionError, PartitionByInterval, PartitionKeyError

ZONE = "America/New_York"


def test_a_naive_bound_in_a_gap_is_the_first_instant_after_it() -> None:
    for microsecond in (0, 500_000):
        start = datetime(2024, 3, 10, 2, 30, 0, microsecond)
        hourly = PartitionByInterval("@hourly", timezone=ZONE, start=start)
        assert hourly.windows(until="2024-03-11")[0].text == "2024-03-10T03:00-04:00"


def test_a_bound_in_a_fold_is_the_first_pass_unless_the_second_is_asked_for() -> None:
    wall = datetime(2024, 11, 3, 1)
    for bound, text in (
        (wall, "2024-11-03T01:00-04:00"),
        (wall.replace(fold=1), "2024-11-03T01:00-05:00"),
    ):
        started = PartitionByInterval("@hourly", timezone=ZONE, start=bound, end="2024-11-04")
        assert started.windows()[0].text == text
        ended = PartitionByInterval("@hourly", timezone=ZONE, end=bound)
        assert (
            ended.windows(since="2024-11-03")[-1].local_end.isoformat()
            == text[:16] + ":00" + (text[16:])
        )
        plain = PartitionByInterval("@hourly", timezone=ZONE)
        assert plain.windows(bound, "2024-11-04")[0].text == text


def test_a_date_is_its_first_instant_also_without_a_midnight() -> None:
    hourly = PartitionByInterval("@hourly", timezone="America/Havana", start=date(2024, 3, 10))
    assert hourly.windows(until=date(2024, 3, 11))[0].text == "2024-03-10T01:00-04:00"
    assert hourly.count(until=date(2024, 3, 11)) == 23


def test_an_aware_bound_keeps_its_offset() -> None:
    start = datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    daily = PartitionByInterval("@daily", start=start)
    assert daily.start == start
    assert daily.to_json()["start"] == "2024-01-01T00:00:00+05:30"
    assert daily.windows(until="2024-01-03")[0].text == "2024-01-01"


def test_only_windows_wholly_inside_the_bounds_belong() -> None:
    daily = PartitionByInterval(
        "@daily", start=datetime(2024, 1, 1, 0, 0, 0, 1), end=datetime(2024, 1, 4, 23, 59, 59)
    )
    assert [str(window) for window in daily.windows()] == ["2024-01-02", "2024-01-03"]
    assert daily.window_at(datetime(2024, 1, 1, 12)) is None
    assert daily.window_at(datetime(2024, 1, 4, 12)) is None
    assert daily.count(since="2024-01-03", until="2024-02-01") == 1
    assert daily.count(since="2024-01-03", until="2024-01-02") == 0
    assert PartitionByInterval("@daily", start="2024-01-01", end="2024-01-01").count() == 0


@pytest.mark.parametrize(
    ("bound", "zone"),
    [
        (datetime.max, ZONE),
        (date.min, "Asia/Kolkata"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=5))), "UTC"),
    ],
)
def test_a_bound_that_utc_has_no_date_for_is_refused(bound: date, zone: str) -> None:
    with pytest.raises(
        DefinitionError,
        match="is no time in UTC; write an earlier or later bound, or leave the bound out",
    ):
        PartitionByInterval("@daily", timezone=zone, end=bound)


def test_invalid_bounds_are_refused() -> None:
    with pytest.raises(DefinitionError, match="a bound is a datetime or a date, not 2024"):
        PartitionByInterval("@daily", start=2024)  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="the end 2024-11-03 01:00:00-04:00 comes before"):
        PartitionByInterval(
            "@hourly",
            timezone=ZONE,
            start=datetime(2024, 11, 3, 1, fold=1),
            end=datetime(2024, 11, 3, 1),
        )


def test_a_timedelta_is_elapsed_time_from_the_epoch_or_the_start() -> None:
    six_hours = PartitionByInterval(timedelta(hours=6), timezone=ZONE)
    assert [str(window) for window in six_hours.windows("2024-11-03", "2024-11-04")] == [
        "2024-11-03T01:00-05:00",
        "2024-11-03T07:00-05:00",
        "2024-11-03T13:00-05:00",
    ]
    from_midnight = PartitionByInterval(timedelta(hours=6), timezone=ZONE, start="2024-11-03")
    assert [str(window) for window in from_midnight.windows(until="2024-11-04")] == [
        "2024-11-03T00:00-04:00",
        "2024-11-03T05:00-05:00",
        "2024-11-03T11:00-05:00",
        "2024-11-03T17:00-05:00",
    ]
    before = PartitionByInterval(timedelta(days=10)).window_at(datetime(1969, 12, 31, tzinfo=UTC))
    assert str(before) == "1969-12-22"


@pytest.mark.parametrize(
    ("cadence", "zone", "day", "exclude", "hours"),
    [
        ("@hourly", ZONE, "2024-03-10", "0 2 * * *", 23),  # there is no 02:00 to leave out
        ("@hourly", ZONE, "2024-11-03", "0 1 * * *", 23),  # both passes
        (timedelta(hours=1), ZONE, "2024-11-03", "0 1 * * *", 23),
        (timedelta(hours=1), ZONE, "2024-03-10", "30 2 * * *", 23),
        # By the clock's rule the tick of 02:00 falls on 03:00, and so does what is left out.
        ("0 0-22 * * *", ZONE, "2024-03-10", "0 2 * * *", 21),
        ("@hourly", "Europe/Berlin", "2024-03-31", date(2024, 3, 31), 0),
        ("@hourly", "Europe/Berlin", "2024-10-27", "2024-10-27", 0),
        ("@hourly", "Europe/Berlin", "2024-10-27", datetime(2024, 10, 27, 2), 24),
        ("@hourly", "Europe/Berlin", "2024-10-27", datetime(2024, 10, 27, 2, fold=1), 24),
        ("@hourly", "Europe/Berlin", "2024-10-27", datetime(2024, 10, 27, 1, tzinfo=UTC), 24),
        ("@hourly", "Europe/Berlin", "2024-10-27", datetime(2024, 10, 27, 2, 30), 25),
        ("@hourly", "Europe/Berlin", "2024-10-27", [date(2024, 10, 28), "0 2 * * *"], 23),
    ],
)
def test_windows_that_start_at_an_exclusion_are_left_out(
    cadence: str | timedelta, zone: str, day: str, exclude: str, hours: int
) -> None:
    definition = PartitionByInterval(cadence, timezone=zone, exclude=exclude)
    full_day = PartitionByInterval("@daily", timezone=zone).parse(day)
    windows = definition.windows(full_day.start, full_day.end)
    assert len(windows) == len(list(windows)) == hours
    # The neighbours of what is left out keep their bounds.
    assert set(windows) <= set(
        PartitionByInterval(cadence, timezone=zone).windows(full_day.start, full_day.end)
    )


def test_an_exclusion_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(DefinitionError, match="five fields, 'holidays' has 1"):
        PartitionByInterval("@daily", exclude="holidays")
    with pytest.raises(DefinitionError, match="cron texts, dates and datetimes, not 5"):
        PartitionByInterval("@daily", exclude=[5])  # type: ignore[list-item]


@pytest.mark.parametrize("year", [1650, 1969, 2049, 2050, 2100, 4000, 9997])
@pytest.mark.parametrize("zone", ["UTC", ZONE, "Australia/Lord_Howe"])
def test_any_year_is_tiled_by_its_days_and_they_by_their_hours(zone: str, year: int) -> None:
    daily = PartitionByInterval("@daily", timezone=zone)
    hourly = PartitionByInterval("@hourly", timezone=zone)
    days = list(daily.windows(date(year, 1, 1), date(year + 1, 1, 1)))
    assert len(days) == 365 + (date(year, 12, 31).timetuple().tm_yday == 366)
    assert [day.text for day in days] == [
        (date(year, 1, 1) + timedelta(place)).isoformat() for place in range(len(days))
    ]
    hours = hourly.windows(days[0].start, days[-1].end)
    assert sum((hour.duration for hour in hours), timedelta()) == days[-1].end - days[0].start
    assert hourly.parse(hours[-1].text) == hours[-1]


def test_there_is_no_window_that_the_calendar_has_no_end_or_start_for() -> None:
    last = datetime(9999, 12, 31, 12, tzinfo=UTC)
    for cadence in ("@hourly", "@daily", "@yearly", timedelta(days=7)):
        definition = PartitionByInterval(cadence)
        assert definition.window_at(last.replace(hour=23, minute=59)) is None
        listed = definition.windows(since="9990-01-01", until=last)
        assert definition.window_at(listed[-1].start) == listed[-1]
    began = PartitionByInterval("@yearly", timezone=ZONE).window_at(datetime(1, 1, 1, tzinfo=UTC))
    assert began is None
    centuries = PartitionByInterval(timedelta(days=36_525), start="2000-01-01")
    started = centuries.windows(until=last)[-1].end
    assert centuries.window_at(started) is None
    with pytest.raises(PartitionKeyError, match="names no partition"):
        centuries.parse(f"{started:%Y-%m-%dT%H:%MZ}")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize(
    ("often", "seldom"), [("* * * * 6,0", "0 * * * 6,0"), ("*/7 2 * * *", "0 2 * * *")]
)
def test_an_exclusion_that_ticks_more_often_than_the_windows_start_excludes_the_same(
    often: str, seldom: str, zone: str
) -> None:
    """Also on the days on which the clocks change."""
    hourly = [
        PartitionByInterval(
            "@hourly", timezone=zone, start="2024-03-01", end="2024-11-10", exclude=exclude
        )
        for exclude in (often, seldom)
    ]
    assert list(hourly[0].keys()) == list(hourly[1].keys())


def test_one_exclusion_written_twice_makes_no_other_definition() -> None:
    day = date(2024, 1, 1)
    once, twice = (PartitionByInterval("@daily", exclude=days) for days in (day, [day, day]))
    assert once == twice
    assert once.fingerprint == twice.fingerprint
