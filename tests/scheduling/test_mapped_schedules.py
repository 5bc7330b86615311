"""Schedules by assets of which every partition needs the same: `Latest`, `All` and `Keys`."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.models import Gateway
from assets_app.scheduling import readiness
from assets_app.scheduling.outbox import process_outbox
from assets_app.scheduling.progress import progress_of
from slicewise import (
    All,
    Keys,
    Latest,
    PartitionByInterval,
    PartitionBySequence,
    PartitionDefinition,
    PartitionMapping,
)
from tests.factories import asset
from tests.scheduling.scheduled_assets import at, by, make_all, scheduled, waiting, write

OPEN = PartitionByInterval("@daily")
BOUNDED = PartitionByInterval("@daily", start="2024-01-01")
MONTHLY = PartitionByInterval("@monthly")
SEGMENTS = PartitionBySequence(["a", "b", "c"])
BEGAN = at(2024, 7, 1)
NOW = at(2024, 7, 4)
ALL_THAT_MAPS = [Latest(), All(), Keys(["2024-07-03"])]
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("mapping", ALL_THAT_MAPS, ids=repr)
@pytest.mark.parametrize("upstream", [OPEN, BOUNDED], ids=["open", "bounded"])
@pytest.mark.parametrize("downstream", [OPEN, BOUNDED], ids=["open", "bounded"])
def test_the_windows_that_ended_since_the_schedule_began_are_due(
    downstream: PartitionDefinition,
    upstream: PartitionDefinition,
    mapping: PartitionMapping,
    alice: User,
    gateway: Gateway,
) -> None:
    rates = asset("rates", upstream)
    daily = scheduled("daily", by("rates"), downstream, since=BEGAN, upstream={"rates": mapping})
    write(rates, "2024-07-03", gateway, alice)
    process_outbox(NOW)
    assert waiting(daily) == ["2024-07-01", "2024-07-02", "2024-07-03"]
    make_all(daily, gateway)
    process_outbox(NOW)
    assert waiting(daily) == []


def test_the_last_upstream_window_may_begin_before_the_schedule(
    alice: User, gateway: Gateway
) -> None:
    rates = asset("rates", MONTHLY)
    daily = scheduled("daily", by("rates"), OPEN, since=BEGAN, upstream={"rates": Latest()})
    write(rates, "2024-06", gateway, alice)
    process_outbox(NOW)
    assert waiting(daily) == ["2024-07-01", "2024-07-02", "2024-07-03"]


def test_only_the_latest_upstream_partition_makes_partitions_due(
    alice: User, gateway: Gateway
) -> None:
    rates = asset("rates", OPEN)
    daily = scheduled("daily", by("rates"), OPEN, since=BEGAN, upstream={"rates": Latest()})
    write(rates, "2024-07-02", gateway, alice)
    process_outbox(NOW)
    assert waiting(daily) == []


def test_all_is_from_the_first_that_was_ever_made(alice: User, gateway: Gateway) -> None:
    rates = asset("rates", OPEN)
    daily = scheduled("daily", by("rates"), OPEN, since=BEGAN, upstream={"rates": All()})
    write(rates, "2024-07-01", gateway, alice)
    write(rates, "2024-07-03", gateway, alice)
    process_outbox(NOW)
    assert waiting(daily) == []
    write(rates, "2024-07-02", gateway, alice)
    process_outbox(NOW)
    assert waiting(daily) == ["2024-07-01", "2024-07-02", "2024-07-03"]


@pytest.mark.parametrize("mapping", ALL_THAT_MAPS, ids=repr)
def test_how_far_they_are_is_not_counted(
    mapping: PartitionMapping, alice: User, gateway: Gateway
) -> None:
    rates = asset("rates", OPEN)
    daily = scheduled("daily", by("rates"), OPEN, since=BEGAN, upstream={"rates": mapping})
    write(rates, "2024-07-03", gateway, alice)
    assert progress_of(daily, NOW) == []


def test_from_when_on_all_is_needed_is_looked_up_once(alice: User, gateway: Gateway) -> None:
    spend = asset("spend", OPEN)
    totals = scheduled("totals", by("spend"), SEGMENTS, since=BEGAN)
    write(spend, "2024-07-02", gateway, alice)
    write(spend, "2024-07-03", gateway, alice)
    with CaptureQueriesContext(connection) as statements:
        process_outbox(NOW)
    assert waiting(totals) == ["a", "b", "c"]
    assert len([query for query in statements if "MIN(" in query["sql"]]) == 1


def test_of_many_that_need_many_some_are_looked_up_at_once(
    alice: User, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "_PAIRS_AT_ONCE", 4)
    rates = asset("rates", OPEN)
    daily = scheduled("daily", by("rates"), OPEN, since=BEGAN, upstream={"rates": All()})
    write(rates, "2024-07-01..2024-07-03", gateway, alice)
    with CaptureQueriesContext(connection) as statements:
        process_outbox(NOW)
    assert waiting(daily) == ["2024-07-01", "2024-07-02", "2024-07-03"]
    assert len([query for query in statements if "AS pair(" in query["sql"]]) == 2
