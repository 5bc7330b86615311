"""AIP-76, asset partitions: the examples as written in the document, and the rules of its text.

Where the document writes `...` for arguments left out, the example leaves the arguments out too;
broken indentation is mended.
"""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from slicewise import (
    DefinitionError,
    Interval,
    Offset,
    PartitionAtRuntime,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionKey,
    PartitionKeyError,
    PartitionMapping,
    downstream_partitions,
    upstream_partitions,
)
from slicewise.testing import materialize
from tests.documents.examples import Loader, Refusal, ended, hours

DAY = date(2024, 1, 1)
NEXT_DAY = date(2024, 1, 2)
MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC)


# -- "Specification"


@pytest.mark.parametrize("value", [1, 1.5, "x", datetime(2024, 1, 1, 14), (1, "x", date.min)])
def test_values_that_are_hashable_and_can_be_stored_name_partitions(value: object) -> None:
    definition = PartitionBySequence([value])
    (key,) = definition.keys()
    assert value in definition
    assert key == value
    assert hash(key) == hash(value)


def test_a_dict_is_no_key_and_the_error_says_what_is() -> None:
    with pytest.raises(DefinitionError, match="use a PartitionKey"):
        PartitionBySequence([{"x": 1}])


# -- "Time-based Partitions"


def test_hourly_partitions_by_an_hourly_schedule(load: Loader) -> None:
    names = load("""
        @asset(schedule="@hourly", partition=PartitionByInterval("@hourly"))
        def hourly_data():
           ...
    """)
    hourly = names["hourly_data"].partition
    ticks = hours(MIDNIGHT, 25)
    counts = [ended(hourly, *pair) for pair in pairwise(ticks)]
    assert counts == [1] * 24
    assert materialize(names["hourly_data"], partition="2024-01-01T14:00Z") is None


def test_a_daily_schedule_makes_24_hourly_partitions(load: Loader) -> None:
    names = load("""
        @asset(schedule="@daily", partition=PartitionByInterval("@hourly"))
        def hourly_data_generated_daily():
            ...
    """)
    asset = names["hourly_data_generated_daily"]
    assert ended(asset.partition, MIDNIGHT, MIDNIGHT + timedelta(days=1)) == 24
    # "each covering one hour of the previous day"
    windows = asset.partition.windows(DAY, NEXT_DAY)
    assert {window.duration for window in windows} == {timedelta(hours=1)}
    assert asset.options.strategy == "partition"  # "would trigger 24 runs"


def test_an_hourly_schedule_makes_a_daily_partition_at_its_24th_tick(load: Loader) -> None:
    names = load("""
        @asset(schedule="@hourly", partition=PartitionByInterval("@hourly"))
        def hourly_data():
            ...

        @asset(schedule=hourly_data, partition=PartitionByInterval("@daily"))
        def language_model(hourly_data):
            ...  # Retrain language model based on the past day's data...
    """)
    daily, hourly = names["language_model"].partition, names["hourly_data"].partition
    ticks = hours(MIDNIGHT, 25)
    counts = [ended(daily, *pair) for pair in pairwise(ticks)]
    assert counts == [0] * 23 + [1]
    assert len(upstream_partitions(daily, hourly, daily.parse("2024-01-01"))) == 24
    assert names["language_model"].inlets == ["hourly_data"]
    assert names["language_model"].to_json()["schedule"] == {"kind": "asset", "name": "hourly_data"}


@pytest.mark.parametrize("cadence", ["@daily", "@hourly", "30 4 * * 1-5", timedelta(minutes=8)])
def test_an_interval_is_a_preset_a_cron_expression_or_a_timedelta(cadence: str | timedelta) -> None:
    windows = PartitionByInterval(cadence).windows(DAY, date(2024, 1, 15))
    assert windows[0].end == windows[1].start


# -- "Segment-based Partitions"


def test_each_data_warehouse_is_a_partition(load: Loader) -> None:
    names = load("""
        @asset(
            schedule="@daily",
            partition=PartitionBySequence(["marketing-dwh", "engineering-dwh"]),
        )
        def dwh_daily_cloud_spend():
           ...
    """)
    definition = names["dwh_daily_cloud_spend"].partition
    keys = definition.keys()
    assert [key.value for key in keys] == ["marketing-dwh", "engineering-dwh"]
    assert definition.count() == 2


# -- "Combined Partitions"

SPEND = """
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
"""


def test_24_hours_times_2_data_warehouses_are_48_runs(load: Loader) -> None:
    names = load(SPEND)
    upstream = names["dwh_daily_cloud_spend"].partition
    analysis = names["dwh_spend_analysis"]
    both = list(upstream.keys())
    due = downstream_partitions(upstream, analysis.partition, both, since=DAY, until=NEXT_DAY)
    assert len(due) == 48
    keys = downstream_partitions(upstream, analysis.partition, both[0], since=DAY, until=NEXT_DAY)
    assert len(keys) == 24
    assert {key["segment"] for key in keys} == {"marketing-dwh"}
    assert analysis.options.strategy == "partition"


def test_a_product_has_at_most_one_dimension_of_time() -> None:
    with pytest.raises(DefinitionError, match="at most one time dimension"):
        PartitionByProduct(
            [PartitionByInterval("@hourly"), PartitionByInterval("@daily", name="d")]
        )


# -- "Runtime-assigned Partitions"

CUSTOMERS = """
    active_customers = PartitionAtRuntime(name="active_customers")

    @asset(schedule="@hourly", partition=active_customers)
    def energy_consumption_model():
        '''get customer list and train model'''
        customers = ["ada", "grace", "ada"]  # get customer list
        for customer in customers:
            train_model = ...
            active_customers.add_partition(key=customer)

    @asset(schedule=energy_consumption_model, partition=active_customers)
    def energy_prediction():
        return get_current_context()["partition"].key
"""


def test_a_run_finds_the_customers(load: Loader) -> None:
    discovered: dict[str, list[Any]] = {}
    materialize(load(CUSTOMERS)["energy_consumption_model"], discovered=discovered)
    assert discovered == {"active_customers": ["ada", "grace"]}


def test_a_customer_that_was_found_is_predicted_once(load: Loader) -> None:
    names = load(CUSTOMERS)
    model, prediction = names["energy_consumption_model"], names["energy_prediction"]
    known_customers = model.partition.known(["ada", "grace"])
    due = downstream_partitions(
        known_customers, prediction.partition.known(["ada", "grace"]), "grace"
    )
    assert [key.value for key in due] == ["grace"]
    assert model.partition == prediction.partition == known_customers
    assert materialize(prediction, partition="grace") == "grace"


def test_partitions_are_added_inside_of_a_run_only(load: Loader) -> None:
    with pytest.raises(RuntimeError, match="run"):
        load(CUSTOMERS)["active_customers"].add_partition(key="ada")


def test_runtime_partitions_are_not_combined_with_others() -> None:
    with pytest.raises(DefinitionError, match="intervals and sequences, not runtime"):
        PartitionByProduct([PartitionByInterval("@daily"), PartitionAtRuntime(name="customers")])


# -- "Rich Partition Key"

POSITION = """
    class Position(PartitionKey):
        x: float
        y: float
        z: float

        # Optional; Airflow generates a repr similar to dataclasses.
        def __str__(self) -> str:
            return f"({self.x}, {self.y}, {self.z})"
"""


def test_a_key_of_ones_own_has_fields(load: Loader) -> None:
    position_of = load(POSITION)["Position"]
    here = position_of(1.0, 2.5, z=3.0)
    assert str(here) == "(1.0, 2.5, 3.0)"
    assert repr(here) == "Position(x=1.0, y=2.5, z=3.0)"
    assert here == position_of(x=1.0, y=2.5, z=3.0) != position_of(0.0, 0.0, 0.0)
    assert len({here, position_of(1.0, 2.5, 3.0)}) == 1
    assert position_of(0.0, 0.0, 0.0) < here
    with pytest.raises((AttributeError, TypeError)):
        here.x = 5.0


def test_positions_name_partitions(load: Loader) -> None:
    names = load(
        POSITION
        + """
    @asset(partition=PartitionBySequence([Position(0.0, 0.0, 0.0), Position(1.0, 2.5, 3.0)]))
    def measured():
        return get_current_context()["partition"].key
    """
    )
    definition, position_of = names["measured"].partition, names["Position"]
    here = position_of(1.0, 2.5, 3.0)
    keys = definition.keys()
    (text,) = [key.text for key in keys if key == here]
    assert definition.parse(text) == here
    assert text != "(1.0, 2.5, 3.0)"  # the text comes from the fields, `__str__` is a label
    position = materialize(names["measured"], partition=text)
    assert (type(position), position) == (position_of, here)


@pytest.mark.parametrize("method", ["__init__", "__new__", "__setattr__", "__reduce__"])
def test_a_key_of_ones_own_runs_no_code_when_it_is_made(method: str, refusal: Refusal) -> None:
    error = refusal(f"""
        class Position(PartitionKey):
            x: float

            def {method}(self, *arguments):
                raise SystemExit("arbitrary code")
    """)
    assert method in error
    assert "arbitrary code" not in error


def test_plain_values_are_wrapped_and_come_back_as_they_were(load: Loader) -> None:
    names = load("""
        @asset(
            partition=PartitionByProduct(
                [PartitionByInterval("@daily"), PartitionBySequence(["marketing-dwh"])]
            ),
        )
        def spend():
            key = get_current_context()["partition"].key
            return key, key["time"], key["segment"]
    """)
    key, time, segment = materialize(names["spend"], partition="2024-01-01|marketing-dwh")
    assert isinstance(key, PartitionKey)
    assert isinstance(time, Interval)
    assert type(segment) is str
    (wrapped,) = PartitionBySequence(["marketing-dwh"]).keys()
    assert isinstance(wrapped, PartitionKey)


def test_an_interval_has_a_start_and_an_end_and_is_written_by_its_start() -> None:
    (window,) = PartitionByInterval("@daily").windows(DAY, NEXT_DAY)
    assert (window.start, window.end) == (MIDNIGHT, MIDNIGHT + timedelta(days=1))
    assert str(window) == "2024-01-01"


# -- "Accessing Partition Information"

PAST = """
    @asset(
        partition=PartitionBySequence(["marketing-dwh", "engineering-dwh"]),
    )
    def dwh_daily_cloud_spend():
        context = get_current_context()
        seen = []
        for partition in context["partition"].iter_past_partitions():
            seen.append(partition)  # do something
        return seen
"""


def test_past_partitions_are_there_to_be_walked(load: Loader) -> None:
    asset = load(PAST)["dwh_daily_cloud_spend"]
    partition, past_partition = "engineering-dwh", "marketing-dwh"
    assert materialize(asset, partition=partition) == []
    assert materialize(asset, partition=partition, past=[past_partition, partition]) == [
        past_partition
    ]


def test_past_partitions_of_time_come_newest_first(load: Loader) -> None:
    asset = load("""
        @asset(partition=PartitionByInterval("@daily"))
        def daily_spend(context):
            return [str(day) for day in context["partition"].iter_past_partitions()]
    """)["daily_spend"]
    past_days = ["2024-01-01", "2024-01-03", "2024-01-05"]
    assert materialize(asset, partition="2024-01-04", past=past_days) == [
        "2024-01-03",
        "2024-01-01",
    ]


def test_the_context_has_the_definition_and_the_current_partition(load: Loader) -> None:
    asset = load("""
        @asset(partition=PartitionBySequence(["marketing-dwh", "engineering-dwh"]))
        def dwh_daily_cloud_spend(context):
            partition = context["partition"]
            return partition.definition, partition.key, str(partition)
    """)["dwh_daily_cloud_spend"]
    result = materialize(asset, partition="marketing-dwh")
    assert result == (asset.partition, "marketing-dwh", "marketing-dwh")


# -- "Partition Dependency"

DEPENDENCIES = """
    @asset(schedule="@hourly", partition=PartitionByInterval("@hourly"))
    def raw_hourly_data():
        ...

    @asset(schedule=raw_hourly_data, partition=PartitionByInterval("@hourly"))
    def hourly_data():
        ...

    @asset(schedule=raw_hourly_data, partition=PartitionByInterval("30 * * * *"))
    def hourly_data_shifted():
        ...

    @asset(schedule=hourly_data, partition=PartitionByInterval("@daily"))
    def aggregated_daily_data():
        ...

    @asset(schedule="@yearly", partition=PartitionByInterval("@yearly"))
    def yearly_data():
        ...

    @asset(schedule=yearly_data, partition=PartitionByInterval("@monthly"))
    def data_using_slow_data():
        ...
"""


def needed(names: dict[str, Any], downstream: str, upstream: str, key: str) -> list[str]:
    """Return the key texts of the upstream partitions that one downstream partition needs."""
    below, above = names[downstream].partition, names[upstream].partition
    return [upstream.text for upstream in upstream_partitions(below, above, below.parse(key))]


@pytest.mark.parametrize(
    ("downstream", "upstream", "key", "expected"),
    [
        # "The partition of raw_hourly_data covering 2pm must be materialized first"
        ("hourly_data", "raw_hourly_data", "2024-01-01T14:00Z", ["2024-01-01T14:00Z"]),
        # "both the 2pm and 3pm partitions of raw_hourly_data must first materialize"
        (
            "hourly_data_shifted",
            "raw_hourly_data",
            "2024-01-01T14:30Z",
            ["2024-01-01T14:00Z", "2024-01-01T15:00Z"],
        ),
        # "depends on 24 partitions of hourly_data of the day"
        (
            "aggregated_daily_data",
            "hourly_data",
            "2024-01-01",
            [f"2024-01-01T{hour:02}:00Z" for hour in range(24)],
        ),
        ("data_using_slow_data", "yearly_data", "2024-05-01", ["2024-01-01"]),
    ],
)
def test_upstream_partitions_that_overlap_come_first(
    load: Loader, downstream: str, upstream: str, key: str, expected: list[str]
) -> None:
    assert needed(load(DEPENDENCIES), downstream, upstream, key) == expected


def test_a_yearly_update_is_followed_by_12_runs(load: Loader) -> None:
    names = load(DEPENDENCIES)
    yearly, monthly = names["yearly_data"].partition, names["data_using_slow_data"].partition
    due = downstream_partitions(yearly, monthly, yearly.parse("2024-01-01"))
    assert len(due) == 12
    assert names["data_using_slow_data"].options.strategy == "partition"


# -- "Backfilling"


def test_there_is_no_catching_up(refusal: Refusal) -> None:
    # "We're not adding separate start_date and catchup arguments". A start_date there is since
    # (the wider proposal has it): it says when ticks begin and makes no history due.
    error = refusal("""
        @asset(schedule="@daily", catchup=True, partition=PartitionByInterval("@daily"))
        def daily_data():
            ...
    """)
    assert "catchup" in error
    assert "backfill" in error


# -- "Future Work"


def test_a_preset_is_no_partition_and_the_error_names_the_definition(refusal: Refusal) -> None:
    error = refusal("""
        @asset(partition="@daily")
        def daily_data():
            ...
    """)
    assert "PartitionByInterval('@daily')" in error


def test_a_list_is_no_partition(refusal: Refusal) -> None:
    error = refusal("""
        @asset(partition=["foo", "bar"])
        def data():
            ...
    """)
    assert "partition" in error
    assert "list" in error


def test_an_interval_can_have_a_start(load: Loader) -> None:
    asset = load("""
        import datetime

        @asset(partition=PartitionByInterval(
            "@daily",
            start=datetime.date(2024, 1, 1), # For backfilling.
        ))
        def daily_data_from_2024():
            ...
    """)["daily_data_from_2024"]
    assert asset.partition.keys(until=date(2024, 1, 3))[0].text == "2024-01-01"
    assert asset.partition.window_at(datetime(2023, 12, 31, 12)) is None


def test_the_last_partitions_can_be_made_again(load: Loader) -> None:
    asset = load("""
        @asset(schedule="@daily", partition=PartitionByInterval("@daily"), refresh=2)
        def daily_data():
            ...
    """)["daily_data"]
    assert asset.to_json()["refresh"] == 2


def test_nothing_is_inferred_where_no_partition_is_said(load: Loader) -> None:
    asset = load("""
        @asset(
        schedule="@daily",
        # Many
        # lines
        # of
        # params
        # ...
        )
        def my_asset():
            ...
    """)["my_asset"]
    assert asset.partition is None
    assert asset.to_json()["partition"] is None


def test_auto_takes_the_partition_from_a_schedule_of_time(load: Loader) -> None:
    asset = load("""
        @asset(schedule="0 12 * * *", partition="auto")
        def my_asset():
            ...
    """)["my_asset"]
    # "if the asset is materialized every day at noon, a partition covers the previous noon"
    assert asset.partition == PartitionByInterval("0 12 * * *")


def test_auto_is_no_partition_where_the_schedule_is_not_of_time(load: Loader) -> None:
    names = load("""
        @asset(schedule="0 12 * * *", partition="auto")
        def noon():
            ...

        @asset(schedule=noon, partition="auto")
        def after_noon():
            ...

        @asset(partition="auto")
        def by_hand():
            ...
    """)
    assert names["after_noon"].partition is None
    assert names["by_hand"].partition is None


def test_an_asset_can_slide_over_the_past_two_hours() -> None:
    hourly = PartitionByInterval("@hourly")
    hours = upstream_partitions(hourly, hourly, hourly.parse("2024-01-01T14:00Z"), Offset(-1, 0))
    assert [key.text for key in hours] == ["2024-01-01T13:00Z", "2024-01-01T14:00Z"]


def test_rules_of_dependency_and_definitions_can_be_ones_own() -> None:
    assert PartitionMapping.__abstractmethods__ == {"upstream", "downstream"}
    assert isinstance(Offset(-1), PartitionMapping)


# -- the comments


def test_a_timedelta_is_aligned_to_the_start() -> None:
    every_8_minutes = PartitionByInterval(timedelta(minutes=8), start="2021-12-10T10:35")
    first = every_8_minutes.windows(until="2021-12-10T11:00")[0]
    assert str(first) == "2021-12-10T10:35Z"
    assert first.duration == timedelta(minutes=8)


def test_a_preset_keeps_to_its_clock_whatever_the_start() -> None:
    # The comment asks whether "@hourly" with a start of 10:35 means :35; a cron text says so.
    hourly = PartitionByInterval("@hourly", start="2021-12-10T10:35")
    assert str(hourly.windows(until="2021-12-10T12:00")[0]) == "2021-12-10T11:00Z"
    shifted = PartitionByInterval("35 * * * *", start="2021-12-10T10:35")
    assert str(shifted.windows(until="2021-12-10T12:00")[0]) == "2021-12-10T10:35Z"


def test_the_partition_stands_in_a_filter_as_its_date(load: Loader) -> None:
    # `PartitionByInternal` is a slip of the comment; catalog and table are those of Iceberg.
    asset = load("""
        @asset(schedule="@daily", partition=PartitionByInterval("@daily"))
        def daily_sales_data():
            context = get_current_context()
            partition_date = context["partition"]
            return f"ts >= '{partition_date} 00:00:00' AND ts < '{partition_date} 23:59:59'"
    """)["daily_sales_data"]
    condition = materialize(asset, partition="2024-01-01")
    assert condition == "ts >= '2024-01-01 00:00:00' AND ts < '2024-01-01 23:59:59'"


def test_a_manual_run_says_exactly_which_partition(load: Loader) -> None:
    asset = load(PAST)["dwh_daily_cloud_spend"]
    with pytest.raises(PartitionKeyError, match="write partition"):
        materialize(asset)
