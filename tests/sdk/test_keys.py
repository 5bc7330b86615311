"""Plain values as keys, with order and labels; sets found at run time with a snapshot."""

import pickle
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slicewise import (
    DefinitionError,
    Interval,
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionDefinition,
    PartitionKey,
    PartitionKeyError,
    ProductKey,
    UnboundedPartitionsError,
)
from slicewise.keys.key_json import key_from_json, key_to_json
from slicewise.keys.product_key import WHOLE
from tests.sdk.key_classes import Position, Shop
from tests.sdk.key_values import keys
from tests.sdk.strategies import ZONES

NEW_YORK = ZoneInfo("America/New_York")


@given(value=keys)
@settings(max_examples=150, deadline=None)
def test_a_plain_value_is_wrapped_and_unwrapped(value: Any) -> None:
    key = PartitionKey.of(value)
    assert PartitionKey.of(key.value) == key == PartitionKey.of(key)
    assert key_from_json(key_to_json(key)) == key
    assert pickle.loads(pickle.dumps(key)) == key
    assert re.fullmatch(r"(?:[A-Za-z0-9_.~-]|%[0-9A-F]{2})+", key.text)
    assert ".." not in key.text


@given(values=st.lists(keys, min_size=3, max_size=3))
@settings(max_examples=80, deadline=None)
def test_keys_of_all_types_have_one_order(values: list[Any]) -> None:
    first, second, third = sorted(map(PartitionKey.of, values))
    assert first <= second <= third
    assert third >= first
    assert (first < third) or first == third
    assert sorted([third, second, first]) == [first, second, third]


def test_kinds_of_values_stay_together_in_order() -> None:
    values = [
        *(-1, Decimal("0.5"), 2, 10, float("inf")),
        *("10", "2", "a"),
        *(date(2024, 1, 1), date(2024, 1, 2)),
        *(datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),
        *((1, "b"), ("a", 1)),
        *(frozenset({1}), frozenset({1, 2}), frozenset({"a"})),
    ]
    assert sorted(map(PartitionKey.of, reversed(values))) == values
    windows = PartitionByInterval("@daily", start="2024-01-01", end="2024-01-03").keys()
    mixed = [*windows, WHOLE, Position(1, 2, 3), PartitionKey.of("a"), Shop("b")]
    backwards = mixed[::-1]
    assert sorted(mixed) == sorted(backwards)


def test_equal_values_are_one_key() -> None:
    for equal in (
        [1, 1.0, True, Decimal(1), Decimal("1.00")],
        [0, 0.0, -0.0, False],
        [10**20, 1e20, Decimal("1e20")],
        [datetime(2024, 1, 1, 12, tzinfo=UTC), datetime(2024, 1, 1, 7, tzinfo=NEW_YORK)],
        [time(6, tzinfo=UTC), time(8, tzinfo=timezone(timedelta(hours=2)))],
        [(1, True), (1.0, 1)],
        [frozenset({1, 2}), frozenset({2.0, True})],
    ):
        assert len({PartitionKey.of(value) for value in equal}) == 1
        assert len({PartitionKey.of(value).text for value in equal}) == 1


def test_both_passes_of_a_fold_are_two_keys() -> None:
    first, second = (
        PartitionKey.of(datetime(2024, 11, 3, 1, 30, tzinfo=NEW_YORK, fold=fold)) for fold in (0, 1)
    )
    assert first < second
    assert (first.label, second.label) == ("2024-11-03T05:30:00Z", "2024-11-03T06:30:00Z")
    assert second.value.isoformat() == "2024-11-03T01:30:00-05:00"


def test_values_of_subclasses_become_plain() -> None:
    class Colour(StrEnum):
        RED = "red"

    class Pair(tuple[Any, ...]):
        pass

    assert type(PartitionKey.of(Colour.RED).value) is str
    assert PartitionKey.of(Colour.RED) == PartitionKey.of("red")
    assert type(PartitionKey.of(Pair([Colour.RED, 1])).value) is tuple


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"x": 1}, "{'x': 1} (dict) cannot be a partition key: use a PartitionKey with fields"),
        ([1], "[1] (list) cannot be a partition key: use a tuple"),
        ({1}, "{1} (set) cannot be a partition key: use a frozenset"),
        (None, "None (NoneType) cannot be a partition key: leave the key out"),
        (b"a", "b'a' (bytes) cannot be a partition key: use one of str, bool, int"),
        ((1, [2]), "[2] (list) cannot be a partition key: use a tuple"),
        (float("nan"), "NaN cannot be a partition key"),
        (Decimal("sNaN"), "NaN cannot be a partition key"),
        pytest.param(10**5000, "a number with more than 250 digits cannot be", id="huge"),
        (Decimal("1e999999"), "a number with more than 250 digits"),
        (Decimal("1e-999999"), "a number with more than 250 digits"),
        ("", "the empty text is no partition key"),
        ("a\0", "the text 'a\\x00' cannot be a partition key: the text holds a control character"),
        ("a\nb", "the text 'a\\nb' cannot be a partition key: the text holds a control character"),
        ("\ud800", "the text '\\ud800' cannot be a partition key: the text holds half a character"),
        ("a\u2028b", "the text 'a\\u2028b' cannot be a partition key: the text holds a line or"),
        ("__HIVE_DEFAULT_PARTITION__", "'__HIVE_DEFAULT_PARTITION__' cannot be a partition key"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=9))), "0001-01-01 00:00:00+09:00"),
        (time(6, tzinfo=NEW_YORK), "datetime.time(6, 0, tzinfo=zoneinfo.ZoneInfo(key='America/New"),
    ],
)
def test_the_refusal_of_a_value_says_what_to_use(value: object, message: str) -> None:
    with pytest.raises(PartitionKeyError) as refused:
        PartitionKey.of(value)
    assert str(refused.value).startswith(message)
    with pytest.raises(DefinitionError) as declared:
        PartitionBySequence([value])
    assert str(declared.value) == str(refused.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (("a", 1, date(2024, 1, 1)), "a~1~2024-01-01"),
        (("1", ("a", "b~c")), "_1~%28a~b%257Ec%29"),
        (frozenset({"b", "a"}), "a~b"),
        ((), "%28%29"),
        (Decimal("9.90"), "9.9"),
        (timedelta(minutes=90), "PT5400S"),
        ("Zürich..Genf", "Z%C3%BCrich.%2EGenf"),
        (time(0, 30, tzinfo=timezone(timedelta(hours=1))), "-00%3A30%3A00Z"),
    ],
)
def test_key_texts_can_be_read(value: object, text: str) -> None:
    assert PartitionKey.of(value).text == text


def test_two_keys_of_equal_text_are_refused_by_name() -> None:
    with pytest.raises(DefinitionError, match="have the text '1': 1 and '1'"):
        PartitionBySequence([2, 1, "1"])
    with pytest.raises(DefinitionError, match=r"the text '1~2~3': Position\(.*\) and \(1, 2, 3\)"):
        PartitionBySequence([Position(1, 2, 3), (1, 2, 3)])


def test_windows_and_products_are_no_segments() -> None:
    window = Interval(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC))
    for key in (window, ProductKey(["a"], [1]), WHOLE):
        with pytest.raises(DefinitionError, match="is no segment: use a plain value, or a key"):
            PartitionBySequence([key])


@pytest.mark.parametrize(
    ("cadence", "moment", "label"),
    [
        ("0 0 * * 1", datetime(2024, 2, 1), "2024-W05"),
        ("0 0 * * 1", datetime(2024, 12, 31), "2025-W01"),
        ("@weekly", datetime(2024, 2, 1), "2024-01-28"),
        ("@monthly", datetime(2024, 2, 1), "2024-02"),
        ("@quarterly", datetime(2024, 5, 1), "2024-Q2"),
        ("@yearly", datetime(2024, 5, 1), "2024"),
        ("@daily", datetime(2024, 2, 1), "2024-02-01"),
        ("0 6 * * 1", datetime(2024, 2, 1), "2024-01-29T06:00"),
        ("0 0 1 */2 *", datetime(2024, 2, 1), "2024-01-01"),
    ],
)
@pytest.mark.parametrize("zone", ZONES)
def test_labels_name_weeks_months_quarters_and_years(
    zone: str, cadence: str, moment: datetime, label: str
) -> None:
    window = PartitionByInterval(cadence, timezone=zone).window_at(moment)
    assert window is not None
    assert window.label.startswith(label)
    assert len(window.label) == len(label) or "T" in label


@pytest.mark.parametrize("zone", [*ZONES, "Pacific/Kwajalein", "Pacific/Kiritimati"])
def test_every_window_of_a_calendar_period_has_its_label(zone: str) -> None:
    for cadence, form in (
        ("0 0 * * 1", r"\d{4}-W\d\d"),
        ("@monthly", r"\d{4}-\d\d"),
        ("@quarterly", r"\d{4}-Q\d"),
        ("@yearly", r"\d{4}"),
    ):
        windows = PartitionByInterval(cadence, timezone=zone).keys("1990-01-01", "2030-01-01")
        labels = [window.label for window in windows]
        assert len(set(labels)) == len(labels)
        assert [label for label in labels if not re.fullmatch(form, label)] == []
    sundays = PartitionByInterval("@weekly", timezone=zone).keys("1990-01-01", "2030-01-01")
    assert all(window.label == window.text for window in sundays)


def test_labels_of_products_join_those_of_their_parts() -> None:
    product = PartitionByProduct(
        {
            "month": PartitionByInterval("@monthly", start="2024-01-01", end="2024-02-01"),
            "place": PartitionBySequence([Position(1.0, 2.0, 3.0)]),
            "shop": PartitionBySequence(["Zürich HB"]),
        }
    )
    (key,) = product.keys()
    assert key.label == "2024-01 | (1.0, 2.0, 3.0) | Zürich HB"
    assert key.text == "2024-01-01|1~2~3|Z%C3%BCrich%20HB"
    assert product.parse(key.text) == key
    assert key["place"] == Position(1, 2, 3)


def test_a_day_of_25_hours_has_25_keys() -> None:
    hours = PartitionByInterval(
        "@hourly", timezone="America/New_York", start="2024-11-03", end="2024-11-04"
    )
    product = PartitionByProduct({"hour": hours, "place": PartitionBySequence([Position(1, 2, 3)])})
    for definition in (hours, product):
        listed = list(definition.keys())
        for property_ in ("text", "label"):
            assert len({getattr(key, property_) for key in listed}) == 25
        assert len(set(listed)) == 25
        assert all(first < second for first, second in pairwise(listed))
        assert [definition.parse(key.text) for key in listed] == listed
        assert [key_from_json(key_to_json(key)) for key in listed] == listed


def test_a_key_whose_folder_would_be_too_long_is_refused() -> None:
    fits = 255 - len("partition=")
    assert PartitionBySequence(["x" * fits]).count() == 1
    assert PartitionBySequence(["/" * (fits // 3)]).count() == 1
    for make in (
        lambda: PartitionBySequence(["a", "x" * (fits + 1)]),
        lambda: PartitionBySequence(["/" * (fits // 3 + 1)]),  # three bytes each, escaped
        lambda: PartitionBySequence(["\N{SNOWMAN}" * (fits // 3 + 1)]),
        lambda: PartitionBySequence(["x" * fits], name="a_longer_name"),
        lambda: PartitionByProduct({"a_longer_name": PartitionBySequence(["x" * fits])}),
        lambda: PartitionBySequence([Shop("x" * fits)]),
    ):
        with pytest.raises(DefinitionError, match="file systems take at most 255"):
            make()


def test_a_set_found_at_run_time_lists_the_keys_of_its_snapshot() -> None:
    definition = PartitionAtRuntime("places")
    snapshot = definition.known(["b", "a1", Position(1, 2, 3), "a2", "b", Position(1.0, 2, 3)])
    assert list(snapshot.values.texts) == ["b", "a1", "1~2~3", "a2"]
    assert len(snapshot.keys()) == snapshot.count() == len(snapshot.values) == 4
    assert [key.text for key in snapshot.select("a*")] == ["a1", "a2"]
    assert snapshot.parse("1~2~3") == Position(1, 2, 3)
    assert Position(1, 2, 3) in snapshot
    assert "c" not in snapshot
    assert snapshot.text("not found yet") == "not%20found%20yet"
    with pytest.raises(PartitionKeyError, match="'c' is none of the 4 segments"):
        snapshot.parse("c")
    assert list(definition.known([]).keys()) == []
    assert "a" not in definition.known([])
    with pytest.raises(DefinitionError, match="have the text '1': 1 and '1'"):
        definition.known([1, "1"])


def test_a_snapshot_is_no_part_of_the_definition() -> None:
    definition = PartitionAtRuntime("places")
    snapshot = definition.known(["a"])
    assert snapshot == definition == definition.known(["b"])
    assert hash(snapshot) == hash(definition)
    assert (snapshot.fingerprint, snapshot.identity) == (
        definition.fingerprint,
        definition.identity,
    )
    assert snapshot.to_json() == definition.to_json() == {"kind": "runtime", "name": "places"}
    for look in _looks(PartitionDefinition.from_json(snapshot.to_json())):
        with pytest.raises(UnboundedPartitionsError, match="only the server has the list"):
            look()


def _looks(definition: Any) -> Iterator[Callable[[], object]]:
    yield definition.keys
    yield lambda: definition.values
    yield lambda: definition.space
    yield lambda: pickle.loads(pickle.dumps(definition)).keys()


def test_without_a_snapshot_any_text_is_a_key() -> None:
    definition = PartitionAtRuntime("places")
    key = definition.parse("1~2~3")
    assert (key.value, key.text) == ("1~2~3", "1~2~3")
    assert definition.parse(definition.text("Müller & Co")).value == "Müller & Co"


def test_partitions_are_added_by_a_run_alone() -> None:
    with pytest.raises(RuntimeError, match="no run is active here"):
        PartitionAtRuntime("places").add_partition(key="a")
