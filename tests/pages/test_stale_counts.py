"""Numbers of stale partitions of many assets: the same partitions that the grid shows as stale."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts_app.models import User
from assets_app.models import Asset, Gateway
from assets_app.queries.graph_states import graph_states
from assets_app.queries.stale_counts import StaleCount, stale_counts
from assets_app.queries.staleness import newer_inputs
from slicewise import PartitionByInterval
from tests.execution.conftest import make_gateway
from tests.factories import asset, person
from tests.scheduling.beats import look, written
from tests.scheduling.scheduled_assets import (
    DAILY,
    HOURLY,
    after,
    all_of,
    any_of,
    at,
    by,
    make_all,
    scheduled,
    write,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def gateway(db: None) -> Gateway:
    return make_gateway("scheduled")


@pytest.fixture
def alice(db: None) -> User:
    return person("alice", is_superuser=True)


def pair(strategy: str) -> tuple[Asset, Asset]:
    """Create hours, and days that are made from the hours."""
    hourly = asset("hourly", HOURLY)
    daily = scheduled(
        "daily", by("hourly"), DAILY, since=at(2024, 1, 1),
        upstream={"hourly": None}, strategy=strategy,
    )  # fmt: skip
    return hourly, daily


@pytest.mark.parametrize("strategy", ["partition", "range"])
def test_a_partition_counts_as_stale_when_an_input_is_newer(
    strategy: str, alice: User, gateway: Gateway
) -> None:
    hourly, daily = pair(strategy)
    write(hourly, "2024-07-01..2024-07-03", gateway, alice)
    write(daily, "2024-07-01..2024-07-03", gateway, alice)
    assert stale_counts([hourly, daily]) == {}
    write(hourly, "2024-07-01T03:00Z,2024-07-01T04:00Z,2024-07-03T05:00Z", gateway, alice)
    days = [f"2024-07-0{day}" for day in (1, 2, 3)]
    assert set(newer_inputs(daily, days)) == {"2024-07-01", "2024-07-03"}
    assert stale_counts([hourly, daily]) == {daily.pk: StaleCount(2)}
    write(daily, "2024-07-01", gateway, alice)
    assert stale_counts([daily]) == {daily.pk: StaleCount(1)}


def test_a_partition_counts_as_stale_when_a_late_input_has_come(
    alice: User, gateway: Gateway
) -> None:
    days = PartitionByInterval("@daily", start="2024-01-01")
    sales, weather = asset("sales", days), asset("weather", days)
    in_time = all_of(by("sales"), by("weather"))
    without = all_of(by("sales"), after(timedelta(hours=6)))
    report = scheduled("report", any_of(in_time, without), days, since=at(2024, 7, 1))
    assets = [sales, weather, report]
    written(sales, "2024-07-01..2024-07-02", at(2024, 7, 3, 1), gateway, alice)
    look(at(2024, 7, 3, 6))
    make_all(report, gateway)
    assert stale_counts(assets) == {}
    written(weather, "2024-07-01", at(2024, 7, 3, 8), gateway, alice)
    assert set(newer_inputs(report, ["2024-07-01", "2024-07-02"])) == {"2024-07-01"}
    assert stale_counts(assets) == {report.pk: StaleCount(1)}
    write(sales, "2024-07-01", gateway, alice)  # for two reasons, and still one partition
    assert stale_counts(assets) == {report.pk: StaleCount(1)}
    write(weather, "2024-07-02", gateway, alice)
    assert stale_counts(assets) == {report.pk: StaleCount(2)}
    write(report, "2024-07-01..2024-07-02", gateway, alice)
    assert stale_counts(assets) == {}


def test_of_very_many_partitions_the_first_ones_are_decided(
    alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    hourly, daily = pair("range")
    write(hourly, "2024-07-01..2024-07-03", gateway, alice)
    write(daily, "2024-07-01..2024-07-03", gateway, alice)
    write(hourly, "2024-07-01T03:00Z,2024-07-02T04:00Z,2024-07-03T05:00Z", gateway, alice)
    monkeypatch.setattr("assets_app.queries.stale_counts.MOST_COUNTED", 2)
    assert stale_counts([hourly, daily]) == {daily.pk: StaleCount(2, is_cut=True)}


def test_no_assets_need_no_statement() -> None:
    assert stale_counts([]) == {}


def test_later_statements_of_the_transaction_keep_their_time() -> None:
    def limit() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            text: str = cursor.fetchone()[0]
            return text

    before = limit()
    graph_states([asset("hourly", HOURLY)], timezone.now())
    assert limit() == before
