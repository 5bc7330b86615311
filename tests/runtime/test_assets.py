"""Declarations: the recorded facts, and trials of a function."""

import json
import re
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from slicewise import (
    All,
    Asset,
    AssetValidation,
    DefinitionError,
    Offset,
    PartitionByInterval,
    asset,
    get_current_context,
)
from slicewise.declaring.decorator import ProducedAsset
from slicewise.declaring.options import RunOptions
from slicewise.declaring.specs import ProducerSpec
from slicewise.testing import materialize

DAYS = PartitionByInterval("@daily", start="2013-01-01", end="2014-01-01")
raw = Asset("raw", uri=Path("/lake/raw files"), columns={"dest": "string"}, partition=DAYS)
other = Asset("other", columns=["a"])


@asset(
    uri="file:///lake/daily/",
    schedule=(raw & other) | Asset.ref("third"),
    partition=DAYS,
    retries=2,
    retry_delay=timedelta(minutes=5),
    timeout=90,
    params={"limit": 10},
    owners=["ops"],
    strategy=30,
)
def daily(self: Any, context: Any, spark: Any, raw: Any, limit: int = 3) -> None:
    """Delays of a day."""


def test_a_producer_is_recorded_as_json() -> None:
    spec = daily.to_json()
    assert spec["name"] == "daily"
    assert spec["description"] == "Delays of a day."
    assert spec["source"].startswith("@asset(")
    assert spec["outlets"] == [
        {
            "name": "daily",
            "uri": "file:///lake/daily/",
            "canonical_uri": "file://localhost/lake/daily",
            "kind": None,
            "format": "parquet",
            "columns": None,
            "partition": DAYS.to_json(),
            "outlet_validations": [],
            "warnings": [],
            "description": None,
            "owners": [],
            "tags": [],
            "group": None,
        }
    ]
    assert spec["multi"] is False
    assert spec["inlets"] == ["raw"]
    assert spec["schedule"] == {
        "kind": "any",
        "of": [
            {
                "kind": "all",
                "of": [{"kind": "asset", "name": "raw"}, {"kind": "asset", "name": "other"}],
            },
            {"kind": "asset", "name": "third"},
        ],
    }
    assert (spec["retries"], spec["retry_delay"], spec["timeout"]) == (2, 300.0, 90.0)
    assert (spec["strategy"], spec["params"], spec["owners"]) == (30, {"limit": 10}, ["ops"])
    assert spec["file"] == __file__


def test_every_option_of_a_producer_is_in_its_json() -> None:
    spelled = {"upstream": "mappings", "outlet_validations": "outlets"}
    options = {spelled.get(option.name, option.name) for option in fields(RunOptions)}
    # Without them nothing is said, so that specs of earlier versions stay as they are.
    assert (
        options - {"alerts", "freshness", "memory", "setup", "teardown"} <= daily.to_json().keys()
    )


def test_set_up_and_tear_down_are_named_in_the_json_and_their_text_is_part_of_the_source() -> None:
    @asset()
    def guarded(nodes: object) -> None: ...

    without = guarded.to_json()

    @guarded.setup
    def nodes() -> str:
        return "four nodes"

    @guarded.teardown
    def close(nodes: str) -> None: ...

    spec = guarded.to_json()
    assert (spec["setup"], spec["teardown"], spec["inlets"]) == ("nodes", "close", [])
    assert without["inlets"] == ["nodes"]
    assert spec["source"].index("four nodes") < spec["source"].index("def guarded")
    assert "def close" in spec["source"]
    assert ProducerSpec.from_json(spec).step_names == {
        "setup": "nodes", "function": "guarded", "teardown": "close",
    }  # fmt: skip
    assert ProducerSpec.from_json(without).step_names == {}


def test_options_that_only_some_servers_act_on_are_recorded() -> None:
    def tell() -> None: ...

    @asset(
        schedule="@daily",
        partition=PartitionByInterval("@daily"),
        refresh=3,
        pending="latest",
        write_mode="append",
        engine="submit",
        memory="2g",
        on_partial="publish",
        on_failure=tell,
        upstream={raw: Offset(-1), "other": All()},
    )
    def decorated(raw: Any, other: Any) -> None: ...

    spec = decorated.to_json()
    assert spec["memory"] == 2 * 1024**3
    assert (spec["refresh"], spec["pending"], spec["write_mode"]) == (3, "latest", "append")
    assert (spec["engine"], spec["on_partial"]) == ("submit", "publish")
    assert (spec["depends_on_past"], spec["on_success"]) == (False, None)
    assert spec["on_failure"].endswith("tell")
    assert spec["mappings"] == {"raw": Offset(-1).to_json(), "other": All().to_json()}
    assert json.loads(json.dumps(spec)) == spec


def test_validations_are_recorded_with_the_assets_that_they_are_of() -> None:
    filled, some = AssetValidation.has_columns(raw.dest), AssetValidation.row_count(min=1)

    @asset(
        uri="file:///lake/by_column",
        inlet_validations=AssetValidation.has_columns(raw.dest),
        outlet_validations=some,
    )
    def by_column(raw: Any, other: Any) -> None: ...

    @asset(inlet_validations=[some])
    def by_the_only_inlet(raw: Any) -> None: ...

    @asset(inlet_validations={raw: filled, "other": [some, some]})
    def by_asset(raw: Any, other: Any) -> None: ...

    assert by_column.to_json()["inlet_validations"] == {"raw": [filled.to_json()]}
    assert by_column.to_json()["outlets"][0]["outlet_validations"] == [some.to_json()]
    assert by_the_only_inlet.to_json()["inlet_validations"] == {"raw": [some.to_json()]}
    assert by_asset.to_json()["inlet_validations"] == {
        "raw": [filled.to_json()],
        "other": [some.to_json()] * 2,
    }


def test_the_example_of_the_document_is_taken() -> None:
    raw_sales = Asset(
        "raw_sales",
        uri="s3://bucket/sales",
        outlet_validations=[AssetValidation.has_columns("sales")],
        columns=["sales"],
    )

    @asset(
        uri="snowflake://account/sales",
        inlet_validations=AssetValidation.has_columns(raw_sales.sales),
    )
    def aggregated_sales(raw_sales: Any) -> None: ...

    (validation,) = aggregated_sales.to_json()["inlet_validations"]["raw_sales"]
    assert validation["columns"] == ["sales"]


def test_a_uri_that_breaks_its_rule_is_told_with_the_asset_and_where_it_stands() -> None:
    with pytest.warns(UserWarning, match="stays as written") as warnings:
        broken = Asset("broken", uri="s3://")
    assert (warnings[0].filename, warnings[0].lineno) == (broken.site.file, broken.site.line)
    (warning,) = broken.to_json()["warnings"]
    assert "needs a host" in warning


def test_an_asset_that_something_else_writes_is_recorded_as_json() -> None:
    spec = raw.to_json()
    assert spec["uri"] == "file:///lake/raw%20files"
    assert spec["columns"] == [{"name": "dest", "type": "string"}]
    assert other.to_json()["columns"] == [{"name": "a", "type": None}]


def test_a_function_is_tried_without_a_server() -> None:
    @asset(partition=DAYS, params={"limit": 1})
    def tried(raw: Any, context: Any, spark: Any, self: Any) -> Any:
        assert get_current_context() is context
        assert context["asset"] is self
        partition = context["partition"]
        return raw.read(), spark, partition.key, str(partition.interval), context["params"]

    returned = materialize(
        tried, partition="2013-01-05", upstream={"raw": "rows"}, spark="session", params={"b": 2}
    )
    day = DAYS.parse("2013-01-05")
    assert returned == ("rows", "session", day, "2013-01-05", {"limit": 1, "b": 2})
    with pytest.raises(RuntimeError, match="no run is active"):
        get_current_context()


def test_a_range_has_no_single_key_but_an_interval_that_spans_it() -> None:
    @asset(partition=DAYS)
    def tried(context: Any) -> Any:
        partition = context["partition"]
        with pytest.raises(ValueError, match="covers 31 partitions"):
            _ = partition.key
        return len(partition.keys), partition.interval.start, partition.interval.end, str(partition)

    assert materialize(tried, partition="2013-01") == (
        31,
        datetime(2013, 1, 1, tzinfo=UTC),
        datetime(2013, 2, 1, tzinfo=UTC),
        "2013-01-01..2013-01-31",
    )


def test_written_data_is_returned_and_missing_arguments_are_named() -> None:
    @asset()
    def writes(self: Any) -> None:
        self.write("rows")

    assert materialize(writes) == "rows"
    with pytest.raises(LookupError, match="reads 'raw'"):
        materialize(daily, partition="2013-01-01", spark="x")
    with pytest.raises(DefinitionError, match="needs a Spark session"):
        materialize(daily, partition="2013-01-01", upstream={"raw": 1})
    with pytest.raises(DefinitionError, match="another program writes"):
        materialize(raw)
    with pytest.raises(ValueError, match="is partitioned"):
        materialize(daily)
    with pytest.raises(ValueError, match="is not partitioned"):
        materialize(writes, partition="2013-01-01")


def test_parentheses_may_be_left_out() -> None:
    bare: Any = asset

    def function(raw: Any) -> None:
        """All flights."""

    flights = bare(function)
    assert isinstance(flights, ProducedAsset)
    assert (flights.name, flights.inlets) == ("function", ["raw"])
    assert flights.to_json()["description"] == "All flights."


def test_invalid_targets_of_a_decorator_without_parentheses_are_refused() -> None:
    bare: Any = asset
    for target in (raw, lambda: None, dict):
        with pytest.raises(DefinitionError, match="is decorated"):
            bare(target)


def test_an_asset_and_an_outlet_have_catalogue_facts_of_their_own() -> None:
    facts: dict[str, Any] = {
        "description": "Counted twice.",
        "owners": ["ana"],
        "tags": ["stock"],
        "group": "shop",
    }
    spec = Asset("stock", **facts).to_json()
    assert {name: spec[name] for name in facts} == facts

    @asset.multi(outlets=[Asset("left", **facts), Asset("right")], owners=["ops"])
    def both() -> None:
        """Both sides."""

    declared = both.to_json()
    left_outlet, right_outlet = declared["outlets"]
    assert {name: left_outlet[name] for name in facts} == facts
    assert (right_outlet["owners"], declared["owners"]) == ([], ["ops"])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"owners": "ana"}, "owners is a list of texts, not 'ana'"),
        ({"tags": [""]}, "tags is a list of texts"),
        ({"description": 5}, "description is a text, not 5"),
        ({"group": ["a"]}, "group is a text"),
        ({"descripton": "x"}, "did you mean 'description'"),
    ],
)
def test_a_catalogue_fact_of_another_type_is_refused(
    arguments: dict[str, Any], reason: str
) -> None:
    with pytest.raises(DefinitionError, match=re.escape(reason)):
        Asset("stock", **arguments)


def test_an_unknown_argument_is_told_with_all_that_there_are() -> None:
    decorator: Any = asset
    with pytest.raises(DefinitionError) as caught:
        decorator(qqqqqq=1)(lambda_free)
    names = {option.name for option in fields(asset)}
    assert names <= set(re.findall(r"\w+", str(caught.value).partition("use one of")[2]))


def lambda_free() -> None: ...
