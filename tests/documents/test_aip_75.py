"""AIP-75, asset-centric syntax: the examples as written in the document, and the rules of its text.

Where the document writes `...` for arguments left out, the example leaves the arguments out too; a
comment as a function's whole body has `...` beside it.
"""

from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

from slicewise import Asset, DefinitionError, PartitionByInterval
from slicewise.loading.archives import load_bundle
from slicewise.testing import materialize
from tests.documents.examples import HEADER, Loader, Refusal

TRIPS = """
    # The "uri" argument is optional but strongly encouraged.
    # The asset's name defaults to the function name if none is explicitly given.
    @asset(uri="s3://aws_conn_id@bucket/raw_bus_trips.parquet")
    def raw_bus_trips():
        ...  # Write bus trips data to asset...
"""


# -- "Proposed Changes"


def test_the_definition_itself_creates_the_asset(load: Loader) -> None:
    asset = load(TRIPS)["raw_bus_trips"]
    assert isinstance(asset, Asset)
    assert asset.name == "raw_bus_trips"
    assert asset.uri == "s3://aws_conn_id@bucket/raw_bus_trips.parquet"
    assert asset.canonical_uri == "s3://bucket/raw_bus_trips.parquet"
    declared = asset.to_json()
    assert [outlet["name"] for outlet in declared["outlets"]] == ["raw_bus_trips"]


def test_an_asset_can_be_given_a_name_and_needs_no_uri(load: Loader) -> None:
    asset = load("""
        @asset(name="raw bus trips")
        def raw_bus_trips():
            ...
    """)["raw_bus_trips"]
    assert (asset.name, asset.uri) == ("raw bus trips", None)


def test_calling_an_asset_is_an_error_when_the_file_is_loaded(refusal: Refusal) -> None:
    assert "'raw_bus_trips': is an asset and cannot be called" in refusal(
        f"{TRIPS}\n    raw_bus_trips()"
    )


def test_an_asset_takes_the_arguments_of_dags_and_tasks(load: Loader) -> None:
    asset = load("""
        @asset(
            schedule="@daily",
            description="Trips",
            owners=["ada"],
            tags=["bus"],
            params={"line": 12},
            retries=2,
            max_active_runs=1,
        )
        def raw_bus_trips():
            ...
    """)["raw_bus_trips"]
    declared = asset.to_json()
    assert (declared["description"], declared["params"]) == ("Trips", {"line": 12})
    assert (declared["retries"], declared["max_active_runs"]) == (2, 1)


@pytest.mark.parametrize("argument", ["dag_id", "default_args", "task_id"])
def test_obvious_exceptions_are_refused_by_name(argument: str, refusal: Refusal) -> None:
    error = refusal(f"""
        @asset({argument}="raw_bus_trips")
        def raw_bus_trips():
            ...
    """)
    assert repr(argument) in error


def test_all_assets_share_one_namespace(refusal: Refusal) -> None:
    error = refusal(f"{TRIPS}\n    Asset('raw_bus_trips')")
    assert "declared twice, here and at definitions.py:" in error


def test_the_namespace_is_that_of_all_files(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / f"{name}.py").write_text(f"{HEADER}trips = Asset('trips')\n")
    declared = load_bundle(tmp_path)
    errors = [file["error"] and file["error"]["message"] for file in declared["files"]]
    assert errors[0] is None
    assert "one.py:2" in errors[1]


def test_two_assets_can_have_one_uri(load: Loader) -> None:
    names = load("""
        @asset(uri="s3://bucket/trips")
        def of_this_year():
            ...

        @asset(uri="s3://aws_conn_id@bucket/trips/")
        def of_last_year():
            ...
    """)
    assert names["of_this_year"].canonical_uri == names["of_last_year"].canonical_uri


@pytest.mark.parametrize("name", ["context", "self", "spark"])
def test_reserved_names_name_no_asset(name: str, refusal: Refusal) -> None:
    # `spark` is ours: the session, by name like `context`.
    error = refusal(f"""
        @asset()
        def {name}():
            ...
    """)
    assert f"{name!r} is the name of a reserved parameter" in error


# -- "Reference an Asset"

AGGREGATED = f"""{TRIPS}
    @asset(uri="snowflake://.../bus_trips")
    def aggregated_bus_trips(raw_bus_trips):
        return raw_bus_trips.read()  # Write aggregated bus trips to asset...
"""


def test_an_asset_is_referenced_by_its_name(load: Loader) -> None:
    asset = load(AGGREGATED)["aggregated_bus_trips"]
    assert asset.inlets == ["raw_bus_trips"]
    assert materialize(asset, upstream={"raw_bus_trips": "trips"}) == "trips"


def test_a_reference_does_not_schedule_anything(load: Loader) -> None:
    assert load(AGGREGATED)["aggregated_bus_trips"].to_json()["schedule"] is None


def test_a_reference_to_nothing_is_an_error(refusal: Refusal) -> None:
    error = refusal("""
        @asset()
        def aggregated_bus_trips(raw_bus_trips):
            ...
    """)
    assert "'raw_bus_trips' names no asset" in error


def test_an_asset_can_ask_for_its_own_uri(load: Loader) -> None:
    asset = load(f"""{TRIPS}
    class ibis:
        @staticmethod
        def connect(uri):
            return "connected to " + uri

    @asset(uri="snowflake://.../bus_trips")
    def aggregated_bus_trips(self, *, raw_bus_trips):
       conn_uri, _, view_name = self.uri.rpartition("/")
       connection = ibis.connect(conn_uri) # Connect to Snowflake!
       # Write aggregated bus trips to the view using connection...
       return connection, view_name, raw_bus_trips.read()
    """)["aggregated_bus_trips"]
    assert asset.inlets == ["raw_bus_trips"]
    result = materialize(asset, upstream={"raw_bus_trips": "trips"})
    assert result == ("connected to snowflake://...", "bus_trips", "trips")


# -- "Multi-Assets"

SPLIT = f"""{AGGREGATED}
    @asset.multi(
      outlets=[
          Asset(name="bus_trip_1", uri="s3://../bus_trip_1.parquet"),
          Asset(name="bus_trip_2", uri="s3://../bus_trip_2.parquet"),
      ],
    )
    def split_trips(aggregated_bus_trips):
      trips = aggregated_bus_trips.read()
      return {{"bus_trip_1": trips[::2], "bus_trip_2": trips[1::2]}}
"""


def test_one_function_can_make_several_assets(load: Loader) -> None:
    split = load(SPLIT)["split_trips"]
    assert [outlet.name for outlet in split.outlets] == ["bus_trip_1", "bus_trip_2"]
    result = materialize(split, upstream={"aggregated_bus_trips": ["a", "b", "c"]})
    assert result == {"bus_trip_1": ["a", "c"], "bus_trip_2": ["b"]}


def test_several_assets_of_one_function_are_reported_as_one_producer(tmp_path: Path) -> None:
    from tests.documents.examples import Example

    declared = Example(tmp_path, SPLIT).declared
    (producer,) = (producer for producer in declared["producers"] if len(producer["outlets"]) == 2)
    assert [outlet["uri"] for outlet in producer["outlets"]] == [
        "s3://../bus_trip_1.parquet",
        "s3://../bus_trip_2.parquet",
    ]
    assert producer["inlets"] == ["aggregated_bus_trips"]


def test_several_assets_share_schedule_and_partition(load: Loader) -> None:
    split = load("""
        @asset.multi(
            outlets=[Asset("training"), Asset("testing")],
            schedule="@daily",
            partition=PartitionByInterval("@daily"),
        )
        def split_trips():
            ...
    """)["split_trips"]
    declared = split.to_json()
    assert declared["partition"] == PartitionByInterval("@daily").to_json()
    assert declared["schedule"] == {"kind": "cron", "expression": "@daily"}


def test_a_function_for_several_assets_has_some(refusal: Refusal) -> None:
    error = refusal("""
        @asset.multi(outlets=[])
        def split_trips():
            ...
    """)
    assert "outlets" in error


def test_several_assets_are_not_called_either(load: Loader) -> None:
    with pytest.raises(DefinitionError, match="cannot be called"):
        load(SPLIT)["split_trips"]()


# -- "Schedules"


def test_schedules_are_times_and_assets(load: Loader) -> None:
    names = load("""
        @asset(schedule="@yearly")
        def asset1():  # Write happens when a new calendar year is entered.
            ...

        @asset(schedule=asset1)
        def asset2():  # Write happens whenever asset1's write completes.
            ...
        @asset(schedule=asset1)
        def asset3():  # Runs parallel to asset 2.
            ...

        @asset(schedule=asset2 | asset3)
        def asset4():  # Write happens whenever EITHER asset2 or asset3 finishes.
          ...

        @asset(schedule=asset2 & asset3)
        def asset5():
          ...
    """)
    schedules = [names[f"asset{number}"].to_json()["schedule"] for number in range(1, 6)]
    after_1 = {"kind": "asset", "name": "asset1"}
    both = [{"kind": "asset", "name": "asset2"}, {"kind": "asset", "name": "asset3"}]
    assert schedules == [
        {"kind": "cron", "expression": "@yearly"},
        after_1,
        after_1,
        {"kind": "any", "of": both},
        {"kind": "all", "of": both},
    ]
    # "the schedule parameter no longer controls the interval"
    assert {names[f"asset{number}"].partition for number in range(1, 6)} == {None}


# -- "Partitions"


def test_a_materialization_covers_an_hour(load: Loader) -> None:
    # `PartitionByInternal` is a slip of the document.
    asset = load("""
        @asset(
          schedule="@hourly",
          partition=PartitionByInterval("@hourly"),  # Each materialization covers an hour.
        )
        def hourly_data():
            return get_current_context()["partition"].interval
    """)["hourly_data"]
    (hour,) = asset.partition.windows(date(2024, 1, 1), date(2024, 1, 2))[14:15]
    assert materialize(asset, partition="2024-01-01T14:00Z") == hour


# -- "Automatically read from/write to an asset"


def test_the_returned_value_of_a_function_is_written_to_the_asset(load: Loader) -> None:
    # `read_dataframe` is our `read`.
    names = load("""
        bar = Asset("bar")

        @asset()
        def foo(bar):
            df = bar.read() # Read from asset "bar".
            # ... do something ...
            return df # Write to asset "foo".

        @asset()
        def baz(self, bar):
            self.write(bar.read())
    """)
    frame = SimpleNamespace(rows=3)
    assert materialize(names["foo"], upstream={"bar": frame}) is frame
    assert materialize(names["baz"], upstream={"bar": frame}) is frame
