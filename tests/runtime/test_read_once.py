"""Options that come as generators or maps are read once, and act like lists."""

from typing import Any

import pytest

from slicewise import Asset, AssetValidation, asset, validation
from slicewise.running.invoke import all_inlet_validations
from slicewise.testing import materialize
from slicewise.validations import ValidationFailedError


@validation
def never(frame: Any) -> bool:
    return False


def checks() -> Any:
    yield from (AssetValidation.not_null("a"), AssetValidation.not_null("b"))


NAMES = ["not_null(a)", "not_null(b)"]


def names(validations: Any) -> list[str]:
    return [check.name for check in validations]


def test_outlet_validations_of_a_generator_are_shown_and_asked() -> None:
    @asset(uri="file:///lake/sales", outlet_validations=checks())
    def sales() -> None: ...

    assert names(sales.validations) == NAMES
    assert len(sales.to_json()["outlets"][0]["outlet_validations"]) == 2
    assert names(Asset("raw", outlet_validations=checks()).validations) == NAMES


def test_a_generator_that_refuses_everything_fails_the_run() -> None:
    refusing: Any = (check for check in [never])

    @asset(uri="file:///lake/sales", outlet_validations=refusing)
    def sales() -> Any:
        return [1]

    with pytest.raises(ValidationFailedError):
        materialize(sales)


def test_inlet_validations_of_a_map_are_asked() -> None:
    raw = Asset("raw")
    mapped: Any = map(AssetValidation.not_null, ["a", "b"])

    @asset(inlet_validations={raw: mapped})
    def sales(raw: Any) -> None: ...

    @asset(inlet_validations=checks())
    def reader(raw: Any) -> None: ...

    assert names(all_inlet_validations(sales, {})["raw"]) == NAMES
    assert (
        names(all_inlet_validations(sales, {})["raw"]) == NAMES
    )  # a second run of the same process
    assert names(all_inlet_validations(reader, {})["raw"]) == NAMES


def test_owners_tags_columns_and_outlets_are_read_once() -> None:
    @asset(
        owners=map(str.lower, ["ANA"]),
        tags=(tag for tag in ["a", "b"]),
        columns=(name for name in ["x", "y"]),
    )
    def sales() -> None: ...

    spec = sales.to_json()
    assert (spec["owners"], spec["tags"]) == (["ana"], ["a", "b"])
    assert [column["name"] for column in sales.columns or ()] == ["x", "y"]

    decorator = asset.multi(outlets=(Asset(name) for name in ("one", "two")))  # type: ignore[arg-type]

    @decorator
    def both() -> None: ...

    assert [outlet.name for outlet in both.outlets] == ["one", "two"]


def test_one_decorator_declares_several_assets_alike() -> None:
    shared = asset(tags=(tag for tag in ["a", "b"]))

    def first() -> None: ...
    def second() -> None: ...

    assert [shared(function).to_json()["tags"] for function in (first, second)] == [["a", "b"]] * 2
