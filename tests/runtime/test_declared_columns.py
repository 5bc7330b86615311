"""A function sees the declared columns of its inlets."""

from typing import Any

import pytest

from slicewise import (
    Asset,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionKeyError,
    asset,
    partition_path,
)
from slicewise.testing import materialize

stock = Asset("stock", columns=["pieces", "name"])


def tried(look: Any) -> Any:
    @asset()
    def reads(stock: Any) -> Any:
        return look(stock)

    return materialize(reads, upstream={stock: []})


def test_a_declared_column_is_an_attribute_of_the_handle() -> None:
    assert tried(lambda stock: f"SELECT {stock.pieces}") == "SELECT pieces"
    assert tried(lambda stock: stock.name) == "stock"
    assert tried(lambda stock: str(stock.column("name"))) == "name"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("peices", "did you mean 'pieces'?"), ("reed", "did you mean 'read'?"), ("xyz", "use one of")],
)
def test_an_unknown_attribute_is_told_with_what_there_is(name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as caught:
        tried(lambda stock: getattr(stock, name))
    assert hint in str(caught.value)
    assert f"the asset 'stock' has no {name!r} in a run" in str(caught.value)


HOURLY = PartitionByInterval("@hourly", timezone="Europe/Berlin", name="hour")
BY_SHOP = PartitionByProduct({"hour": HOURLY, "shop": PartitionBySequence(["süd", "a b"])})


@pytest.mark.parametrize(
    ("definition", "key", "folder"),
    [
        (HOURLY, "2024-11-01T00:00+01:00", "hour=2024-11-01T00%3A00+01%3A00"),
        (BY_SHOP, "2024-11-01T00:00+01:00|süd", "hour=2024-11-01T00%3A00+01%3A00/shop=süd"),
        (PartitionBySequence(["a b", 7]), 7, "partition=7"),
        (None, "", ""),
    ],
)
def test_the_folder_of_a_partition_can_be_asked(definition: Any, key: Any, folder: str) -> None:
    assert partition_path(definition, key) == folder


def test_a_key_that_is_not_there_has_no_folder() -> None:
    with pytest.raises(PartitionKeyError):
        partition_path(BY_SHOP, "2024-11-01T00:00+01:00|west")
