"""The selection grammar, and sets of partitions."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise import (
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionDefinition,
    PartitionKeyError,
    PartitionSet,
    SelectionError,
)
from slicewise.partitions.selected_sets import select_ranges
from tests.sdk.strategies import definitions

DAILY = PartitionByInterval("@daily", start="2023-01-01", end="2025-01-01")
SEGMENTS = PartitionBySequence(["marketing-dwh", "eng-a", "eng-b", "eng-c"])
PRODUCT = PartitionByProduct({"date": DAILY, "dwh": SEGMENTS})


def _texts(definition: PartitionDefinition, selection: str) -> list[str]:
    return [key.text for key in definition.select(selection)]


def test_a_star_selects_all_partitions_of_a_product() -> None:
    product = PartitionByProduct(
        {"region": PartitionBySequence(["a", "b"]), "size": PartitionBySequence(["x", "y"])}
    )
    assert len(product.select("*")) == 4
    assert len(PRODUCT.select("*", until="2024-01-04")) == len(
        PRODUCT.select("date=* dwh=*", until="2024-01-04")
    )


def test_one_key_a_range_and_a_union_select_days() -> None:
    assert _texts(DAILY, "2024-01-01") == ["2024-01-01"]
    assert _texts(DAILY, " 2024-02-28 .. 2024-03-01 ") == ["2024-02-28", "2024-02-29", "2024-03-01"]
    assert _texts(DAILY, "2024-01-05,2024-01-01") == ["2024-01-01", "2024-01-05"]


@pytest.mark.parametrize(
    ("text", "first", "last", "count"),
    [
        ("2024", "2024-01-01", "2024-12-31", 366),
        ("2024-Q1", "2024-01-01", "2024-03-31", 91),
        ("2024-02", "2024-02-01", "2024-02-29", 29),
        ("2024-W05", "2024-01-29", "2024-02-04", 7),
        ("2024-01..2024-03", "2024-01-01", "2024-03-31", 91),
        ("*", "2023-01-01", "2024-12-31", 731),
    ],
)
def test_a_period_selects_all_windows_that_start_in_it(
    text: str, first: str, last: str, count: int
) -> None:
    chosen = DAILY.select(text)
    assert (len(chosen), chosen.text) == (count, f"{first}..{last}")


def test_products_take_a_selection_for_each_dimension() -> None:
    assert _texts(PRODUCT, "date=2024-01-01..2024-01-02 dwh=marketing-dwh,eng-b") == [
        "2024-01-01|marketing-dwh",
        "2024-01-01|eng-b",
        "2024-01-02|marketing-dwh",
        "2024-01-02|eng-b",
    ]
    assert len(PRODUCT.select("date=2024-01 dwh=eng*")) == 31 * 3
    assert len(PRODUCT.select("date=2024-01")) == 31 * 4
    assert len(PRODUCT.select("dwh=eng-a..eng-c date=2024-01-01")) == 3
    assert _texts(PRODUCT, "2024-01-02|eng-a, 2024-01-01|eng-b") == [
        "2024-01-01|eng-b",
        "2024-01-02|eng-a",
    ]


def test_bounds_of_a_call_narrow_what_is_selected() -> None:
    open_ended = PartitionByInterval("@daily", start="2024-01-01")
    until = datetime(2024, 1, 10, 12)
    assert open_ended.select("*", until=until).text == "2024-01-01..2024-01-09"
    with pytest.raises(
        SelectionError,
        match="2024-01-10 has not ended yet; the last partition that has ended is 2024-01-09",
    ):
        open_ended.select("2024-01-05..2024-01-10", until=until)


@pytest.mark.parametrize(
    ("definition", "text", "position", "reason"),
    [
        (DAILY, "", 0, "nothing is selected"),
        (DAILY, "2024-13", 0, "month 13 does not exist"),
        (DAILY, "2024-01-01..yesterday", 12, "not a time"),
        (DAILY, "2024-01-01..9999-12-31", 12, "between the years"),
        (DAILY, "2024-02-01..2024-01-01", 12, "comes before"),
        (DAILY, "2024-01-01,,2024-01-03", 11, "missing"),
        (DAILY, "2024-01-01..", 12, "missing"),
        (DAILY, "2024-01-01..2026-01-01", 12, "after the last partition, 2024-12-31"),
        (DAILY, "2022", 0, "before the first partition, 2023-01-01"),
        (DAILY, "2024-01-01T06:00Z", 0, "no partition starts in"),
        (PartitionByInterval("@monthly"), "2024-01-15", 0, "2024-01-01 contains it"),
        (PartitionByInterval("@daily"), "*", 0, "all of time"),
        (
            PartitionByInterval("@daily", exclude="0 0 * * 6,0"),
            "2024-01-06",
            0,
            "excluded; the last one before is 2024-01-05; the first one after is 2024-01-08",
        ),
        (
            PartitionByInterval("@daily", end="2024-01-08", exclude="0 0 * * 6,0"),
            "2024-01-05..2024-01-06,2024-01-07",
            23,
            "excluded; the last one before is 2024-01-05",
        ),
        (SEGMENTS, "marketing-dw", 0, "did you mean marketing-dwh"),
        (SEGMENTS, "eng-a,sales*", 6, "no segment matches"),
        (PRODUCT, "date=2024 color=red", 10, "the dimensions are date, dwh"),
        (PRODUCT, "date=2024 date=2023", 10, "named twice"),
        (PRODUCT, "2024 dwh=eng-a", 0, "date=\\* dwh=\\*"),
        (PRODUCT, "date= dwh=eng-a", 0, "names no key"),
    ],
)
def test_an_error_points_at_the_character(
    definition: PartitionDefinition, text: str, position: int, reason: str
) -> None:
    with pytest.raises(SelectionError, match=reason) as caught:
        definition.select(text)
    assert caught.value.position == position
    assert str(caught.value).endswith(f"\n  {text}\n  {' ' * position}^")


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("*", ["ab", "aba", "b"]),
        ("a*", ["ab", "aba"]),
        ("*b", ["ab", "b"]),
        ("a*a", ["aba"]),
        ("b*b", []),
        ("*a*", ["ab", "aba"]),
        ("a**b", ["ab"]),
        ("*b*a", ["aba"]),
    ],
)
def test_stars_stand_for_anything_also_nothing(pattern: str, texts: list[str]) -> None:
    listed = PartitionBySequence(["ab", "aba", "b"])
    if texts:
        assert _texts(listed, pattern) == texts
    else:
        with pytest.raises(SelectionError, match="no segment matches"):
            listed.select(pattern)


def test_many_stars_take_no_longer() -> None:
    listed = PartitionBySequence(["a" * 240])
    with pytest.raises(SelectionError, match="no segment matches"):
        listed.select("*a" * 110 + "*b")


def test_a_selection_of_endless_length_is_refused_before_it_is_read() -> None:
    with pytest.raises(SelectionError, match="at most 10,000 characters, not 220,000") as refused:
        DAILY.select("2024-01-01," * 20_000)
    assert len(str(refused.value)) < 200


def test_a_time_that_the_clock_reads_twice_asks_for_its_offset() -> None:
    hourly = PartitionByInterval("@hourly", timezone="America/New_York")
    with pytest.raises(SelectionError, match="01:00-04:00 or 2024-11-03T01:00-05:00"):
        hourly.select("2024-11-03T01:00")
    with pytest.raises(SelectionError, match="never reads"):
        hourly.select("2024-03-10T02:00")
    assert len(hourly.select("2024-11-03T01:00-05:00")) == 1


def test_a_range_over_excluded_windows_is_one_range() -> None:
    weekdays = PartitionByInterval("@daily", exclude="0 0 * * 6,0")
    chosen = weekdays.select("2024-01-04..2024-01-09")
    assert chosen.text == "2024-01-04..2024-01-09"
    assert (len(chosen), len(chosen.ranges)) == (4, 1)


def test_a_set_of_a_million_keys_stays_small() -> None:
    minutely = PartitionByInterval("* * * * *")
    chosen = minutely.select("2023..2024")
    assert len(chosen) == 1_052_640
    assert len(chosen.window_ranges) == 1
    assert len((chosen - minutely.select("2024-02-29")).ranges) == 2


def test_sets_of_different_definitions_do_not_mix() -> None:
    with pytest.raises(PartitionKeyError, match="different"):
        DAILY.select("2024") | SEGMENTS.select("*")


@st.composite
def pairs_of_sets(draw: st.DrawFn) -> tuple[PartitionSet, PartitionSet]:
    definition = draw(definitions)
    keys = list(definition.keys()[:60])
    picks = st.lists(st.sampled_from(keys), max_size=20) if keys else st.just([])
    first, second = (PartitionSet.of(definition, draw(picks)) for _ in range(2))
    return first, second


@given(pair=pairs_of_sets())
@settings(max_examples=80, deadline=None)
def test_sets_of_partitions_obey_the_algebra_of_sets(
    pair: tuple[PartitionSet, PartitionSet],
) -> None:
    first, second = pair
    left_keys, right_keys = set(first), set(second)
    assert set(first | second) == left_keys | right_keys
    assert set(first & second) == left_keys & right_keys
    assert set(first - second) == left_keys - right_keys
    assert not any(key in (first | second) - second for key in second)
    assert len(first | second) == len(left_keys | right_keys)
    assert (first | second) == (second | first)
    assert all((key in first) == (key in left_keys) for key in left_keys | right_keys)


@given(pair=pairs_of_sets())
@settings(max_examples=80, deadline=None)
def test_a_set_is_read_back_from_its_text(pair: tuple[PartitionSet, PartitionSet]) -> None:
    union = pair[0] | pair[1]
    if union:
        assert union.definition is not None
        assert union.definition.select(union.text) == union
    else:
        assert union.text == ""


@given(pair=pairs_of_sets(), start=st.integers(0, 25), size=st.integers(0, 25))
@settings(max_examples=50, deadline=None)
def test_slices_of_a_set_are_sets_of_the_same_order(
    pair: tuple[PartitionSet, PartitionSet], start: int, size: int
) -> None:
    union = pair[0] | pair[1]
    listed = list(union)
    assert list(union[start : start + size]) == listed[start : start + size]
    assert [union[place] for place in range(len(listed))] == listed


@given(pair=pairs_of_sets())
@settings(max_examples=50, deadline=None)
def test_ranges_are_minimal(pair: tuple[PartitionSet, PartitionSet]) -> None:
    union = pair[0] | pair[1]
    for first, second in zip(union.ranges, union.ranges[1:], strict=False):
        assert first.last is not None
        assert second.first is not None
        assert first.last.end <= second.first.start
        between = union.space.count(
            union.space.time.number_at(first.last.first_second) + 1,
            union.space.time.number_at(second.first.first_second),
        )
        assert between or first.segments != second.segments


def test_order_is_by_start_also_where_texts_do_not_sort() -> None:
    berlin = PartitionByInterval("@hourly", timezone="Europe/Berlin")
    keys = list(berlin.select("2024-10-27"))
    assert keys == sorted(keys)
    assert keys[3].start - keys[2].start == timedelta(hours=1)
    assert [key.text for key in keys[2:4]] == ["2024-10-27T02:00+02:00", "2024-10-27T02:00+01:00"]


def test_terms_come_in_the_order_in_which_they_are_listed() -> None:
    terms = select_ranges(DAILY, "2024-02-03..2024-02-04, 2024-02; 2024-01-01")
    assert [term.text for term in terms] == [
        "2024-02-03..2024-02-04",
        "2024-02-01..2024-02-02,2024-02-05..2024-02-29",
        "2024-01-01",
    ]


def test_a_text_that_nobody_typed_may_be_longer() -> None:
    text = ",".join(key.text for key in DAILY.select("2023,2024"))
    text = f"{text},{text}"
    with pytest.raises(SelectionError, match="at most 10,000 characters"):
        DAILY.select(text)
    assert len(select_ranges(DAILY, text, longest=None)) == 731


def test_with_nothing_a_set_stays_as_it_is() -> None:
    some, empty = DAILY.select("2024-01"), PartitionSet.of(DAILY, [])
    assert (some | empty, some - empty, empty | some) == (some, some, some)
    with pytest.raises(PartitionKeyError, match="different"):
        some | PartitionSet.of(SEGMENTS, [])
