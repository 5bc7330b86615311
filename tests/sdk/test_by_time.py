"""Definitions by time that say themselves where boundaries lie."""

import random
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise import (
    DefinitionError,
    Interval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionByTime,
    PartitionKeyError,
)
from slicewise.calendar.year_ticks import YearTicks
from slicewise.calendar.zones import zone
from tests.sdk.strategies import spans, zones


class Seasons(PartitionByTime, kind="seasons"):
    """Four quarters that begin in a chosen month, at six in the morning."""

    month: int

    def __init__(self, month: int = 3, **common: Any) -> None:
        super().__init__(own={"month": month}, **common)

    def boundaries(self, year: int) -> Iterable[datetime]:
        months = (divmod(self.month - 1 + 3 * n, 12) for n in range(4))
        return [datetime(year + years, month + 1, 1, 6) for years, month in months]


def _days(year: int) -> list[date]:
    """Return every third day, counted from New Year: the last window of a year is a short one."""
    return [date(year, 1, 1) + timedelta(days=n) for n in range(0, 364, 3)]


def test_windows_run_from_one_boundary_to_the_next() -> None:
    seasons = Seasons(timezone="Europe/Berlin", start="2024-01-01", end="2025-01-01")
    texts = [window.text for window in seasons.windows()]
    assert texts == ["2024-03-01T06:00+01:00", "2024-06-01T06:00+02:00", "2024-09-01T06:00+02:00"]
    window = seasons.window_at(datetime(2024, 4, 1))
    assert window == seasons.parse("2024-03-01T06:00+01:00")
    assert window.end == datetime(2024, 6, 1, 4, tzinfo=UTC)
    assert seasons.window_at(datetime(2024, 2, 1)) is None
    assert (seasons.calendar_unit, repr(seasons)[:30]) == (
        "quarter",
        "Seasons(month=3, timezone='Eur",
    )


def test_its_own_arguments_are_part_of_what_makes_it_equal() -> None:
    assert Seasons() == Seasons(3)
    assert Seasons() != Seasons(4)
    assert Seasons().identity != Seasons(4).identity
    assert Seasons().identity == Seasons(start="2024-01-01").identity
    assert Seasons(4).to_json() == {
        "kind": "seasons",
        "month": 4,
        "timezone": "UTC",
        "start": None,
        "end": None,
        "exclude": [],
        "name": None,
    }
    with pytest.raises(AttributeError, match="frozen"):
        Seasons().month = 5


def test_it_is_the_time_dimension_of_a_product() -> None:
    seasons = Seasons(start="2024-01-01")
    product = PartitionByProduct([PartitionBySequence(["a", "b"]), seasons])
    assert product.time_dimension is seasons
    assert [dimension.name for dimension in product.segment_dimensions] == ["segment"]
    assert product.select("time=2024 segment=b")[0].text == "b|2024-03-01T06:00Z"
    with pytest.raises(DefinitionError, match="at most one time dimension"):
        PartitionByProduct([seasons, Seasons(4)])


def test_exclusions_leave_the_neighbours_alone() -> None:
    seasons = Seasons(start="2024-01-01", end="2025-01-01", exclude=[date(2024, 6, 1)])
    assert [window.text[:10] for window in seasons.windows()] == ["2024-03-01", "2024-09-01"]
    assert seasons.windows()[0].end == datetime(2024, 6, 1, 6, tzinfo=UTC)


@given(span=spans(days=2000), name=zones)
@settings(max_examples=50, deadline=None)
def test_windows_are_those_between_the_boundaries_of_all_years(
    span: tuple[datetime, datetime], name: str
) -> None:
    offsets = zone(name)
    walls = [day for year in range(span[0].year - 2, span[1].year + 3) for day in _days(year)]
    starts = sorted({offsets.first_instant(_wall(day)) for day in walls})
    since, until = (int(instant.timestamp()) for instant in span)
    ticks = YearTicks(_days, offsets)
    expected = [tick for tick in starts if since <= tick < until]
    assert list(ticks.ticks(ticks.rank(since), ticks.rank(until))) == expected
    for start, stop in pairwise(expected):
        number = ticks.number_of(start, stop)
        assert number is not None
        assert (ticks.tick(number), ticks.rank(start), ticks.rank(start + 1)) == (
            start,
            number,
            number + 1,
        )
        assert ticks.number_of(start, stop - 1) is None


def _wall(day: date) -> int:
    return (day - date(1970, 1, 1)).days * 86_400


@given(seed=st.integers(0, 1000))
@settings(max_examples=4, deadline=None)
def test_numbers_do_not_depend_on_what_was_asked_before(seed: int) -> None:
    instants = [_wall(date(year, 5, 4)) for year in (1890, 1969, 1970, 2024, 2031, 2100)]
    fresh = [YearTicks(_days, zone("UTC")).rank(instant) for instant in instants]
    ticks = YearTicks(_days, zone("UTC"))
    order = random.Random(seed).sample(range(len(instants)), len(instants))
    ranks = {place: ticks.rank(instants[place]) for place in order}
    assert [ranks[place] for place in range(len(instants))] == fresh
    assert ticks.ranks(instants) == fresh
    assert ticks.at(fresh) == [ticks.tick(number) for number in fresh]
    assert ticks.rank(ticks.tick(-5000)) == -5000


def test_few_years_are_asked_for() -> None:
    years: list[int] = []

    def rule(year: int) -> list[date]:
        years.append(year)
        return _days(year)

    ticks = YearTicks(rule, zone("UTC"))
    for year in range(2000, 2020):
        ticks.rank(_wall(date(year, 6, 1)))
    assert len(years) == len(set(years)) < 120


def test_a_rule_that_makes_no_sense_is_refused() -> None:
    utc = zone("UTC")
    with pytest.raises(DefinitionError, match="the year before or the year"):
        YearTicks(lambda year: [date(2024, 1, 1)], utc).rank(0)
    with pytest.raises(DefinitionError, match="boundaries ascend"):
        YearTicks(lambda year: [date(year, 7, 1), date(year, 1, 1)], utc).rank(0)
    with pytest.raises(DefinitionError, match="in whole seconds"):
        YearTicks(lambda year: [datetime(year, 1, 1, microsecond=5)], utc).rank(0)


def test_a_calendar_that_covers_some_years_ends_there() -> None:
    class Terms(PartitionByTime, kind="terms"):
        def boundaries(self, year: int) -> list[date]:
            return [date(year, 1, 8), date(year, 9, 1)] if 2020 <= year <= 2024 else []

    terms = Terms(start="2020-01-01", end="2024-12-31")
    assert len(terms.windows()) == 9
    assert isinstance(terms.window_at(datetime(2022, 5, 1)), Interval)
    with pytest.raises(PartitionKeyError, match="lists no boundaries beyond"):
        terms.parse("2024-09-01")


def test_a_definition_without_boundaries_says_what_it_lacks() -> None:
    class Nothing(PartitionByTime, kind="nothing"):
        pass

    with pytest.raises(NotImplementedError, match="neither boundaries nor make_ticks"):
        Nothing().parse("2024-01-01")
