"""Schedule, timezone, start_date, end_date and partition="auto" in combination."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from slicewise import (
    Asset,
    PartitionByInterval,
    PartitionByProduct,
    PartitionBySequence,
    PartitionDefinition,
    asset,
)

raw = Asset("raw")
BERLIN = PartitionByInterval("@daily", timezone="Europe/Berlin")
SEGMENTS = PartitionBySequence(["a", "b"])


def recorded(**options: Any) -> dict[str, Any]:
    @asset(**options)
    def flights() -> None: ...

    return flights.to_json()


@pytest.mark.parametrize(
    ("options", "partition"),
    [
        ({"schedule": "@daily"}, PartitionByInterval("@daily")),
        (
            {"schedule": "30 6 * * *", "timezone": "Asia/Kathmandu"},
            PartitionByInterval("30 6 * * *", timezone="Asia/Kathmandu"),
        ),
        (
            {"schedule": "@hourly", "start_date": date(2024, 1, 1), "end_date": date(2025, 1, 1)},
            PartitionByInterval("@hourly", start=date(2024, 1, 1), end=date(2025, 1, 1)),
        ),
        (
            {"schedule": timedelta(hours=7), "start_date": datetime(2024, 1, 1, 3)},
            PartitionByInterval(timedelta(hours=7), start=datetime(2024, 1, 1, 3)),
        ),
        ({"schedule": raw}, None),
        ({"schedule": raw | Asset.ref("other")}, None),
        ({}, None),
    ],
)
def test_auto_follows_a_schedule_of_time_and_is_none_otherwise(
    options: dict[str, Any], partition: PartitionDefinition | None
) -> None:
    spec = recorded(partition="auto", **options)["partition"]
    assert (None if spec is None else PartitionDefinition.from_json(spec)) == partition


def test_nothing_is_inferred_where_auto_is_not_written() -> None:
    assert recorded(schedule="@daily")["partition"] is None


def test_auto_partitions_are_those_of_the_asset_and_of_its_outlet() -> None:
    @asset(schedule="@daily", partition="auto")
    def flights() -> None: ...

    assert flights.partition == PartitionByInterval("@daily")
    assert flights.to_json()["outlets"][0]["partition"] == flights.to_json()["partition"]


@pytest.mark.parametrize(
    ("options", "zone"),
    [
        ({}, "UTC"),
        ({"partition": BERLIN}, "Europe/Berlin"),
        ({"partition": PartitionByProduct({"day": BERLIN, "dwh": SEGMENTS})}, "Europe/Berlin"),
        ({"partition": SEGMENTS}, "UTC"),
        ({"partition": BERLIN, "timezone": "America/New_York"}, "America/New_York"),
    ],
)
def test_the_time_zone_is_the_one_written_else_the_partitions_else_utc(
    options: dict[str, Any], zone: str
) -> None:
    assert recorded(schedule="@daily", **options)["timezone"] == zone


@pytest.mark.parametrize(
    ("written", "resolved"),
    [
        (date(2024, 7, 1), "2024-07-01T00:00:00+02:00"),
        (datetime(2024, 1, 1, 6), "2024-01-01T06:00:00+01:00"),
        ("2024-01-01", "2024-01-01T00:00:00+01:00"),
        # The clock reads it twice: the first pass, or the second where it is asked for.
        (datetime(2024, 10, 27, 2, 30), "2024-10-27T02:30:00+02:00"),
        (datetime(2024, 10, 27, 2, 30, fold=1), "2024-10-27T02:30:00+01:00"),
        # The clock never reads it: the first instant after the gap.
        (datetime(2024, 3, 31, 2, 30), "2024-03-31T03:00:00+02:00"),
        (datetime(2024, 1, 1, tzinfo=UTC), "2024-01-01T00:00:00+00:00"),
        (None, None),
    ],
)
def test_dates_are_wall_time_in_the_time_zone_unless_they_carry_one(
    written: Any, resolved: str | None
) -> None:
    for name in ("start_date", "end_date"):
        spec = recorded(schedule="@daily", timezone="Europe/Berlin", **{name: written})
        assert spec[name] == resolved


def test_the_end_is_compared_with_the_start_as_an_instant() -> None:
    # Its clock reads less than that of the start, and it is two hours later.
    later = datetime(2024, 1, 1, 9, tzinfo=timezone(timedelta(hours=-5)))
    start = datetime(2024, 1, 1, 12, tzinfo=UTC)
    spec = recorded(schedule="@daily", start_date=start, end_date=later)
    assert spec["end_date"] == "2024-01-01T09:00:00-05:00"


def test_a_schedule_is_recorded_as_it_was_read() -> None:
    assert recorded(schedule=" 0  6 * * * ")["schedule"]["expression"] == "0 6 * * *"
    assert recorded(schedule="@daily")["schedule"]["expression"] == "@daily"
    seconds = recorded(schedule=timedelta(minutes=15))["schedule"]["seconds"]
    assert (seconds, type(seconds)) == (900, int)
