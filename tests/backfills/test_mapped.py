"""Backfills of assets of which every partition needs the same: `Latest`, `All` and `Keys`."""

from typing import Any

import pytest

from accounts_app.models import User
from assets_app.execution.attempt import attempts
from assets_app.models import Asset, Gateway, Run
from assets_app.queries.staleness import newer_inputs
from slicewise import All, Keys, Latest, PartitionByInterval, PartitionDefinition, PartitionMapping
from tests.attempts import begun, publish
from tests.backfills.driven_backfills import ask, drive, failing_keys, following, outcomes, plan_of
from tests.factories import DAILY_2013, asset

BOUNDED = PartitionByInterval("@daily", start="2013-01-01", end="2013-01-05")
OPEN = PartitionByInterval("@daily", end="2013-01-05")
MAPPINGS = [Latest(), All(), Keys(["2013-01-04"])]
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.parametrize("mapping", MAPPINGS, ids=repr),
]


@pytest.fixture(params=[BOUNDED, OPEN], ids=["bounded", "open"])
def rates(request: pytest.FixtureRequest, db: None) -> Asset:
    definition: PartitionDefinition = request.param
    return asset("rates", definition)


def test_all_are_materialized_where_their_upstream_is_materialized(
    mapping: PartitionMapping, rates: Asset, alice: User, gateway: Gateway, worker: Gateway
) -> None:
    publish(begun(rates, alice, gateway, "2013-01-02..2013-01-04", strategy="range"))
    following("daily", DAILY_2013, of={"rates": mapping})
    planned = plan_of(alice, "daily", selection="2013-02")["daily"]
    assert (planned.to_materialize, planned.upstream_missing) == (28, 0)
    backfill = ask(alice, "daily", selection="2013-02")
    drive(worker)
    assert outcomes(backfill, "daily") == {"succeeded": 28}


def test_none_is_made_where_it_is_missing(
    mapping: PartitionMapping, rates: Asset, alice: User, gateway: Gateway, worker: Gateway
) -> None:
    publish(begun(rates, alice, gateway, "2013-01-02..2013-01-03", strategy="range"))
    following("daily", DAILY_2013, of={"rates": mapping})
    planned = plan_of(alice, "daily", selection="2013-02")["daily"]
    assert (planned.to_materialize, planned.upstream_missing) == (0, 28)
    backfill = ask(alice, "daily", selection="2013-02")
    drive(worker)
    assert outcomes(backfill, "daily") == {"upstream_missing": 28}


def test_a_partition_that_all_others_need_is_materialized_first(
    mapping: PartitionMapping, rates: Asset, alice: User, worker: Gateway
) -> None:
    following("daily", DAILY_2013, of={"rates": mapping})
    days: dict[str, Any] = {"selection": "2013-01-02..2013-01-04", "downstream": "all"}
    assert plan_of(alice, "rates", **days)["daily"].to_materialize == 3
    backfill = ask(alice, "rates", **days, order="newest")
    drive(worker)
    assert outcomes(backfill, "daily") == {"succeeded": 3}
    first = Run.objects.filter(asset__name="daily").earliest("id")
    last_day = Run.objects.get(asset=rates, partitions__partition__key="2013-01-04")
    assert last_day.pk < first.pk
    if isinstance(mapping, All):
        assert Run.objects.filter(asset=rates).latest("id").pk < first.pk


def test_none_is_made_where_that_fails(
    mapping: PartitionMapping, rates: Asset, alice: User, worker: Gateway
) -> None:
    following("daily", DAILY_2013, of={"rates": mapping})
    backfill = ask(alice, "rates", selection="2013-01-02..2013-01-04", downstream="all")
    drive(worker, failing=failing_keys("2013-01-04"))
    assert outcomes(backfill, "daily") == {"upstream_failed": 3}


def test_other_partitions_are_followed_by_nothing(
    mapping: PartitionMapping, rates: Asset, alice: User
) -> None:
    following("daily", DAILY_2013, of={"rates": mapping})
    plan = plan_of(alice, "rates", selection="2013-01-01..2013-01-02", downstream="all")
    total = plan["daily"].total if "daily" in plan else 0
    assert total == (2 if isinstance(mapping, All) else 0)


def test_all_are_stale_once_it_is_made_again(
    mapping: PartitionMapping, rates: Asset, alice: User, gateway: Gateway
) -> None:
    publish(begun(rates, alice, gateway, "2013-01-02..2013-01-04", strategy="range"))
    daily = following("daily", DAILY_2013, of={"rates": mapping})
    for selection in ("2013-02-01..2013-02-05", "2013-02-06"):
        attempt = begun(daily, alice, gateway, selection, strategy="range")
        attempts.take_inputs(attempt)
        publish(attempt)
    week: dict[str, Any] = {"selection": "2013-02-01..2013-02-07", "existing": "stale"}
    keys = [f"2013-02-0{day}" for day in range(1, 8)]
    assert plan_of(alice, "daily", **week)["daily"].to_materialize == 1
    assert newer_inputs(daily, keys) == {}
    publish(begun(rates, alice, gateway, "2013-01-04"))
    assert plan_of(alice, "daily", **week)["daily"].to_materialize == 7
    assert list(newer_inputs(daily, keys)) == keys[:6]
