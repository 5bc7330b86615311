"""Mistaken arguments: each refusal is a ValueError that names a valid argument."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

import slicewise
from slicewise import (
    All,
    DefinitionError,
    Interval,
    Latest,
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionDefinition,
    PartitionKey,
    PartitionKeyError,
    PartitionSet,
    SelectionError,
)

DAYS = PartitionByInterval("@daily", start="2024-01-01", end="2024-02-01")
DWHS = PartitionBySequence(["marketing-dwh", "engineering-dwh"])
BOTH = PartitionByProduct({"day": DAYS, "dwh": DWHS})
FOUND = PartitionAtRuntime("customers")
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
sdk: Any = slicewise  # to a type checker, these calls would be wrong


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sdk.PartitionBySequence({"a", "b"}), "a set has no order: write sorted({"),
        (lambda: sdk.PartitionBySequence(frozenset("a")), "a set has no order"),
        (lambda: sdk.PartitionBySequence(None), "takes a list of keys, not None"),
        (lambda: sdk.PartitionBySequence({"a": 1}), "takes a list of keys, not {'a': 1}"),
        (lambda: FOUND.known("abc"), "a snapshot takes a list of keys, not the text 'abc'"),
        (
            lambda: sdk.PartitionByProduct(DWHS),
            "a dict by name, not PartitionBySequence",
        ),
        (
            lambda: sdk.PartitionByProduct(None),
            "or a dict by name, not None",
        ),
        (lambda: sdk.PartitionByProduct("@daily"), "or a dict by name, not '@daily'"),
        (lambda: sdk.PartitionByInterval("@daily", exclude=None), "takes cron texts, dates and"),
        (lambda: sdk.PartitionByInterval("@daily", exclude=5), "dates and datetimes, not 5"),
        (
            lambda: sdk.PartitionByInterval("@daily", exclude=datetime(2024, 1, 1, 0, 0, 0, 5)),
            "windows start at whole seconds, so 2024-01-01 00:00:00.000005 excludes none",
        ),
        (
            lambda: sdk.Interval(NOON, NOON + timedelta(1), None),
            "an IANA name, not None",
        ),
        (lambda: sdk.Offset("a"), "counts windows by whole numbers, not by 'a'"),
        (lambda: sdk.Offset(True), "counts windows by whole numbers, not by True"),
        (lambda: sdk.Offset(-1, 0.5), "counts windows by whole numbers, not by 0.5"),
        (lambda: sdk.Offset(None), "counts windows by whole numbers, not by None"),
        (lambda: sdk.Keys(None), "Keys takes a list of keys, not None"),
        (
            lambda: sdk.PartitionDefinition.from_json(None),
            "None is no JSON of a partition",
        ),
        (lambda: sdk.PartitionMapping.from_json([]), "[] is no JSON of a partition mapping"),
        (
            lambda: sdk.upstream_partitions("day", DAYS, []),
            "downstream is a partition def",
        ),
        (lambda: sdk.upstream_partitions(DAYS, "day", []), "upstream is a partition definition or"),
        (
            lambda: sdk.upstream_partitions(DAYS, DAYS, [], Latest),
            "such as Offset(-1), Latest()",
        ),
        (lambda: sdk.downstream_partitions(DAYS, DAYS, [], "all"), "Latest() or All(), not 'all'"),
    ],
)
def test_a_wrong_argument_is_a_definition_error(make: Callable[[], object], message: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(message)):
        make()


@pytest.mark.parametrize("wrong", [None, 5, date(2024, 1, 1), ["2024-01-01"]])
@pytest.mark.parametrize("definition", [DAYS, DWHS, BOTH, FOUND, FOUND.known(["a"])])
def test_only_texts_are_parsed_as_key_texts(definition: PartitionDefinition, wrong: Any) -> None:
    with pytest.raises(PartitionKeyError, match="a key text is a text, not"):
        definition.parse(wrong)


@pytest.mark.parametrize("wrong", [None, 5, date(2024, 1, 1), ["2024-01-01"]])
def test_only_texts_are_read_as_selections(wrong: Any) -> None:
    with pytest.raises(SelectionError, match="a selection is a text"):
        DAYS.select(wrong)


@pytest.mark.parametrize(
    "wrong", ["2024-01-01", date(2024, 1, 1), datetime(2024, 1, 1), NOON.replace(microsecond=1)]
)
def test_a_window_is_made_of_aware_datetimes(wrong: Any) -> None:
    message = (
        "is not an aware datetime in whole seconds; a key text is read by its definition's parse"
    )
    with pytest.raises(PartitionKeyError, match=message):
        Interval(wrong, NOON)
    with pytest.raises(PartitionKeyError, match=message):
        Interval(NOON, wrong)


def test_a_set_of_keys_by_text_says_who_reads_texts() -> None:
    with pytest.raises(PartitionKeyError, match="names no partition; a key text is read by parse"):
        PartitionSet.of(DAYS, ["2024-01-01"])


def test_a_metaclass_cannot_change_how_keys_are_made() -> None:
    with pytest.raises(DefinitionError, match="derive from PartitionKey alone"):

        class Meta(type(PartitionKey)):  # type: ignore[misc]
            def __call__(cls, *fields: object) -> object:
                return 5


def test_definitions_keys_and_sets_are_frozen() -> None:
    (key,) = DAYS.select("2024-01-01")
    pair = BOTH.parse("2024-01-01|marketing-dwh")
    chosen = DAYS.select("2024-01-01..2024-01-05")
    for thing, name in (
        (DAYS, "timezone"),
        (key, "start"),
        (key, "first_second"),
        (pair, "parts"),
        (pair, "names"),
        (chosen, "definition"),
        (chosen, "window_ranges"),
        (All(), "kind"),
    ):
        with pytest.raises(AttributeError):
            setattr(thing, name, None)
        with pytest.raises(AttributeError):
            delattr(thing, name)
