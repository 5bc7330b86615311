"""Expanded data awareness, the wider text before the AIPs: examples, and rules of the text.

Where an accepted AIP contradicts the text, the AIP holds: the test shows the refusal, which names
the valid spelling.
"""

from datetime import date, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from slicewise import (
    DefinitionError,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    downstream_partitions,
    upstream_partitions,
)
from slicewise.testing import materialize
from tests.documents.examples import Loader, Refusal, ended

# -- "Handling Incremental Load Strategies"


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("Full-refresh", ""),
        ("Every Instance", "params={'seed': 1}"),
        (
            "Only-Run-Latest",
            "partition=PartitionByInterval('@daily'), pending='latest', schedule='@daily'",
        ),
        ("Date Range", "partition=PartitionByInterval('@daily'), strategy='range'"),
        ("Segments", "partition=PartitionBySequence(['emea', 'apac'])"),
    ],
)
def test_there_is_a_way_to_write_each_strategy(strategy: str, options: str, load: Loader) -> None:
    asset = load(f"""
        @asset({options})
        def sales():
            '''{strategy}'''
    """)["sales"]
    assert asset.to_json()["description"] == strategy


# -- "Introducing Assets": replace, append, publish a new iteration


@pytest.mark.parametrize("mode", ["replace", "append", "version"])
def test_a_write_replaces_appends_or_publishes_an_iteration(mode: str, load: Loader) -> None:
    asset = load(f"""
        @asset(write_mode="{mode}")
        def reports():
            ...
    """)["reports"]
    assert asset.to_json()["write_mode"] == mode


# -- "Asset Annotations"

ANNOTATED = """
    raw_sales = Asset('raw_sales', uri='s3://...', columns=['sales']) # URI is optional
    aggregated_sales = Asset(
        'aggregated_sales',
        uri='snowflake://...',
        columns=['sales'],
    )
"""


def test_assets_that_something_else_writes_are_declared(load: Loader) -> None:
    # `column=` is our `columns=`. There is no SqlOperator, whose `outlets=[aggregated_sales]` and
    # templates are those of classic tasks: a function makes the asset.
    names = load(ANNOTATED)
    assert names["aggregated_sales"].to_json()["columns"] == [{"name": "sales", "type": None}]
    assert names["raw_sales"].uri == "s3://..."


def test_the_argument_column_is_called_columns(refusal: Refusal) -> None:
    assert "columns=" in refusal("""
        aggregated_sales = Asset('aggregated_sales', uri='snowflake://...', column=['sales'])
    """)


def test_the_argument_type_is_called_kind(refusal: Refusal) -> None:
    assert "kind=" in refusal("aggregated_sales = Asset('aggregated_sales', type='dataset')")


def test_a_function_takes_the_place_of_the_sql_operator(load: Loader) -> None:
    asset = load("""
        raw_sales = Asset('raw_sales', uri='s3://...', columns=['sales'])

        @asset(uri='snowflake://...', columns=['sales'])
        def aggregated_sales(self, raw_sales, spark):
            return spark.sql(
                f"INSERT INTO {self.name} SELECT SUM({raw_sales.name}.sales) FROM {raw_sales.name}"
            )
    """)["aggregated_sales"]
    spark = SimpleNamespace(sql=lambda text: text)
    statement = materialize(asset, upstream={"raw_sales": None}, spark=spark)
    assert statement == "INSERT INTO aggregated_sales SELECT SUM(raw_sales.sales) FROM raw_sales"


# -- "Asset Function"


def test_the_argument_at_is_called_uri(refusal: Refusal) -> None:
    error = refusal("""
        # at is optional. human readable name defaults to function
        # name if none is given
        @asset(at="s3://aws_conn_id@bucket/bus_trips.parquet")
        def bus_trips():
            ...  # Write bus trips data to asset...
    """)
    assert "'at'" in error
    assert "uri" in error


def test_a_path_object_is_a_uri(load: Loader) -> None:
    asset = load("""
        from pathlib import PurePosixPath

        class ObjectStoragePath(PurePosixPath):
            # Stands in for the class of that name, whose path is a URI.
            def __fspath__(self):
                return "s3://aws_conn_id@bucket/bus_trips.parquet"

        @asset(uri=ObjectStoragePath("/bus_trips.parquet"))
        def bus_trips():
            ...
    """)["bus_trips"]
    assert asset.canonical_uri == "s3://bucket/bus_trips.parquet"


def test_a_path_of_the_standard_library_is_a_uri_of_a_file(load: Loader) -> None:
    asset = load("""
        from pathlib import Path

        @asset(uri=Path("/lake/bus trips"))
        def bus_trips():
            ...
    """)["bus_trips"]
    assert asset.canonical_uri == "file://localhost/lake/bus%20trips"


# -- "Asset Dependencies"


def test_upstream_assets_are_arguments_of_the_function(load: Loader) -> None:
    # `at` is our `uri`.
    asset = load("""
        @asset(uri="s3://aws_conn_id@bucket/raw_sales.parquet")
        def raw_sales():
            ...  # Write raw sales data to asset...

        @asset(uri="snowflake://...")
        def aggregated_sales(raw_sales):
            return sum(raw_sales.read())  # Write aggregated sales data to asset...
    """)["aggregated_sales"]
    assert asset.inlets == ["raw_sales"]
    assert materialize(asset, upstream={"raw_sales": [1, 2, 3]}) == 6


# -- "Asset Validations"

VALIDATED = """
    raw_sales = Asset(
        'raw_sales',
        uri='s3://...',
        outlet_validations=[AssetValidation.has_columns('sales')],
        columns=['sales'],
    )

    @asset(
        uri='s3://bucket/aggregated_sales',
        columns=['total'],
        kind='dataset',
        inlet_validations={raw_sales: [AssetValidation.has_columns(raw_sales.sales)]},
        outlet_validations=[AssetValidation.matches('phone', r'[+][0-9 ]+')],
    )
    def aggregated_sales(raw_sales):
        ...
"""


def test_expectations_are_declared_of_inputs_and_outputs(load: Loader) -> None:
    # `column=` and `type=` are our `columns=` and `kind=`. An asset can have several inlets, so
    # the validations of inlets say of which; a function takes the place of the SqlOperator. What is
    # written is validated where it can be read back, which is not so of snowflake.
    names = load(VALIDATED)
    raw, aggregated = names["raw_sales"].to_json(), names["aggregated_sales"].to_json()
    assert len(raw["outlet_validations"]) == 1
    assert len(aggregated["outlets"][0]["outlet_validations"]) == 1
    assert list(aggregated["inlet_validations"]) == ["raw_sales"]


def test_a_column_of_an_asset_is_its_attribute(load: Loader) -> None:
    raw_sales = load(VALIDATED)["raw_sales"]
    assert (raw_sales.sales.asset, raw_sales.sales.name) == ("raw_sales", "sales")
    with pytest.raises(AttributeError, match="revenue"):
        _ = raw_sales.revenue


OWN_RULE = """
    @validation
    def has_rows(frame):
        return len(frame) > 0

    raw_sales = Asset('raw_sales')
    runs = []

    @asset(
        uri='file:///lake/sales',
        inlet_validations={raw_sales: [has_rows]},
        outlet_validations=[has_rows],
    )
    def sales(raw_sales):
        runs.append(raw_sales)
        return [row for row in raw_sales.read() if row]
"""


def test_a_validation_can_be_ones_own(load: Loader) -> None:
    (outlet,) = load(OWN_RULE)["sales"].to_json()["outlets"]
    (rule,) = outlet["outlet_validations"]
    assert rule["name"] == "has_rows"


def test_inputs_are_checked_before_the_run_and_outputs_after_it(load: Loader) -> None:
    names = load(OWN_RULE)
    with pytest.raises(ValueError, match="has_rows"):
        materialize(names["sales"], upstream={"raw_sales": []})
    assert names["runs"] == []
    with pytest.raises(ValueError, match="has_rows"):
        materialize(names["sales"], upstream={"raw_sales": [0, 0]})
    assert len(names["runs"]) == 1
    assert materialize(names["sales"], upstream={"raw_sales": [0, 3]}) == [3]


# -- "Schedules"


def test_writes_start_on_a_date(load: Loader) -> None:
    asset = load("""
        @asset(
            start_date=datetime(1976, 6, 4), # When writes start. (Optional)
            schedule="@yearly", # When should a write happen.
        )
        def name():
            ...  # Code to concretely write data to this asset...
    """)["name"]
    declared = asset.to_json()
    assert declared["schedule"] == {"kind": "cron", "expression": "@yearly"}
    assert datetime.fromisoformat(declared["start_date"]).replace(tzinfo=None) == datetime(
        1976, 6, 4
    )


# -- "Understanding Partitions"


def test_24_hourly_partitions_correspond_to_one_daily_partition() -> None:
    hourly, daily = PartitionByInterval("@hourly"), PartitionByInterval("@daily")
    assert len(upstream_partitions(daily, hourly, daily.parse("2024-01-01"))) == 24


def test_a_single_run_can_make_a_range_of_partitions(load: Loader) -> None:
    asset = load("""
        @asset(partition=PartitionByInterval("@daily"), strategy="range")
        def sales(context):
            return len(context["partition"].keys)
    """)["sales"]
    assert materialize(asset, partition="2024-01") == 31


# -- "Using Partitions"


def test_the_shorthand_is_refused_and_names_what_it_is_short_for(refusal: Refusal) -> None:
    # AIP-76 took the shorthand back ("Shorthands for Time-based Partitioning"), and `auto` as the
    # default ("Automatic Partition Inference").
    error = refusal("""
        @asset(
            schedule="@hourly",
            # @hourly is shorthand for PartitionByInterval("@hourly")
            partition="@hourly",
        )
        def hourly_data():
            ...
    """)
    assert "PartitionByInterval('@hourly')" in error


def test_auto_derives_the_partition_from_the_schedule(load: Loader) -> None:
    asset = load("""
        @asset(
            schedule="@hourly",
            # if 'auto' and schedule is time-based, will derive partition from schedule
            partition="auto",
        )
        def hourly_data():
            ...
    """)["hourly_data"]
    assert asset.partition == PartitionByInterval("@hourly")


WAREHOUSES = """
    @asset(
        schedule="@daily",
        partition=PartitionBySequence(["marketing-dwh", "engineering-dwh"]),
        strategy="range",
    )
    def dwh_daily_cloud_spend():
        context = get_current_context()
        dwh_partitions = context["partition"].keys
        seen = []
        for dwh_partition in dwh_partitions:
            seen.append(dwh_partition)  # do something
        return seen
"""


def test_the_context_has_the_partitions_of_the_run(load: Loader) -> None:
    # `context["partitions"]` is our `context["partition"].keys` (AIP-76 has `partition` too).
    asset = load(WAREHOUSES)["dwh_daily_cloud_spend"]
    both = ["marketing-dwh", "engineering-dwh"]
    assert materialize(asset, partition="*") == both
    assert materialize(asset, partition="engineering-dwh") == both[1:]


def test_the_plural_is_not_in_the_context_and_the_error_says_what_is(load: Loader) -> None:
    asset = load("""
        @asset(partition=PartitionBySequence(["marketing-dwh", "engineering-dwh"]))
        def dwh_daily_cloud_spend():
            return get_current_context()["partitions"]
    """)["dwh_daily_cloud_spend"]
    with pytest.raises(KeyError, match=r"use one of .*partition"):
        materialize(asset, partition="marketing-dwh")


def test_partitions_can_be_found_at_run_time(load: Loader) -> None:
    asset = load("""
        active_customers = PartitionAtRuntime(name="active_customers")


        @asset(schedule="@hourly", partition=active_customers)
        def energy_consumption_model():
            '''get customer list and train model'''
            customers = ["ada", "grace"]  # get customer list
            for customer in customers:
                train_model = ...
                active_customers.add_partition(key=customer)
    """)["energy_consumption_model"]
    discovered: dict[str, list[Any]] = {}
    materialize(asset, discovered=discovered)
    assert discovered == {"active_customers": ["ada", "grace"]}


def test_a_product_takes_definitions_and_no_shorthand() -> None:
    with pytest.raises(DefinitionError, match=r"PartitionByInterval\('@hourly'\)"):
        PartitionByProduct(
            ["@hourly", PartitionBySequence(["marketing-dwh", "engineering-dwh"])]  # type: ignore[list-item]
        )


def test_48_runs_are_triggered_after_a_day(load: Loader) -> None:
    names = load("""
        @asset(
            schedule="@daily",
            partition=PartitionBySequence(["marketing-dwh", "engineering-dwh"]),
        )
        def dwh_daily_cloud_spend():
            ...

        @asset(
            schedule=dwh_daily_cloud_spend,
            partition=PartitionByProduct(
                [
                    PartitionByInterval("@hourly"),
                    PartitionBySequence(["marketing-dwh", "engineering-dwh"]),
                ],
            ),
        )
        def dwh_spend_analysis():
            ...
    """)
    spend, analysis = names["dwh_daily_cloud_spend"], names["dwh_spend_analysis"]
    today, tomorrow = date(2024, 1, 1), date(2024, 1, 2)
    upstream = list(spend.partition.keys())
    due = downstream_partitions(
        spend.partition, analysis.partition, upstream, since=today, until=tomorrow
    )
    assert len(due) == 48 == ended(analysis.partition, today, tomorrow)
