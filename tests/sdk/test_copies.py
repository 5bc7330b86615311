"""Values arrive unchanged in another process: pickled, and copied."""

import copy
import pickle
from typing import Any

import pytest

from slicewise import (
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionKey,
    PartitionSet,
    upstream_partitions,
)
from slicewise.keys.product_key import WHOLE

DAYS = PartitionByInterval("@daily", start="2024-01-01", end="2024-03-01", exclude="0 0 * * 0")
DWHS = PartitionBySequence(["marketing-dwh", "engineering-dwh"])
BOTH = PartitionByProduct({"day": DAYS, "dwh": DWHS})
FOUND = PartitionAtRuntime("customers")


def again(thing: Any) -> list[Any]:
    return [pickle.loads(pickle.dumps(thing)), copy.copy(thing), copy.deepcopy(thing)]


@pytest.mark.parametrize(
    "chosen",
    [
        DAYS.select("2024-01,2024-02-20"),
        DWHS.select("*"),
        BOTH.select("day=2024-01 dwh=eng*; day=2024-02"),
        FOUND.select("a,b"),
        PartitionSet.of(None, [WHOLE]),
        PartitionSet(DAYS, ()),
    ],
)
def test_a_set_of_partitions_arrives_whole(chosen: PartitionSet) -> None:
    assert again(chosen) == [chosen] * 3
    for copied in again(chosen):
        assert (list(copied), copied.text, copied.ranges) == (
            list(chosen),
            chosen.text,
            chosen.ranges,
        )


def test_a_copied_set_keeps_its_nonexistent_partitions() -> None:
    later = PartitionByInterval("@daily", start="2024-02-01")
    needed = upstream_partitions(DAYS, later, DAYS.select("2024-01-30..2024-02-02"))
    assert needed.nonexistent
    assert [copied.nonexistent for copied in again(needed)] == [needed.nonexistent] * 3


@pytest.mark.parametrize("definition", [DAYS, DWHS, BOTH])
def test_lazy_keys_are_equal_to_a_list_of_them_and_to_their_copies(definition: Any) -> None:
    keys = definition.keys()
    assert keys == list(keys)
    assert keys != list(keys)[1:]
    for copied in again(keys):
        assert copied == keys
        assert list(copied) == list(keys)


def test_a_snapshot_goes_with_its_set() -> None:
    for copied in again(FOUND.known(["a", 2])):
        assert list(copied.values.texts) == ["a", "2"]
        assert copied == FOUND


def test_keys_of_all_kinds_arrive() -> None:
    keys: list[PartitionKey] = [
        DAYS.parse("2024-01-01"),
        DWHS.parse("marketing-dwh"),
        BOTH.parse("2024-01-01|engineering-dwh"),
        WHOLE,
    ]
    for key in keys:
        assert again(key) == [key] * 3
