"""The preview names the missing upstream partitions for which partitions are skipped."""

from unittest.mock import patch

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

import slicewise
from accounts_app.models import User
from assets_app.models import Gateway
from backfills_app.services import PlannedAsset
from backfills_app.services.request import planning
from tests.attempts import begun, publish
from tests.backfills.driven_backfills import following, plan_of
from tests.factories import DAILY_2013, asset

WEEKLY = slicewise.PartitionByInterval("@weekly", start="2013-01-01", end="2014-01-01")
LATER_DAYS = slicewise.PartitionByInterval("@daily", start="2013-01-11", end="2014-01-01")


def missing_of(planned: PlannedAsset) -> list[tuple[str, int, str, str]]:
    """Return the missing upstream partitions that a plan names."""
    return [
        (row.asset.name, row.partitions, row.first, row.last) for row in planned.missing_by_asset
    ]


@pytest.fixture
def weather(alice: User, gateway: Gateway) -> None:
    """Create the days of flights, and the days of weather, with data of the first twenty days."""
    asset("raw_flights", DAILY_2013)
    days = asset("weather", DAILY_2013)
    publish(begun(days, alice, gateway, "2013-01-01..2013-01-20", strategy="range"))


@pytest.mark.usefixtures("weather", "worker")
def test_the_first_and_the_last_are_named_for_each_asset(alice: User) -> None:
    asset("airports", None)
    following("delays", DAILY_2013, of={"raw_flights": None, "weather": None})
    following("weeks", WEEKLY, of={"delays": None})
    following("spend", DAILY_2013, of={"raw_flights": None, "airports": None})
    plan = plan_of(alice, "raw_flights", selection="2013-01", downstream="all")
    assert plan["raw_flights"].missing_by_asset == ()
    assert missing_of(plan["delays"]) == [("weather", 11, "2013-01-21", "2013-01-31")]
    assert [row.asset.name for row in plan["weeks"].missing_by_asset] == ["delays"]
    assert missing_of(plan["spend"]) == [("airports", 1, "", "")]


@pytest.mark.usefixtures("weather", "worker")
def test_partitions_that_do_not_exist_are_not_called_missing(alice: User) -> None:
    asset("sensors", LATER_DAYS)
    following("delays", DAILY_2013, of={"raw_flights": None, "sensors": None})
    plan = plan_of(alice, "raw_flights", selection="2013-01", downstream="all")["delays"]
    assert (plan.upstream_missing, plan.upstream_nonexistent) == (31, 10)
    assert missing_of(plan) == [("sensors", 21, "2013-01-11", "2013-01-31")]


@pytest.mark.usefixtures("weather", "worker")
def test_an_asset_that_reads_any_data_lacks_none_of_an_asset_with_data(alice: User) -> None:
    asset("airports", None)
    following("report", None, of={"weather": None, "raw_flights": None, "airports": None})
    plan = plan_of(alice, "raw_flights", selection="2013-01", downstream="all")["report"]
    assert missing_of(plan) == [("airports", 1, "", "")]


@pytest.mark.usefixtures("weather", "worker")
def test_an_asset_without_any_data_is_named_alone(alice: User) -> None:
    asset("sensors", DAILY_2013)
    following("report", None, of={"raw_flights": None, "sensors": None})
    plan = plan_of(alice, "raw_flights", selection="2013-01", downstream="all")["report"]
    assert plan.upstream_missing == 1
    assert missing_of(plan) == [("sensors", 0, "", "")]


@pytest.mark.usefixtures("weather", "worker")
def test_alternatives_of_a_schedule_are_named_only_if_none_is_met(alice: User) -> None:
    asset("sensors", DAILY_2013)
    following(
        "delays", DAILY_2013, of={"raw_flights": None, "weather": None, "sensors": None},
        schedule={
            "kind": "any",
            "of": [{"kind": "asset", "name": name} for name in ("weather", "sensors")],
        },
    )  # fmt: skip
    plan = plan_of(alice, "raw_flights", selection="2013-01", downstream="all")["delays"]
    # Days to 20 January have weather, and so need no sensors.
    assert plan.upstream_missing == 11
    later_days = (11, "2013-01-21", "2013-01-31")
    assert sorted(missing_of(plan)) == [("sensors", *later_days), ("weather", *later_days)]


@pytest.mark.usefixtures("weather", "worker")
def test_names_cost_no_statement(alice: User) -> None:
    following("delays", DAILY_2013, of={"raw_flights": None, "weather": None})
    following("weeks", WEEKLY, of={"delays": None})
    costs = set()
    for selection, missing_count in (("2013-01", 11), ("2013", 345)):
        with CaptureQueriesContext(connection) as statements:
            plan = plan_of(alice, "raw_flights", selection=selection, downstream="all")
        assert [row.partitions for row in plan["delays"].missing_by_asset] == [missing_count]
        with (
            CaptureQueriesContext(connection) as statements_without_names,
            patch.object(planning, "missing_by_asset", return_value=()),
        ):
            plan_of(alice, "raw_flights", selection=selection, downstream="all")
        costs |= {len(statements), len(statements_without_names)}
    assert len(costs) == 1
