"""An asset whose name is no identifier is read by way of ``inlets=``."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from slicewise import Asset, AssetValidation, DefinitionError, Offset, PartitionByInterval, asset
from slicewise.loading.archives import load_bundle
from slicewise.running.invoke import all_inlet_validations
from slicewise.testing import materialize

DAILY = PartitionByInterval("@daily", start="2024-01-01")
trips = Asset("raw bus trips", partition=DAILY)


def test_the_function_is_given_the_asset_under_its_parameter() -> None:
    @asset(inlets={"trips": Asset.ref("raw bus trips")})
    def counted(trips: Any) -> Any:
        return (trips.name, len(trips.read()))

    assert counted.inlets == ["raw bus trips"]
    assert counted.to_json()["inlets"] == ["raw bus trips"]
    assert materialize(counted, upstream={"raw bus trips": [1, 2]}) == ("raw bus trips", 2)


def test_mappings_and_validations_go_by_the_name_of_the_asset() -> None:
    check = AssetValidation.not_null("id")

    @asset(
        partition=DAILY,
        inlets={"trips": trips},
        upstream={trips: Offset(-1)},
        inlet_validations={trips: check},
    )
    def counted(trips: Any, weather: Any) -> Any:
        return trips.partitions

    spec = counted.to_json()
    assert spec["inlets"] == ["raw bus trips", "weather"]
    assert list(spec["mappings"]) == ["raw bus trips"]
    assert all_inlet_validations(counted, {}) == {"raw bus trips": [check]}


@pytest.mark.parametrize(
    ("inlets", "reason"),
    [
        (["raw"], "inlets maps parameters to assets"),
        ({"trips": "raw bus trips"}, "write Asset.ref('raw bus trips')"),
        ({"trips": 5}, "inlets of 'trips' is one asset, not 5"),
        ({"trip": trips}, "inlets names 'trip', which is no parameter that a run fills in"),
        ({"self": trips}, "the function has trips, weather"),
        ({"limit": trips}, "the function has trips, weather"),
        ({"trips": Asset.ref("weather")}, "are both the asset 'weather'; keep one"),
        (
            {"trips": Asset.ref("counted")},
            "the parameter 'trips' names the asset that the run writes",
        ),
    ],
)
def test_inlets_that_name_no_parameter_or_no_asset_are_refused(inlets: Any, reason: str) -> None:
    def counted(self: Any, trips: Any, weather: Any, limit: int = 3) -> None: ...

    with pytest.raises(DefinitionError, match=re.escape(reason)):
        asset(inlets=inlets)(counted)


def test_a_parameter_that_cannot_be_called_like_its_asset_is_told_what_to_write(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_text(
        textwrap.dedent("""
        from slicewise import *

        @asset(name="raw bus trips")
        def raw(): ...

        @asset()
        def counted(raw_bus_trips): ...
        """)
    )
    (error,) = load_bundle(tmp_path)["errors"]
    assert "write inlets={'raw_bus_trips': Asset.ref('raw bus trips')}" in error["message"]
