"""Needed, excluded and out-of-bounds partitions, against a walk over all windows one by one."""

import json
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from slicewise import (
    DefinitionError,
    Keys,
    Offset,
    Overlap,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionDefinition,
    PartitionMapping,
    PartitionSet,
    downstream_partitions,
    upstream_partitions,
)
from tests.sdk.reference_ticks import walked_ticks, zone_of

WORKDAYS = PartitionByInterval("@daily", start="2024-01-08", exclude="0 0 * * 6,0")
MONTHLY = PartitionByInterval("@monthly")
DAILY = PartitionByInterval("@daily")
FIRST, LAST = datetime(2024, 2, 1, tzinfo=UTC), datetime(2024, 5, 1, tzinfo=UTC)


def test_a_month_of_working_days_is_complete_without_its_weekends() -> None:
    needed = upstream_partitions(MONTHLY, WORKDAYS, "2024-02-01")
    assert (len(needed), needed.excluded.partitions) == (21, 8)
    assert not needed.blocking
    assert needed.nonexistent.spans == needed.excluded.spans
    assert [str(span.start.date()) for span in needed.excluded.spans] == [
        "2024-02-03", "2024-02-10", "2024-02-17", "2024-02-24",
    ]  # fmt: skip


def test_windows_before_the_start_block_and_are_counted_one_by_one() -> None:
    needed = upstream_partitions(MONTHLY, WORKDAYS, "2024-01-01")
    assert (len(needed), needed.blocking.partitions, needed.excluded.partitions) == (18, 5, 8)
    assert (needed.blocking.first, needed.blocking.last) == ("2024-01-01", "2024-01-05")
    assert needed.nonexistent.partitions == 13


def test_ignored_partitions_do_not_block_and_are_still_named() -> None:
    for key, mapping in (
        ("2024-01-01", Overlap(nonexistent="ignore")),
        ("2024-02-01", Offset(-1, nonexistent="ignore")),
    ):
        needed = upstream_partitions(MONTHLY, WORKDAYS, key, mapping)
        assert len(needed) == 18
        assert not needed.blocking
        assert needed.nonexistent.partitions == 13
        assert (
            upstream_partitions(
                MONTHLY,
                WORKDAYS,
                key,
                type(mapping).from_json(mapping.to_json() | {"nonexistent": "need"}),
            ).blocking.partitions
            == 5
        )


def test_a_segment_that_the_upstream_lacks_blocks_whatever_is_ignored() -> None:
    upstream = PartitionByProduct({"day": WORKDAYS, "shop": PartitionBySequence(["north"])})
    downstream = PartitionByProduct({"month": MONTHLY, "shop": PartitionBySequence(["south"])})
    ignore = Overlap(nonexistent="ignore")
    needed = upstream_partitions(downstream, upstream, "2024-01-01|south", ignore)
    assert (len(needed), needed.blocking.segments, needed.blocking.partitions) == (
        0,
        ("south",),
        18,
    )


def test_named_keys_that_are_excluded_are_needed_by_nobody() -> None:
    sunday, before = DAILY.parse("2024-01-14"), DAILY.parse("2024-01-04")
    needed = upstream_partitions(MONTHLY, WORKDAYS, "2024-01-01", Keys([sunday, before]))
    assert needed.nonexistent.spans == (before, sunday)
    assert (needed.excluded.spans, needed.blocking.spans) == ((sunday,), (before,))
    week = PartitionByInterval("@weekly").parse("2024-01-07")
    odd = upstream_partitions(MONTHLY, MONTHLY, "2024-01-01", Keys([week]))
    assert (odd.blocking.spans, odd.blocking.partitions) == ((week,), 1)


def test_how_nonexistent_is_written() -> None:
    with pytest.raises(DefinitionError, match='"need" or "ignore", not \'skip\''):
        Overlap(nonexistent="skip")  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match='"need" or "ignore"'):
        PartitionMapping.from_json({"kind": "offset", "first": -1, "nonexistent": 1})
    for mapping in (Overlap(), Overlap("ignore"), Offset(-6, 0, nonexistent="ignore")):
        assert PartitionMapping.from_json(json.loads(json.dumps(mapping.to_json()))) == mapping
    # As it was stored before there was a choice, and as it goes on being stored.
    stored = {"kind": "offset", "first": -6, "last": 0}
    assert Offset(-6, 0).to_json() == stored
    assert PartitionMapping.from_json(stored) == Offset(-6, 0, nonexistent="need")


def test_overlap_speaks_of_windows_on_both_sides() -> None:
    shops = PartitionBySequence(["north"])
    for downstream, upstream in ((shops, DAILY), (DAILY, shops), (DAILY, None), (None, DAILY)):
        with pytest.raises(DefinitionError, match="has none"):
            Overlap().check(downstream, upstream)
    assert upstream_partitions(MONTHLY, WORKDAYS, "2024-02-01", Overlap()) == upstream_partitions(
        MONTHLY, WORKDAYS, "2024-02-01"
    )


@dataclass(frozen=True)
class Side:
    """Windows of one asset between FIRST and LAST, walked tick by tick, and the definition."""

    definition: PartitionDefinition
    unbounded: PartitionByInterval
    windows: list[tuple[datetime, datetime]]
    excluded: frozenset[tuple[datetime, datetime]]
    outside: frozenset[tuple[datetime, datetime]]
    shops: tuple[str, ...]

    def exists(self, window: tuple[datetime, datetime]) -> bool:
        return window not in self.excluded and window not in self.outside

    def text(self, window: tuple[datetime, datetime], shop: str) -> str:
        key = str(self.unbounded.window_at(window[0]))
        return f"{key}|{shop}" if shop else key


@cache
def _walked(cadence: str, zone: str) -> list[tuple[datetime, datetime]]:
    return list(pairwise(walked_ticks(cadence, zone, FIRST, LAST)))


@st.composite
def sides(draw: st.DrawFn, cadences: list[str]) -> Side:
    cadence = draw(st.sampled_from(cadences))
    zone = draw(st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata"]))
    days = st.dates(FIRST.date(), LAST.date())
    weekends, holidays = draw(st.booleans()), draw(st.frozensets(days, max_size=3))
    start, end = draw(st.none() | days), draw(st.none() | days)
    if start and end and end < start:
        start, end = end, start
    shops = tuple(draw(st.lists(st.sampled_from("abc"), unique=True, max_size=3)))
    interval = PartitionByInterval(
        cadence, timezone=zone, start=start, end=end,
        exclude=(*(["0 0 * * 6,0"] if weekends else []), *sorted(holidays)),
    )  # fmt: skip
    definition: PartitionDefinition = interval
    if shops:
        definition = PartitionByProduct({"time": interval, "shop": PartitionBySequence(shops)})
    windows = _walked(cadence, zone)

    def local(instant: datetime) -> datetime:
        return instant.astimezone(zone_of(zone))

    def is_excluded(window: tuple[datetime, datetime]) -> bool:
        start = local(window[0])
        is_midnight = (start.hour, start.minute) == (0, 0)
        return start.date() in holidays or (weekends and start.weekday() > 4 and is_midnight)

    def is_outside(window: tuple[datetime, datetime]) -> bool:
        start_time, ended = (local(instant).replace(tzinfo=None) for instant in window)
        return bool(start and start_time < _midnight(start)) or bool(end and ended > _midnight(end))

    return Side(
        definition,
        PartitionByInterval(cadence, timezone=zone),
        windows,
        frozenset(filter(is_excluded, windows)),
        frozenset(filter(is_outside, windows)),
        shops,
    )


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def _reached(
    downstream: Side, upstream: Side, window: tuple[datetime, datetime], first: int, last: int
) -> Iterator[tuple[datetime, datetime]]:
    place = downstream.windows.index(window)
    for downstream_window in downstream.windows[place + first : place + last + 1]:
        for window_start, ended in upstream.windows:
            if window_start < downstream_window[1] and ended > downstream_window[0]:
                yield window_start, ended


@given(
    downstream=sides(["@daily", "@weekly", "0 0 * * 1", "30 12 * * *"]),
    upstream=sides(["@daily", "0 */6 * * *", "0 12 * * *", "@weekly"]),
    reach=st.tuples(st.integers(-2, 1), st.integers(0, 2)),
    nonexistent=st.sampled_from(["need", "ignore"]),
    plain=st.booleans(),
    data=st.data(),
)
@settings(max_examples=60, deadline=None, phases=[Phase.generate])
def test_needed_partitions_equal_those_of_a_walk_over_all_windows(
    downstream: Side,
    upstream: Side,
    reach: tuple[int, int],
    nonexistent: Any,
    plain: bool,
    data: st.DataObject,
) -> None:
    first, last = (0, 0) if plain else (reach[0], reach[0] + reach[1])
    mapping: PartitionMapping = Offset(first, last, nonexistent=nonexistent)
    if plain:
        mapping = Overlap(nonexistent=nonexistent)
    # Windows near the ends of what was walked may need some that were not.
    middle = [
        window for window in downstream.windows
        if FIRST + timedelta(days=30) < window[0] < LAST - timedelta(days=40)
        and downstream.exists(window)
    ]  # fmt: skip
    keys = [(window, shop) for window in middle for shop in downstream.shops or ("",)]
    if not keys:
        return
    chosen = data.draw(st.lists(st.sampled_from(keys), min_size=1, max_size=4, unique=True))
    reached = {
        (upstream_window, segment, shop)
        for window, shop in chosen
        for upstream_window in _reached(downstream, upstream, window, first, last)
        for segment in ({shop} if downstream.shops and upstream.shops else upstream.shops or {""})
    }
    pairs = {
        (upstream_window, segment)
        for upstream_window, segment, _ in reached
        if upstream_window not in upstream.excluded
    }
    excluded = {
        (upstream_window, segment)
        for upstream_window, segment, _ in reached
        if upstream_window in upstream.excluded
    }
    outside = {pair for pair in pairs if pair[0] in upstream.outside}
    lost = {pair for pair in pairs - outside if pair[1] not in (upstream.shops or ("",))}
    blocking = lost | (outside if nonexistent == "need" else set())
    needed = pairs - outside - lost
    texts = [downstream.text(*pair) for pair in chosen]
    partitions = upstream_partitions(downstream.definition, upstream.definition, texts, mapping)
    assert set(map(str, partitions)) == {upstream.text(*pair) for pair in needed}
    assert partitions.excluded.partitions == len(excluded)
    assert partitions.blocking.partitions == len(blocking)
    assert bool(partitions.blocking) == bool(blocking)
    assert _seconds(partitions.excluded.spans) == {
        second for (start, end), _ in excluded for second in _hours(start, end)
    }
    assert set(partitions.blocking.segments) == {
        shop for _, shop in blocking if shop and shop not in upstream.shops
    }
    for key in partitions:
        back = downstream_partitions(upstream.definition, downstream.definition, key, mapping)
        assert set(texts) & set(map(str, back))


def _hours(start: datetime, ended: datetime) -> Iterator[float]:
    while start < ended:
        yield start.timestamp()
        start += timedelta(minutes=30)


def _seconds(spans: Any) -> set[float]:
    return {second for span in spans for second in _hours(span.start, span.end)}


def test_a_set_carries_what_does_not_exist_to_another_process() -> None:
    needed = upstream_partitions(MONTHLY, WORKDAYS, "2024-01-01")
    copied: PartitionSet = pickle.loads(pickle.dumps(needed))
    assert (copied.excluded, copied.blocking) == (needed.excluded, needed.blocking)
