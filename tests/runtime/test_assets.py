"""Declarations: what they record, and the sentence for each that breaks a rule."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from slicewise import (
    Asset,
    DefinitionError,
    PartitionByInterval,
    asset,
    get_current_context,
)
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
    found = daily.to_json()
    assert found["name"] == "daily"
    assert found["description"] == "Delays of a day."
    assert found["source"].startswith("@asset(")
    assert found["outlets"] == [
        {
            "name": "daily",
            "uri": "file:///lake/daily/",
            "canonical_uri": "file://localhost/lake/daily",
            "kind": None,
            "columns": None,
            "partition": DAYS.to_json(),
        }
    ]
    assert found["inlets"] == ["raw"]
    assert found["schedule"] == {
        "kind": "any",
        "of": [
            {
                "kind": "all",
                "of": [{"kind": "asset", "name": "raw"}, {"kind": "asset", "name": "other"}],
            },
            {"kind": "asset", "name": "third"},
        ],
    }
    assert (found["retries"], found["retry_delay"], found["timeout"]) == (2, 300.0, 90.0)
    assert (found["strategy"], found["params"], found["owners"]) == (30, {"limit": 10}, ["ops"])
    assert found["file"] == __file__


def test_an_asset_that_something_else_writes_is_recorded_as_json() -> None:
    found = raw.to_json()
    assert found["uri"] == "file:///lake/raw%20files"
    assert found["columns"] == [{"name": "dest", "type": "string"}]
    assert other.to_json()["columns"] == [{"name": "a", "type": None}]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": " "}, "not blank"),
        ({"name": "x" * 251}, "250 characters"),
        ({"name": "spark"}, "parameter with a meaning of its own"),
        ({"partition": "@daily"}, "write partition=PartitionByInterval('@daily')"),
        ({"partition": "auto"}, "not yet supported"),
        ({"partition": 3}, "not int"),
        ({"schedule": "@fortnightly"}, "unknown preset '@fortnightly'; there are @hourly"),
        ({"schedule": "61 * * * *"}, "not a cron expression"),
        ({"schedule": "* * * * * *"}, "not a cron expression"),
        ({"schedule": timedelta(0)}, "longer than nothing"),
        ({"schedule": 5}, "not int"),
        ({"timezone": "Europe/Atlantis"}, "unknown time zone 'Europe/Atlantis'"),
        (
            {"start_date": datetime(2024, 1, 2, tzinfo=UTC), "end_date": datetime(2024, 1, 1)},
            "both have a time zone",
        ),
        (
            {"start_date": datetime(2024, 1, 2), "end_date": datetime(2024, 1, 1)},
            "is before start_date",
        ),
        ({"strategy": 0}, "a number from 1"),
        ({"retries": -1}, "whole number from 0"),
        ({"max_active_runs": 0}, "whole number from 1"),
        ({"timeout": "soon"}, "timedelta or a number of seconds"),
        ({"params": {"when": datetime}}, "params hold what JSON can hold"),
        ({"owners": "me"}, "list of texts"),
        ({"uri": Path("lake")}, "relative path"),
        ({"uri": "airflow://x"}, "reserved"),
        ({"write_mode": "append"}, "write_mode='append' is not yet supported"),
        ({"engine": "submit"}, "engine='submit' is not yet supported"),
        ({"refresh": 3}, "refresh=3 is not yet supported"),
        ({"pending": "latest"}, "pending='latest' is not yet supported"),
        ({"on_partial": "publish"}, "on_partial='publish' is not yet supported"),
        ({"outlet_validations": [1]}, "outlet_validations is not yet supported"),
        ({"inlet_validations": {"raw": [1]}}, "inlet_validations is not yet supported"),
        ({"on_failure": print}, "on_failure is not yet supported"),
        ({"depends_on_past": True}, "depends_on_past is not yet supported"),
    ],
)
def test_a_rule_that_is_broken_is_named_with_file_line_and_asset(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(DefinitionError) as caught:

        @asset(**options)
        def flights() -> None: ...

    name = options.get("name", "flights")
    assert said in str(caught.value)
    assert f"asset {name!r}" in str(caught.value)
    assert f"{__file__}:" in str(caught.value)


def all_stars(*names: str) -> None: ...
def all_keywords(**names: str) -> None: ...
def positional(raw: str, /) -> None: ...


@pytest.mark.parametrize(
    ("function", "said"),
    [(all_stars, r"\*names"), (all_keywords, r"\*\*names"), (positional, "positional-only")],
)
def test_parameters_that_cannot_be_filled_in_are_refused(function: Any, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        asset()(function)


def test_unknown_and_positional_arguments_are_refused_with_what_is_meant() -> None:
    decorate: Any = asset
    with pytest.raises(DefinitionError, match="did you mean 'schedule'"):
        decorate(shedule="@daily")
    with pytest.raises(DefinitionError, match="there is no 'at'"):
        decorate(at="@daily")
    with pytest.raises(DefinitionError, match="keyword arguments only"):
        decorate(lambda: None)


def test_calling_an_asset_is_an_error_that_says_where() -> None:
    with pytest.raises(DefinitionError, match=r"test_assets\.py:\d+: asset 'daily': .*not called"):
        daily()


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
    with pytest.raises(RuntimeError, match="no current context"):
        get_current_context()


def test_a_range_has_no_single_key_but_an_interval_that_spans_it() -> None:
    @asset(partition=DAYS)
    def tried(context: Any) -> Any:
        partition = context["partition"]
        with pytest.raises(ValueError, match="makes 31 partitions"):
            _ = partition.key
        return len(partition.keys), partition.interval.start, partition.interval.end, str(partition)

    assert materialize(tried, partition="2013-01") == (
        31,
        datetime(2013, 1, 1, tzinfo=UTC),
        datetime(2013, 2, 1, tzinfo=UTC),
        "2013-01-01..2013-01-31",
    )


def test_what_was_written_is_given_back_and_what_is_missing_is_named() -> None:
    @asset()
    def writes(self: Any) -> None:
        self.write("rows")

    assert materialize(writes) == "rows"
    with pytest.raises(LookupError, match="asks for 'raw'"):
        materialize(daily, partition="2013-01-01", spark="x")
    with pytest.raises(DefinitionError, match="asks for spark"):
        materialize(daily, partition="2013-01-01", upstream={"raw": 1})
    with pytest.raises(DefinitionError, match="written by something else"):
        materialize(raw)
    with pytest.raises(ValueError, match="is partitioned"):
        materialize(daily)
    with pytest.raises(ValueError, match="is not partitioned"):
        materialize(writes, partition="2013-01-01")
