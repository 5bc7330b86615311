"""Definitions as values: JSON, equality, identity, and refused arguments."""

import json
import pickle
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings

from slicewise import (
    DefinitionError,
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionDefinition,
    PartitionKey,
    PartitionKeyError,
    UnboundedPartitionsError,
)
from tests.sdk.strategies import definitions


@given(definition=definitions)
@settings(max_examples=70, deadline=None)
def test_a_definition_comes_back_from_its_json(definition: PartitionDefinition) -> None:
    back = PartitionDefinition.from_json(json.loads(json.dumps(definition.to_json())))
    assert back == definition
    assert (back.fingerprint, back.identity) == (definition.fingerprint, definition.identity)
    assert list(back.keys()[:20]) == list(definition.keys()[:20])
    assert pickle.loads(pickle.dumps(definition)) == definition


@given(definition=definitions)
@settings(max_examples=70, deadline=None)
def test_keys_come_back_from_their_texts(definition: PartitionDefinition) -> None:
    keys = definition.keys()
    listed = list(keys)[:100]
    assert definition.count() == len(keys)
    assert [definition.parse(key.text) for key in listed] == listed
    assert [definition.text(key) for key in listed] == [key.text for key in listed]
    assert len({key.text for key in listed}) == len(listed)
    assert [keys[place] for place in range(len(listed))] == listed
    assert all(key in definition for key in listed)


def test_every_plain_value_comes_back_as_it_was() -> None:
    values = [
        "a b",
        7,
        2.5,
        date(2024, 1, 1),
        time(6, 30),
        datetime(2024, 1, 1, 6),
        datetime(2024, 1, 1, 6, tzinfo=UTC),
        timedelta(minutes=90),
        Decimal("0.1"),
        UUID(int=5),
        (1, "x", (2, 3)),
        frozenset({"b", "a"}),
    ]
    sequence = PartitionBySequence(values)
    spec = json.loads(json.dumps(sequence.to_json()))
    back = PartitionDefinition.from_json(spec)
    assert [key.value for key in list(back.keys())] == values
    assert all(value in sequence for value in values)


def test_equal_numbers_are_one_key_and_texts_are_another() -> None:
    assert PartitionKey.of(1) == PartitionKey.of(True) == PartitionKey.of(1.0)
    assert len({PartitionKey.of(value).text for value in (1, 1.0, True, Decimal(1))}) == 1
    numbers = PartitionBySequence([1, 2])
    assert 1.0 in numbers
    assert "1" not in numbers
    assert numbers != PartitionBySequence(["1", "2"])


@pytest.mark.parametrize("value", [{}, [1], None, object(), float("nan"), ""])
def test_values_that_cannot_be_keys_are_refused(value: object) -> None:
    with pytest.raises(PartitionKeyError):
        PartitionKey.of(value)


def test_the_refusal_of_a_dict_says_what_to_use() -> None:
    with pytest.raises(PartitionKeyError, match="use a PartitionKey"):
        PartitionKey.of({"x": 1})


def test_spelling_does_not_tell_definitions_apart() -> None:
    assert PartitionByInterval("@daily") == PartitionByInterval("00  0 * * *")
    assert PartitionByInterval("@daily", start=date(2024, 1, 1)) == PartitionByInterval(
        "@daily", start=datetime(2024, 1, 1, tzinfo=UTC)
    )
    assert PartitionByInterval("@daily") != PartitionByInterval("@daily", timezone="Asia/Kolkata")


def test_identity_knows_no_bounds_exclusions_or_lists() -> None:
    plain = PartitionByInterval("@daily")
    bounded = PartitionByInterval("@daily", start="2024-01-01", exclude="0 0 * * 6")
    assert plain.identity == bounded.identity
    assert plain.identity != PartitionByInterval("@daily", name="day").identity
    assert plain.identity != PartitionByInterval("@hourly").identity
    assert PartitionBySequence(["a"]).identity == PartitionBySequence(["a", "b"]).identity


def test_identity_of_a_timedelta_knows_its_alignment() -> None:
    step = timedelta(hours=6)
    at_midnight = PartitionByInterval(step, start=datetime(2024, 1, 1))
    later = PartitionByInterval(step, start=datetime(2024, 1, 2))
    shifted = PartitionByInterval(step, start=datetime(2024, 1, 1, 1))
    assert at_midnight.identity == later.identity != shifted.identity
    assert str(shifted.keys(until=datetime(2024, 1, 2))[0]) == "2024-01-01T01:00Z"


def test_dimensions_have_names() -> None:
    daily, words = PartitionByInterval("@daily"), PartitionBySequence(["a"])
    product = PartitionByProduct([daily, words, PartitionBySequence(["b"])])
    assert [dimension.name for dimension in product.dimensions] == ["time", "segment", "segment_2"]
    assert product.time_dimension == daily
    assert daily.dimensions[0].name == "partition"
    key = product.parse("2024-01-01|a|b")
    assert (key["segment"], key["time"], key.segment) == ("a", daily.parse("2024-01-01"), "a|b")
    assert key.time == daily.parse("2024-01-01")
    with pytest.raises(PartitionKeyError, match="the dimensions are time, segment"):
        key["dwh"]


@pytest.mark.parametrize(
    ("cadence", "unit"),
    [
        ("*/5 * * * *", "minute"),
        ("@hourly", "hour"),
        ("0 */2 * * *", "hour"),
        ("@daily", "day"),
        ("0 0 * * 1-5", "day"),
        ("@weekly", "week"),
        ("@monthly", "month"),
        ("@quarterly", "quarter"),
        ("@yearly", "year"),
        (timedelta(days=10), "other"),
    ],
)
def test_a_cadence_has_a_unit_to_be_drawn_in(cadence: str | timedelta, unit: str) -> None:
    assert PartitionByInterval(cadence).calendar_unit == unit


@pytest.mark.parametrize(
    ("cadence", "reason"),
    [
        ("@fortnightly", "unknown preset '@fortnightly': use one of @hourly"),
        ("* * * *", "five fields"),
        ("0 0 0 * * *", "five fields"),
        ("61 * * * *", "bad cron expression"),
        ("R * * * *", "are random"),
        ("H(0-5) * * * *", "are random"),
        ("0 0 31 2 *", "never ticks"),
        ("* * * * * 2030", "five fields, '\\* \\* \\* \\* \\* 2030' has 6"),
        ("", "five fields, '' has 0"),
        (
            "0 24 * * *",
            r"bad cron expression '0 24 .*': '24' is no value of the hour: write 0 to 23",
        ),
        ("0 0 0 * *", "bad cron expression"),
        ("0 0 * 13 *", "'13' is no value of the month: write 1 to 12"),
        ("0 0 * * 8", "bad cron expression"),
        ("*/0 * * * *", "bad cron expression"),
        ("0 0 LW * *", "bad cron expression"),
        ("0 0 * * L", "bad cron expression"),
        ("0 0 * * 5L", "bad cron expression"),
        ("0 0 * * 5#6", "bad cron expression"),
        ("0 0 15W,20 * *", "bad cron expression"),
        ("0 0 * * 1,5#2", "cannot be mixed with plain weekdays"),
        ("0 0 * * 0-6,L5", "cannot be mixed with plain weekdays"),
        ("30-30 * * * *", r"write 30 for one value, or \* for all, not 30-30"),
        ("0 0 * * sun-SUN", "write sun for one value"),
        ("0 0 * * 7-0", "write 7 for one value"),
        ("0 H * * *", "R and H cannot be used in '0 H"),
        ("0 0 R(1-5) * *", "R and H cannot be used"),
        ("0 0 30,31 2 *", "'0 0 30,31 2 \\*' never ticks"),
        (timedelta(hours=-1), "positive number of whole seconds, not -1 day, 23:00:00"),
        (timedelta(microseconds=1), "whole seconds, not 0:00:00.000001"),
        (timedelta(days=40_000), "at most 36,525 days"),
        ({"seconds": 10**30}, "at most 36,525 days"),
        (timedelta(0), "positive"),
        (timedelta(milliseconds=1500), "whole seconds"),
        (3600, "a preset, a cron text or a timedelta"),
    ],
)
def test_a_bad_cadence_is_refused(cadence: Any, reason: str) -> None:
    with pytest.raises(DefinitionError, match=reason):
        PartitionByInterval(cadence)


def test_bad_bounds_and_zones_are_refused() -> None:
    with pytest.raises(DefinitionError, match="unknown time zone 'Mars/Base'"):
        PartitionByInterval("@daily", timezone="Mars/Base")
    with pytest.raises(DefinitionError, match="unknown time zone"):
        PartitionByInterval("@daily", timezone="../tzdata/zones")
    with pytest.raises(DefinitionError, match="comes before the start"):
        PartitionByInterval("@daily", start="2024-01-02", end="2024-01-01")
    with pytest.raises(DefinitionError, match="give a time zone to both, or to neither"):
        PartitionByInterval(
            "@daily", start=datetime(2024, 1, 1), end=datetime(2024, 1, 2, tzinfo=UTC)
        )


def test_texts_of_bounds_are_checked_like_datetimes() -> None:
    with pytest.raises(DefinitionError, match="give a time zone to both, or to neither"):
        PartitionByInterval("@daily", start="2024-01-01T00:00", end="2024-01-02T00:00Z")
    with pytest.raises(DefinitionError, match="'soon' is not a date or time"):
        PartitionByInterval("@daily", start="soon")
    zone = ZoneInfo("America/New_York")
    first, second = (datetime(2024, 11, 3, 1, 30, tzinfo=zone, fold=fold) for fold in (0, 1))
    with pytest.raises(DefinitionError, match="comes before the start"):
        PartitionByInterval("*/5 * * * *", start=second, end=first)


def test_a_key_found_at_run_time_comes_back_from_its_text() -> None:
    customers = PartitionAtRuntime(name="active_customers")
    assert customers.text("Müller & Co") == "M%C3%BCller%20%26%20Co"
    assert customers.parse(customers.text("Müller & Co")).value == "Müller & Co"
    assert PartitionDefinition.from_json(customers.to_json()) == customers


def test_bad_products_and_sequences_are_refused() -> None:
    daily, words = PartitionByInterval("@daily"), PartitionBySequence(["a"])
    with pytest.raises(DefinitionError, match="at most one time dimension, not a, b"):
        PartitionByProduct({"a": daily, "b": PartitionByInterval("@hourly")})
    with pytest.raises(DefinitionError, match="not runtime"):
        PartitionByProduct([daily, PartitionAtRuntime("customers")])
    with pytest.raises(DefinitionError, match="no name for a dimension"):
        PartitionByProduct({"a=b": words})
    with pytest.raises(DefinitionError, match="at least one key"):
        PartitionBySequence([])
    with pytest.raises(DefinitionError, match="text 'a'"):
        PartitionBySequence(["a", "b", "a"])
    with pytest.raises(DefinitionError, match="a list of keys, not the text"):
        PartitionBySequence("abc")


def test_keys_that_no_column_would_hold_are_refused() -> None:
    days = PartitionByInterval("@daily", start="2024-01-01", end="2024-01-03")
    long = PartitionBySequence(["a", "\N{SNOWMAN}" * 55])  # nine characters each, encoded
    assert len(PartitionByProduct({"a": long, "b": long}).keys()) == 4
    for dimensions in (
        {"day": days, "a": long, "b": long},
        {"a": long, "b": long, "c": long},
    ):
        with pytest.raises(DefinitionError, match="a key has at most 1,000 characters, not 1,"):
            PartitionByProduct(dimensions)


def test_listing_without_bounds_is_refused() -> None:
    daily = PartitionByInterval("@daily", start="2024-01-01")
    with pytest.raises(UnboundedPartitionsError, match="no end: write end=, or pass until="):
        daily.keys()
    assert len(daily.keys(until="2024-01-11")) == 10
    with pytest.raises(UnboundedPartitionsError, match="found at run time"):
        PartitionAtRuntime("customers").keys()


def test_definitions_are_frozen() -> None:
    with pytest.raises(AttributeError, match="frozen"):
        PartitionByInterval("@daily").timezone = "Europe/Berlin"


def test_unknown_json_is_refused() -> None:
    with pytest.raises(DefinitionError, match="unknown kind"):
        PartitionDefinition.from_json({"kind": "triangle"})
    with pytest.raises(DefinitionError, match="bad JSON"):
        PartitionDefinition.from_json({"kind": "product"})


@pytest.mark.parametrize(
    "definition",
    [
        PartitionByInterval("@daily"),
        PartitionBySequence(["a"]),
        PartitionAtRuntime("customers"),
        PartitionByProduct([PartitionBySequence(["a"]), PartitionBySequence(["b"], name="b")]),
    ],
)
def test_json_with_a_field_that_no_definition_has_is_refused(
    definition: PartitionDefinition,
) -> None:
    with pytest.raises(DefinitionError, match="timezon"):
        PartitionDefinition.from_json({**definition.to_json(), "timezon": "Europe/Berlin"})


def test_bounds_are_read_on_the_clock_of_the_zone() -> None:
    first = datetime(2024, 11, 3, 1)
    hourly = PartitionByInterval("@hourly", timezone="America/New_York", start=first)
    second = PartitionByInterval(
        "@hourly", timezone="America/New_York", start=first.replace(fold=1)
    )
    until = datetime(2024, 11, 4)
    assert hourly.count(until=until) == second.count(until=until) + 1
    assert hourly.to_json()["start"] == "2024-11-03T01:00:00-04:00"


def test_texts_are_the_shortest_unique_form() -> None:
    def text(cadence: str, zone: str = "UTC") -> str:
        window = PartitionByInterval(cadence, timezone=zone).window_at(datetime(2024, 7, 3, 12, 40))
        return str(window)

    assert text("@daily") == "2024-07-03"
    assert text("@weekly") == "2024-06-30"
    assert text("@monthly") == "2024-07-01"
    assert text("@hourly") == "2024-07-03T12:00Z"
    assert text("30 * * * *", "Asia/Kolkata") == "2024-07-03T12:30+05:30"
    assert text("0 6 * * *", "Europe/Berlin") == "2024-07-03T06:00+02:00"
