"""AIP-76, "Time-based Partitions" and "Partition Dependency": the document's examples on a real
stack.
"""

import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from slicewise_server.stack.demo.client import Client
from tests.e2e.conftest import ended, eventually, settle

_MADE = """
SELECT partition.key FROM assets_app_materialization AS materialization
JOIN assets_app_assetpartition AS partition ON partition.id = materialization.partition_id
JOIN assets_app_asset AS asset ON asset.id = partition.asset_id
WHERE asset.name = %s
    AND partition.identity <> 'discovery' ORDER BY partition.window_start, partition.segment
"""
# As if the server had not been there at the last ticks: time is the one thing that is made up.
_WAS_AWAY = """
UPDATE assets_app_schedule SET handled_until = %s, next_at = %s
WHERE producer_id = (SELECT id FROM assets_app_producer WHERE name = %s)
"""

_LONGEST_TEST = timedelta(minutes=4)


class Trial:
    """The examples, made and looked at."""

    def __init__(self, api: Client, database: psycopg.Connection) -> None:
        self.api, self.database = api, database

    def made_keys(self, asset: str) -> list[str]:
        """Return the keys of all materializations of an asset, in order; a repeated key is there
        twice.
        """
        return [key for (key,) in self.database.execute(_MADE, [asset]).fetchall()]

    def materialize(self, asset: str, selection: str = "") -> None:
        """Have a person ask for these, and wait for all that follows."""
        body = {"selection": selection} if selection else {}
        for number in self.api.post(f"/assets/{asset}/materialize/", **body)["runs"]:
            assert ended(self.api, f"/runs/{number}/")["state"] == "succeeded"
        settle(self.database)

    def tick(self, asset: str, before: datetime, tick_at: datetime) -> None:
        """Let the asset's schedule handle the ticks after `before`; the first tick was at
        `tick_at`.
        """
        self.api.post(f"/assets/{asset}/unpause/")
        try:
            self.database.execute(_WAS_AWAY, [before, tick_at, asset])
            eventually(lambda: self.api.get(f"/assets/{asset}/ticks/")["results"])
            settle(self.database)
        finally:
            self.api.post(f"/assets/{asset}/pause/")


@pytest.fixture
def trial(api: Client, database: psycopg.Connection) -> Trial:
    return Trial(api, database)


@pytest.fixture
def hour() -> datetime:
    """Return the beginning of this hour; wait first where the hour could end during the test."""
    full_hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    remaining = full_hour + timedelta(hours=1) - datetime.now(UTC)
    if remaining > _LONGEST_TEST:
        return full_hour
    time.sleep(remaining.total_seconds() + 1)
    return full_hour + timedelta(hours=1)


@pytest.fixture
def midnight(hour: datetime) -> datetime:
    """Return the last midnight, in UTC."""
    return hour.replace(hour=0)


# -- "Time-based Partitions"


def test_an_hourly_schedule_makes_each_hour(trial: Trial, hour: datetime) -> None:
    trial.tick("raw_hourly_data", hour - timedelta(hours=3), hour - timedelta(hours=2))
    hours = [f"{hour - timedelta(hours=ago):%Y-%m-%dT%H:%MZ}" for ago in (3, 2, 1)]
    assert trial.made_keys("raw_hourly_data")[-3:] == hours
    assert trial.made_keys("hourly_data")[-3:] == hours


def test_a_daily_schedule_makes_24_hours(trial: Trial, midnight: datetime) -> None:
    yesterday = midnight - timedelta(days=1)
    trial.tick("hourly_data_generated_daily", yesterday, midnight)
    assert trial.made_keys("hourly_data_generated_daily") == [
        f"{yesterday + timedelta(hours=hour):%Y-%m-%dT%H:%MZ}" for hour in range(24)
    ]


def test_an_hourly_schedule_makes_a_day_once(trial: Trial, midnight: datetime) -> None:
    yesterday = midnight - timedelta(days=1)
    trial.tick("daily_data_looked_at_hourly", yesterday, yesterday + timedelta(hours=1))
    assert trial.made_keys("daily_data_looked_at_hourly") == [f"{yesterday:%Y-%m-%d}"]


# -- "Partition Dependency"


def test_a_shifted_hour_needs_two_and_a_day_24(trial: Trial) -> None:
    trial.materialize("raw_hourly_data", "2024-01-01T14:00Z")
    assert "2024-01-01T14:00Z" in trial.made_keys("hourly_data")
    assert not [key for key in trial.made_keys("hourly_data_shifted") if key.startswith("2024")]
    trial.materialize("raw_hourly_data", "2024-01-01T15:00Z")
    shifted = [key for key in trial.made_keys("hourly_data_shifted") if key.startswith("2024")]
    assert shifted == ["2024-01-01T14:30Z"]
    trial.materialize(
        "raw_hourly_data",
        "2024-01-01T00:00Z..2024-01-01T13:00Z,2024-01-01T16:00Z..2024-01-01T22:00Z",
    )
    assert len([key for key in trial.made_keys("hourly_data") if key.startswith("2024")]) == 23
    assert trial.made_keys("aggregated_daily_data") == []
    trial.materialize("raw_hourly_data", "2024-01-01T23:00Z")
    assert trial.made_keys("aggregated_daily_data") == ["2024-01-01"]


def test_a_yearly_update_makes_12_months(trial: Trial) -> None:
    trial.materialize("yearly_data", "2023")
    assert trial.made_keys("data_using_slow_data") == [
        f"2023-{month:02d}-01" for month in range(1, 13)
    ]


# -- "Combined Partitions"


@pytest.mark.usefixtures("hour")
def test_a_daily_update_of_two_warehouses_makes_48(trial: Trial) -> None:
    trial.database.execute(
        "UPDATE assets_app_schedule SET handled_until = %s WHERE producer_id ="
        " (SELECT id FROM assets_app_producer WHERE name = 'dwh_spend_analysis')",
        [datetime.now(UTC) - timedelta(days=1)],
    )
    trial.materialize("dwh_daily_cloud_spend", "*")
    partitions = trial.made_keys("dwh_spend_analysis")
    assert len(partitions) == len(set(partitions)) == 48


# -- "Runtime-assigned Partitions"


def test_each_customer_that_is_found_is_predicted_once(trial: Trial) -> None:
    trial.materialize("energy_consumption_model")
    assert sorted(trial.made_keys("energy_prediction")) == ["ada", "grace"]
    # Found again, their models are newer than what was predicted by them.
    trial.materialize("energy_consumption_model")
    assert sorted(trial.made_keys("energy_prediction")) == ["ada", "ada", "grace", "grace"]
