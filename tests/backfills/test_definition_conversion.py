"""Partitions of one definition as partitions of another: the same keys, where both definitions
partition alike.
"""

import pytest

import slicewise
from backfills_app.services.partitions.definition_conversion import (
    by_definition,
    in_present_definition,
)
from slicewise import PartitionAtRuntime, PartitionByInterval, PartitionByProduct
from slicewise import PartitionBySequence as Sequence
from slicewise.keys.product_key import WHOLE

DAILY = PartitionByInterval("@daily", start="2024-03-24", end="2024-04-07")
SHORTER = PartitionByInterval(
    "@daily", start="2024-03-26", end="2024-04-03", exclude=["0 0 * * 6,0"]
)
HOURLY = PartitionByInterval("@hourly", start="2024-03-24", end="2024-03-26")
SHOPS, OTHER_SHOPS = Sequence(["a", "b", "c"], name="shop"), Sequence(["d", "c", "a"], name="shop")
FOUND = PartitionAtRuntime("shop")


def by_shop(
    days: PartitionByInterval, shops: slicewise.PartitionBySequence
) -> slicewise.PartitionByProduct:
    """Define days by shops."""
    return PartitionByProduct({"day": days, "shop": shops})


@pytest.mark.parametrize(
    ("own_definition", "other_definition"),
    [
        (DAILY, SHORTER),
        (SHORTER, DAILY),
        (SHOPS, OTHER_SHOPS),
        (by_shop(DAILY, SHOPS), by_shop(SHORTER, OTHER_SHOPS)),
        (FOUND.known(["a", "b", "c"]), FOUND.known(["d", "c", "a"])),
    ],
    ids=["shorter", "longer", "segments", "product", "runtime"],
)
def test_partitions_of_both_are_those_of_equal_keys(
    own_definition: slicewise.PartitionDefinition, other_definition: slicewise.PartitionDefinition
) -> None:
    chosen = slicewise.PartitionSet.of(own_definition, _keys(own_definition))
    other_keys = {str(key) for key in _keys(other_definition)}
    both = [str(key) for key in chosen if str(key) in other_keys]
    translated = by_definition(other_definition, chosen)
    assert sorted(str(key) for key in translated) == sorted(both)
    assert len(translated) == len(both) > 0
    # Numbered as the other one numbers them.
    assert (
        translated & slicewise.PartitionSet.of(other_definition, _keys(other_definition))
        == translated
    )
    assert [str(key) for key in in_present_definition(other_definition, chosen)] == both
    assert in_present_definition(own_definition, chosen) == chosen


def test_definitions_that_partition_differently_share_no_partition() -> None:
    for own_definition, other_definition in [(DAILY, HOURLY), (DAILY, None), (None, DAILY)]:
        chosen = slicewise.PartitionSet.of(own_definition, _keys(own_definition))
        assert not by_definition(other_definition, chosen)
        assert by_definition(other_definition, chosen).definition == other_definition
        assert not in_present_definition(other_definition, chosen)


def _keys(definition: slicewise.PartitionDefinition | None) -> list[object]:
    return [WHOLE] if definition is None else list(definition.keys())
