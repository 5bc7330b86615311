"""Which upstream partitions a partition needs."""

import json
from datetime import date

import pytest

from slicewise import (
    All,
    DefinitionError,
    Keys,
    Latest,
    Offset,
    Overlap,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionDefinition,
    PartitionKeyError,
    PartitionMapping,
    PartitionSet,
    UnboundedPartitionsError,
    downstream_partitions,
    upstream_partitions,
)
from slicewise.keys.product_key import WHOLE

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
    daily, hourly = (
        PartitionByInterval(cadence, timezone=zone) for cadence in ("@daily", "@hourly")
    )
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


def test_segments_pair_by_the_name_of_their_dimension() -> None:
    product = PartitionByProduct({"day": DAILY, "dwh": DWHS})
    day = product.parse("2024-01-01|engineering-dwh")
    named = PartitionBySequence(["marketing-dwh", "engineering-dwh"], name="dwh")
    assert upstream_partitions(product, named, day).text == "engineering-dwh"
    assert upstream_partitions(product, DAILY, day).text == "2024-01-01"
    # Another name is another dimension, of which all is needed.
    assert upstream_partitions(product, DWHS, day).text == "*"


def test_different_dimensions_do_not_pair_because_each_side_has_one_left() -> None:
    hours = PartitionByProduct({"hour": HOURLY, "region": PartitionBySequence(["north", "south"])})
    days = PartitionByProduct({"day": DAILY, "product": PartitionBySequence(["shoes", "hats"])})
    needed = upstream_partitions(days, hours, "2024-01-01|shoes")
    assert (len(needed), needed.nonexistent.segments) == (48, ())
    back = downstream_partitions(hours, days, "2024-01-01T05:00Z|north")
    assert back.text == "day=2024-01-01 product=*"


def test_dimensions_that_nobody_named_pair_by_the_names_they_have_then() -> None:
    regions = PartitionBySequence(["north", "south"])
    listed = PartitionByProduct([HOURLY, regions])
    # `partition` of a lone sequence, `segment` of a list.
    assert upstream_partitions(listed, regions, "2024-01-01T05:00Z|south").text == "south"
    back = downstream_partitions(regions, listed, "north", since="2024-01-01", until="2024-01-02")
    assert (len(back), {key["segment"] for key in back}) == (24, {"north"})
    two = PartitionByProduct([HOURLY, regions, PartitionBySequence(["shoes", "hats"])])
    assert upstream_partitions(two, listed, "2024-01-01T05:00Z|south|hats").text == (
        "time=2024-01-01T05:00Z segment=south"
    )


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


def test_named_keys_and_all_of_them_are_needed_by_every_partition() -> None:
    named = Keys({"marketing-dwh", "sales-dwh"})
    needed = upstream_partitions(DAILY, DWHS, DAILY.parse("2024-01-01"), named)
    assert (needed.text, needed.nonexistent.segments) == ("marketing-dwh", ("sales-dwh",))
    days = upstream_partitions(DWHS, DAILY, "marketing-dwh", Keys([DAILY.parse("2024-01-05")]))
    assert days.text == "2024-01-05"
    assert downstream_partitions(DWHS, DWHS, "engineering-dwh", named).text == ""
    assert downstream_partitions(DWHS, DWHS, "marketing-dwh", named).text == "*"
    assert len(upstream_partitions(DAILY, DWHS, DAILY.parse("2024-01-01"), All())) == 2


def test_the_latest_is_the_last_window_that_has_ended_of_the_equal_segments() -> None:
    upstream = PartitionByProduct({"day": PartitionByInterval("@daily"), "dwh": DWHS})
    downstream = PartitionByProduct({"hour": HOURLY, "dwh": DWHS})
    hour = downstream.parse("2020-01-01T05:00Z|marketing-dwh")
    now = "2024-02-10T12:00Z"
    needed = upstream_partitions(downstream, upstream, hour, Latest(), until=now)
    assert needed.text == "day=2024-02-09 dwh=marketing-dwh"
    day = upstream.parse("2024-02-09|marketing-dwh")
    since = "2024-02-09"
    back = downstream_partitions(upstream, downstream, day, Latest(), since=since, until=now)
    assert back.text == "hour=2024-02-09T00:00Z..2024-02-10T11:00Z dwh=marketing-dwh"
    day = upstream.parse("2024-02-08|marketing-dwh")
    assert not downstream_partitions(upstream, downstream, day, Latest(), since=since, until=now)
    with pytest.raises(UnboundedPartitionsError, match="pass until="):
        upstream_partitions(downstream, upstream, hour, Latest())


def test_the_latest_keeps_to_bounds_and_exclusions() -> None:
    days = PartitionByInterval("@daily", end="2024-01-08", exclude="0 0 * * 6,0")
    assert upstream_partitions(DWHS, days, "marketing-dwh", Latest()).text == "2024-01-05"
    never = PartitionByInterval("@daily", end="2024-01-08", exclude="@daily")
    assert not upstream_partitions(DWHS, never, "marketing-dwh", Latest())
    future = PartitionByInterval("@daily", start="2030-01-01")
    assert not upstream_partitions(DWHS, future, "marketing-dwh", Latest(), until="2024-01-01")


def test_a_window_that_is_not_the_latest_makes_nothing_due() -> None:
    hours = PartitionByInterval("@hourly", start="2024-01-01", end="2024-01-02")
    first, last = hours.keys()[0], hours.keys()[-1]
    for downstream in (None, DWHS):
        assert not downstream_partitions(hours, downstream, first, Latest())
        assert downstream_partitions(hours, downstream, last, Latest())


def test_the_latest_of_a_list_is_its_last_key() -> None:
    day = DAILY.parse("2024-01-01")
    assert upstream_partitions(DAILY, DWHS, day, Latest()).text == "engineering-dwh"
    assert upstream_partitions(DAILY, None, day, Latest()).text == ""
    assert len(upstream_partitions(DAILY, None, day, Latest())) == 1


def test_a_window_in_keys_is_that_window_in_any_zone() -> None:
    berlin = PartitionByInterval("@daily", timezone="Europe/Berlin")
    named = Keys([DAILY.parse("2024-01-05")])
    needed = upstream_partitions(DWHS, berlin, "marketing-dwh", named)
    assert (len(needed), needed.nonexistent.spans) == (0, (DAILY.parse("2024-01-05"),))
    for key in (date(2024, 1, 5), "2024-01-05", berlin.parse("2024-01-05")):
        needed = upstream_partitions(DWHS, berlin, "marketing-dwh", Keys([key]))
        assert list(needed) == [berlin.parse("2024-01-05")]


def test_named_keys_of_products_are_needed() -> None:
    product = PartitionByProduct({"day": DAILY, "dwh": DWHS})
    key = product.parse("2024-01-05|marketing-dwh")
    for named in (Keys([key]), Keys(["2024-01-05|marketing-dwh"])):
        assert list(upstream_partitions(DWHS, product, "engineering-dwh", named)) == [key]
        assert len(downstream_partitions(product, DWHS, key, named)) == 2
    assert not upstream_partitions(
        product, DWHS, PartitionSet(product, []), Keys(["marketing-dwh"])
    )
    assert not upstream_partitions(DAILY, DWHS, DAILY.parse("2024-01-01"), Keys([]))
    assert not downstream_partitions(DWHS, DAILY, "marketing-dwh", Keys([]))


def test_segments_of_equal_text_are_equal_only_if_their_keys_are() -> None:
    numbers, texts = PartitionBySequence([1, 2]), PartitionBySequence(["1", "2"])
    needed = upstream_partitions(numbers, texts, 1)
    assert (len(needed), needed.nonexistent.segments) == (0, ("1",))
    assert upstream_partitions(numbers, PartitionBySequence([1.0, 2.0]), 1).text == "1"


@pytest.mark.parametrize(
    ("mapping", "downstream", "upstream"),
    [
        (Offset(-1), DWHS, DAILY),
        (Offset(-1), None, DAILY),
        (Keys(["a"]), DAILY, None),
    ],
)
def test_a_mapping_that_makes_no_sense_is_refused_before_it_is_used(
    mapping: PartitionMapping,
    downstream: PartitionDefinition | None,
    upstream: PartitionDefinition | None,
) -> None:
    with pytest.raises(DefinitionError):
        mapping.check(downstream, upstream)
    for good in (Offset(-1), All(), Latest(), Keys(["a"])):
        good.check(DAILY, DWHS)


@pytest.mark.parametrize(
    "mapping",
    [
        Offset(-1),
        Offset(-6, 0),
        Offset(-6, 0, nonexistent="ignore"),
        Overlap(nonexistent="ignore"),
        All(),
        Latest(),
        Keys(["a", 1, date(2024, 1, 5), DAILY.parse("2024-01-05")]),
        Keys([PartitionByProduct([DAILY, DWHS]).parse("2024-01-05|marketing-dwh")]),
    ],
)
def test_a_mapping_comes_back_from_its_json(mapping: PartitionMapping) -> None:
    assert PartitionMapping.from_json(json.loads(json.dumps(mapping.to_json()))) == mapping


def test_bad_mappings_are_refused() -> None:
    with pytest.raises(DefinitionError, match="selects no window"):
        Offset(0, -1)
    with pytest.raises(DefinitionError, match="counts windows of time"):
        upstream_partitions(DWHS, DAILY, "marketing-dwh", Offset(-1))
    with pytest.raises(DefinitionError, match="takes a list of keys"):
        Keys("marketing-dwh")
    for spec in ({"kind": "nearest"}, {}, {"kind": "offset", "by": 3}, {"kind": "keys"}):
        with pytest.raises(DefinitionError, match=r"unknown kind|bad JSON"):
            PartitionMapping.from_json(spec)


def test_keys_may_be_given_as_key_texts_plain_values_and_lists() -> None:
    days = DAILY.windows("2024-01-01", "2024-01-04")
    three = upstream_partitions(DAILY, HOURLY, PartitionSet.of(DAILY, days))
    for keys in (days, list(days), set(days), ["2024-01-01", days[1], "2024-01-03"], iter(days)):
        assert upstream_partitions(DAILY, HOURLY, keys) == three
    assert len(upstream_partitions(DAILY, HOURLY, "2024-01-01")) == 24
    assert len(downstream_partitions(YEARLY, MONTHLY, "2024-01-01")) == 12
    both = PartitionByProduct({"day": DAILY, "dwh": DWHS})
    named = PartitionBySequence(["marketing-dwh", "engineering-dwh"], name="dwh")
    (needed,) = upstream_partitions(both, named, "2024-01-01|marketing-dwh")
    assert needed.value == "marketing-dwh"
    spaced = PartitionBySequence(["a b", "a%20b"])  # a key itself comes before the text of another
    assert list(upstream_partitions(spaced, spaced, "a b")) == ["a b"]
    assert list(upstream_partitions(spaced, spaced, "a%20b")) == ["a%20b"]
    assert list(upstream_partitions(spaced, spaced, "a%2520b")) == ["a%20b"]
    with pytest.raises(PartitionKeyError, match="'nope' is none of the 2 segments"):
        upstream_partitions(DWHS, DWHS, "nope")


def test_the_one_partition_of_what_is_not_partitioned_needs_no_name() -> None:
    bounded = PartitionByInterval("@daily", start="2024-01-01", end="2024-01-04")
    for partition in (None, "", WHOLE, [None]):
        assert len(upstream_partitions(None, bounded, partition)) == 3
        assert len(downstream_partitions(None, bounded, partition)) == 3


def test_windows_beyond_the_calendar_are_not_counted_as_nonexistent() -> None:
    far = upstream_partitions(DAILY, DAILY, "2024-01-05", Offset(-(10**9), 0))
    bounded = PartitionByInterval("@daily", start="2024-01-01")
    needed = upstream_partitions(DAILY, bounded, "2024-01-05", Offset(-(10**9), 0))
    (before,) = needed.nonexistent.spans
    assert before.start.year == 1
    assert str(before.end.date()) == "2024-01-01"
    assert DAILY.parse("2024-01-05") in far


@pytest.mark.parametrize("number", [-(10**9), -30_000, 10**9])
@pytest.mark.parametrize("start", [None, "2024-01-01"])
def test_an_offset_that_leaves_the_calendar_is_refused(number: int, start: str | None) -> None:
    monthly = PartitionByInterval("@monthly", start=start)
    with pytest.raises(DefinitionError, match="selects no window"):
        upstream_partitions(monthly, monthly, "2024-06-01", Offset(number))


def test_the_key_of_an_asset_that_is_not_partitioned_is_none() -> None:
    needed = upstream_partitions(DAILY, None, "2024-06-01")
    assert None in needed
    assert PartitionSet.of(None, [None]) == needed
    assert None not in upstream_partitions(DAILY, DAILY, "2024-06-01")


def test_named_keys_are_shown_in_one_order() -> None:
    shown = "Keys([1, 'a', 'b', datetime.date(2024, 1, 5)])"
    assert repr(Keys({"b", date(2024, 1, 5), 1, "a"})) == shown
