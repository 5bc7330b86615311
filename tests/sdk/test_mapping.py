"""Which upstream partitions a partition needs."""

import json
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise import (
    All,
    DefinitionError,
    Keys,
    Offset,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionDefinition,
    PartitionKey,
    PartitionMapping,
    PartitionSet,
    UnboundedPartitionsError,
    downstream_partitions,
    upstream_partitions,
)
from slicewise.keys import WHOLE
from tests.sdk.strategies import definitions

DAILY = PartitionByInterval("@daily")
HOURLY = PartitionByInterval("@hourly")
MONTHLY = PartitionByInterval("@monthly")
YEARLY = PartitionByInterval("@yearly")
DWHS = PartitionBySequence(["marketing-dwh", "engineering-dwh"])


def _upstream(
    downstream: PartitionDefinition, upstream: PartitionDefinition | None, key: str
) -> PartitionSet:
    return upstream_partitions(downstream, upstream, downstream.parse(key))


def test_a_day_needs_its_24_hours_and_each_hour_makes_its_day_due() -> None:
    needed = _upstream(DAILY, HOURLY, "2024-01-01")
    assert needed.text == "2024-01-01T00:00Z..2024-01-01T23:00Z"
    assert len(needed) == 24
    for key in needed:
        assert downstream_partitions(HOURLY, DAILY, key).text == "2024-01-01"


@pytest.mark.parametrize(("day", "hours"), [("2024-03-10", 23), ("2024-11-03", 25)])
def test_a_day_of_change_needs_the_hours_it_has(day: str, hours: int) -> None:
    zone = "America/New_York"
    daily, hourly = (PartitionByInterval(each, timezone=zone) for each in ("@daily", "@hourly"))
    assert len(_upstream(daily, hourly, day)) == hours


def test_one_year_makes_twelve_months_due() -> None:
    months = downstream_partitions(YEARLY, MONTHLY, YEARLY.parse("2024-01-01"))
    assert (len(months), months.text) == (12, "2024-01-01..2024-12-01")
    assert _upstream(MONTHLY, YEARLY, "2024-05-01").text == "2024-01-01"


def test_shifted_hours_need_two() -> None:
    shifted = PartitionByInterval("30 * * * *")
    needed = _upstream(shifted, HOURLY, "2024-01-01T05:30Z")
    assert [str(key) for key in needed] == ["2024-01-01T05:00Z", "2024-01-01T06:00Z"]


def test_equal_cadences_need_one() -> None:
    assert _upstream(DAILY, DAILY, "2024-01-01").text == "2024-01-01"


def test_24_hours_of_two_segments_are_48_partitions() -> None:
    hours = PartitionByProduct([HOURLY, DWHS])
    days = PartitionByProduct([DAILY, DWHS])
    assert len(_upstream(DAILY, hours, "2024-01-01")) == 48
    assert len(_upstream(days, hours, "2024-01-01|marketing-dwh")) == 24
    hour = hours.parse("2024-01-01T05:00Z|marketing-dwh")
    assert downstream_partitions(hours, days, hour).text == (
        "time=2024-01-01 segment=marketing-dwh"
    )


def test_segments_need_the_equal_one_whatever_the_dimension_is_called() -> None:
    product = PartitionByProduct({"day": DAILY, "dwh": DWHS})
    day = product.parse("2024-01-01|engineering-dwh")
    assert upstream_partitions(product, DWHS, day).text == "engineering-dwh"
    assert upstream_partitions(product, DAILY, day).text == "2024-01-01"


def test_a_segment_that_only_one_side_has_is_told() -> None:
    needed = upstream_partitions(PartitionBySequence(["a", "b"]), PartitionBySequence(["b"]), "a")
    assert (len(needed), needed.nonexistent.segments) == (0, ("a",))


def test_time_before_the_start_and_excluded_windows_are_told_apart_from_what_is_missing() -> None:
    upstream = PartitionByInterval("@daily", start="2024-01-11", exclude=date(2024, 1, 20))
    needed = _upstream(MONTHLY, upstream, "2024-01-01")
    assert len(needed) == 20
    before, excluded = needed.nonexistent.spans
    assert (before.start.date(), before.end.date()) == (date(2024, 1, 1), date(2024, 1, 11))
    assert str(excluded) == "2024-01-20"


def test_the_whole_of_an_unpartitioned_upstream_is_needed_by_every_partition() -> None:
    needed = _upstream(DAILY, None, "2024-01-01")
    assert list(needed) == [WHOLE]
    assert [key.text for key in needed] == [""]


def test_an_unpartitioned_downstream_reads_all_there_is_in_given_bounds() -> None:
    with pytest.raises(UnboundedPartitionsError):
        upstream_partitions(None, DAILY, WHOLE)
    needed = upstream_partitions(None, DAILY, WHOLE, since="2024-01-01", until="2024-02-01")
    assert len(needed) == 31


def test_zones_may_differ() -> None:
    kolkata = PartitionByInterval("@daily", timezone="Asia/Kolkata")
    needed = _upstream(kolkata, DAILY, "2024-01-02")
    assert needed.text == "2024-01-01..2024-01-02"


@given(downstream=definitions, upstream=definitions, data=st.data())
@settings(max_examples=70, deadline=None)
def test_need_is_the_same_seen_from_either_side(
    downstream: PartitionDefinition, upstream: PartitionDefinition, data: st.DataObject
) -> None:
    keys: list[PartitionKey] = list(downstream.keys()[:40])
    if not keys:
        return
    key = data.draw(st.sampled_from(keys))
    needed = list(upstream_partitions(downstream, upstream, key))
    others = list(upstream.keys()[:40])
    for other in needed[:20] + others:
        back = downstream_partitions(upstream, downstream, other)
        assert (key in back) == (other in needed)


@given(downstream=definitions, upstream=definitions, count=st.integers(1, 30))
@settings(max_examples=50, deadline=None)
def test_a_set_needs_what_its_members_need(
    downstream: PartitionDefinition, upstream: PartitionDefinition, count: int
) -> None:
    chosen = PartitionSet.of(downstream, list(downstream.keys()[:60])[::2][:count])
    needed = upstream_partitions(downstream, upstream, chosen)
    one_by_one = PartitionSet(upstream, [])
    for key in chosen:
        one_by_one |= upstream_partitions(downstream, upstream, key)
    assert needed == one_by_one


def test_an_offset_lags_or_slides() -> None:
    bounded = PartitionByInterval("@daily", start="2024-01-01")
    first = bounded.parse("2024-01-01")
    lag = upstream_partitions(bounded, DAILY, first, Offset(-1))
    assert lag.text == "2023-12-31"
    week = upstream_partitions(bounded, DAILY, first, Offset(-6, 0))
    assert week.text == "2023-12-26..2024-01-01"
    assert str(upstream_partitions(bounded, bounded, first, Offset(-1)).nonexistent.spans[0]) == (
        "2023-12-31"
    )


def test_an_offset_counts_excluded_windows() -> None:
    weekdays = PartitionByInterval("@daily", exclude="0 0 * * 6,0")
    monday = weekdays.parse("2024-01-08")
    assert upstream_partitions(weekdays, DAILY, monday, Offset(-1)).text == "2024-01-07"


@given(
    downstream=definitions,
    upstream=definitions,
    first=st.integers(-5, 5),
    size=st.integers(0, 4),
    data=st.data(),
)
@settings(max_examples=50, deadline=None)
def test_an_offset_is_the_same_seen_from_either_side(
    downstream: PartitionDefinition,
    upstream: PartitionDefinition,
    first: int,
    size: int,
    data: st.DataObject,
) -> None:
    keys: list[PartitionKey] = list(downstream.keys()[:40])
    mapping = Offset(first, first + size)
    if not keys or downstream.time_dimension is None:
        return
    key = data.draw(st.sampled_from(keys))
    needed = list(upstream_partitions(downstream, upstream, key, mapping))
    for other in needed[:20] + list(upstream.keys()[:40]):
        back = downstream_partitions(upstream, downstream, other, mapping)
        assert (key in back) == (other in needed)


def test_named_keys_and_all_of_them_are_needed_by_every_partition() -> None:
    named = Keys({"marketing-dwh", "sales-dwh"})
    needed = upstream_partitions(DAILY, DWHS, DAILY.parse("2024-01-01"), named)
    assert (needed.text, needed.nonexistent.segments) == ("marketing-dwh", ("sales-dwh",))
    days = upstream_partitions(DWHS, DAILY, "marketing-dwh", Keys([DAILY.parse("2024-01-05")]))
    assert days.text == "2024-01-05"
    assert downstream_partitions(DWHS, DWHS, "engineering-dwh", named).text == ""
    assert downstream_partitions(DWHS, DWHS, "marketing-dwh", named).text == "*"
    assert len(upstream_partitions(DAILY, DWHS, DAILY.parse("2024-01-01"), All())) == 2


@pytest.mark.parametrize(
    "mapping", [Offset(-1), Offset(-6, 0), All(), Keys(["a", 1, DAILY.parse("2024-01-05")])]
)
def test_a_mapping_comes_back_from_its_json(mapping: PartitionMapping) -> None:
    assert PartitionMapping.from_json(json.loads(json.dumps(mapping.to_json()))) == mapping


def test_bad_mappings_are_refused() -> None:
    with pytest.raises(DefinitionError, match="takes in nothing"):
        Offset(0, -1)
    with pytest.raises(DefinitionError, match="counts windows of time"):
        upstream_partitions(DWHS, DAILY, "marketing-dwh", Offset(-1))
    with pytest.raises(DefinitionError, match="unknown kind"):
        PartitionMapping.from_json({"kind": "nearest"})
