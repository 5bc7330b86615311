"""Inputs that were missing when a partition was materialized, and the rows read for these."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.models import Asset, AssetPartition, AttemptInput, Gateway, Materialization
from assets_app.queries import missing_inputs
from assets_app.queries.missing_inputs import MissingInput, missing_inputs_of
from slicewise import PartitionByInterval
from tests.execution.conftest import make_gateway, sent
from tests.factories import asset, person
from tests.midnight import same_day
from tests.query_plans import rows_read
from tests.scheduling.scheduled_assets import HOURLY, all_of, at, by, scheduled, write

__all__ = ["same_day", "sent"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_day", "sent")]
DAILY = PartitionByInterval("@daily", start="2024-01-01")
DAY = "2024-07-01"


@pytest.fixture
def gateway(db: None) -> Gateway:
    return make_gateway("scheduled")


@pytest.fixture
def alice(db: None) -> User:
    return person("alice", is_superuser=True)


@pytest.fixture
def inputs() -> tuple[Asset, Asset]:
    return asset("a", DAILY), asset("b", DAILY)


@pytest.fixture
def report(inputs: tuple[Asset, Asset], alice: User, gateway: Gateway) -> Asset:
    """Create an asset with a partition of one day, which read no partition of b."""
    both = all_of(by("a"), by("b"))
    report = scheduled("report", both, DAILY, since=at(2024, 7, 1), upstream={"a": None, "b": None})
    write(inputs[0], DAY, gateway, alice)
    write(report, DAY, gateway, alice)
    return report


def missing_of(report: Asset) -> list[MissingInput]:
    """Return the missing inputs of the only partition."""
    materialization = Materialization.objects.get(partition__asset=report)
    partition = AssetPartition.objects.get(asset=report)
    return missing_inputs_of(report, partition, materialization, timezone.now())


def read_more(report: Asset, upstream: Asset, number: int) -> None:
    """Record inputs of other partitions of the same run."""
    attempt = Materialization.objects.get(partition__asset=report).attempt
    assert attempt
    partitions = AssetPartition.objects.bulk_create(
        AssetPartition(
            asset=upstream, identity=upstream.identity, key=f"other {place}",
            state="materialized", version=1,
        )
        for place in range(number)
    )  # fmt: skip
    AttemptInput.objects.bulk_create(
        AttemptInput(attempt=attempt, partition=partition, version=1) for partition in partitions
    )


def test_few_inputs_are_read_of_a_run_that_read_many(
    report: Asset, inputs: tuple[Asset, Asset]
) -> None:
    for upstream in inputs:
        read_more(report, upstream, 600)
    with CaptureQueriesContext(connection) as captured:
        missing = missing_of(report)
    assert missing == [MissingInput(inputs[1], (DAY,), 1)]
    assert sum(rows_read(query["sql"]) for query in captured) <= 20


def test_so_many_needed_partitions_of_all_inputs_are_compared(
    alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("a", "b", "c")
    for name in names:
        asset(name, HOURLY)
    daily = scheduled("report", by("a"), DAILY, since=at(2024, 7, 1), upstream=dict.fromkeys(names))
    write(daily, DAY, gateway, alice)
    assert [missing.partition_count for missing in missing_of(daily)] == [24, 24, 24]
    monkeypatch.setattr(missing_inputs, "_MOST_OF_ALL_INPUTS", 48)
    assert [missing.partition_count for missing in missing_of(daily)] == [24, 24]


@pytest.mark.parametrize("identity", ["", "~"], ids=["before", "after"])
def test_an_upstream_asset_that_was_read_by_another_definition_is_left_out(
    report: Asset, inputs: tuple[Asset, Asset], identity: str
) -> None:
    _, upstream = inputs
    read_more(report, upstream, 1)
    assert [missing.asset for missing in missing_of(report)] == [upstream]
    AssetPartition.objects.filter(asset=upstream).update(identity=identity)
    assert missing_of(report) == []
