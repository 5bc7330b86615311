"""Declared columns as attributes of their asset."""

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from slicewise import (
    Asset,
    DefinitionError,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    asset,
    partition_column,
)
from slicewise.declaring.decorator import AssetColumn
from slicewise.loading.archives import load_bundle
from slicewise.testing import materialize

raw_sales = Asset("raw_sales", columns={"sales": "bigint", "uri": None})
bare = Asset("bare")


@asset(columns=["amount"])
def totals() -> None: ...


def test_a_declared_column_is_an_attribute() -> None:
    assert raw_sales.sales == AssetColumn("raw_sales", "sales")
    assert totals.amount == AssetColumn("totals", "amount")
    assert f"SELECT SUM({raw_sales.sales})" == "SELECT SUM(sales)"


def test_a_column_that_an_attribute_hides_is_asked_for_by_name() -> None:
    assert raw_sales.uri is None
    assert raw_sales.column("uri") == AssetColumn("raw_sales", "uri")


RAW = """
from slicewise import Asset, AssetValidation, asset

raw = Asset("raw", kind="sales", columns=["name", "kind", "columns", "pieces"])
check = AssetValidation

@asset(inlet_validations={validations})
def totals(raw): ...
"""


def refusals(folder: Path, validations: str) -> list[str]:
    (folder / "sales.py").write_text(RAW.replace("{validations}", validations))
    return [error["message"] for error in load_bundle(folder)["errors"]]


@pytest.mark.parametrize(
    ("validation", "name"),
    [
        ("check.not_null(raw.name)", "name"),
        ("check.not_null(raw.pieces, raw.name)", "name"),
        ("check.matches(raw.kind, 'a.*')", "kind"),
        ("check.has_types({raw.kind: 'string'})", "kind"),
    ],
)
def test_a_validation_of_an_attribute_that_hides_a_column_is_refused(
    tmp_path: Path, validation: str, name: str
) -> None:
    for validations in (validation, f"{{raw: [{validation}]}}"):
        (message,) = refusals(tmp_path, validations)
        assert f"the attribute {name!r} of the asset, and no declared column" in message
        assert f"write .column({name!r})" in message


@pytest.mark.parametrize(
    "validation",
    [
        "check.not_null(raw.pieces)",
        "check.not_null(raw.column('name'), raw.column('kind'))",
        "check.not_null('name', 'undeclared')",
        "check.row_count(min=1)",
        "check.fresh_within(__import__('datetime').timedelta(days=1))",
    ],
)
def test_a_validation_of_a_column_is_taken(tmp_path: Path, validation: str) -> None:
    assert refusals(tmp_path, f"{{raw: [{validation}]}}") == []


def test_a_column_that_is_not_declared_is_named_with_what_is_near() -> None:
    with pytest.raises(AttributeError, match=r"no column 'sale'; did you mean 'sales'\?"):
        _ = raw_sales.sale
    with pytest.raises(AttributeError, match=r"declares no columns.*write columns=\['sales'\]"):
        _ = bare.sales


def test_an_asset_can_be_copied_and_inspected_by_other_code() -> None:
    assert not hasattr(raw_sales, "shape")
    assert not hasattr(raw_sales, "__array__")
    assert not hasattr(raw_sales, "_sales")
    for copied in (
        copy.copy(raw_sales),
        copy.deepcopy(raw_sales),
        pickle.loads(pickle.dumps(bare)),
    ):
        assert isinstance(copied, Asset)
    assert copy.deepcopy(raw_sales).sales == raw_sales.sales


def test_partition_column_in_a_function_of_several_assets_says_what_to_write() -> None:
    @asset.multi(outlets=[Asset("peaks"), Asset("valleys")])
    def both(self: Any) -> None:
        partition_column("at", self)

    with pytest.raises(DefinitionError, match=re.escape("write self['peaks']")):
        materialize(both)


@pytest.mark.parametrize("dimension", ["shop", "dya"])
def test_partition_column_refuses_a_dimension_that_is_none_of_time(dimension: str) -> None:
    days = PartitionByInterval("@daily", start="2024-01-01", end="2024-01-03")
    product = PartitionByProduct({"day": days, "shop": PartitionBySequence(["a", "b"])})
    with pytest.raises(DefinitionError, match=f"{dimension!r} is no dimension of time.*'day'"):
        partition_column("at", product, dimension=dimension)
