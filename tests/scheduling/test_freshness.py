"""Freshness: partitions that are late, overdue, announced once, and there again."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.catalogue.freshness_watches import store_watches
from assets_app.models import Asset, FreshnessWatch, Gateway, LatePartition, Schedule
from assets_app.queries.overdue import (
    LateCounts,
    late_counts,
    late_marks,
    late_total,
    overdue_partitions,
)
from assets_app.scheduling.freshness import watch_freshness
from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence
from slicewise.declaring import ExternalSpec
from slicewise_server.events.models import Event, EventKind
from tests.factories import asset
from tests.query_plans import rows_read
from tests.scheduling.scheduled_assets import at, cron, scheduled, write

DAILY = PartitionByInterval("@daily", start="2024-01-01")
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
TWO_HOURS = {"within": 7200}
WITH_WARNING = {"within": 7200, "warn": 3600}
DECLARED_AT = at(2024, 7, 1, 12)
pytestmark = pytest.mark.django_db


def declare(*assets: Asset, freshness: dict[str, Any] | None, when: datetime) -> None:
    """Put a freshness of assets in force, as if their file declared no other asset."""
    specs = [ExternalSpec(name=of.name, freshness=freshness, file="a.py", line=1) for of in assets]
    with transaction.atomic():
        store_watches(assets[0].bundle, [], specs, now=when)


def watched(
    name: str = "sales", definition: Any = DAILY, freshness: dict[str, Any] = TWO_HOURS
) -> Asset:
    """Declare a watched asset."""
    of = asset(name, definition)
    declare(of, freshness=freshness, when=DECLARED_AT)
    return of


def overdue_keys(of: Asset, now: datetime) -> list[str]:
    """Return the keys of the overdue partitions of an asset."""
    return [row.key for row in overdue_partitions(of, now)]


def test_a_window_that_is_not_there_in_time_is_overdue() -> None:
    sales = watched()
    now = at(2024, 7, 2, 1, 59, 59)
    watch_freshness(now)
    assert (overdue_keys(sales, now), late_total(now)) == ([], LateCounts())
    now = at(2024, 7, 2, 2)
    assert watch_freshness(now) == 1
    assert overdue_keys(sales, now) == ["2024-07-01"]
    assert late_counts(now) == {sales.pk: LateCounts(overdue=1)}
    assert late_marks(sales, ["2024-07-01", "2024-06-30"], now)["2024-07-01"].is_overdue
    assert watch_freshness(at(2024, 7, 2, 3)) == 0


def test_windows_that_were_late_before_the_declaration_are_not() -> None:
    sales = watched()
    now = at(2024, 7, 1, 13)
    watch_freshness(now)
    assert overdue_keys(sales, now) == []
    assert FreshnessWatch.objects.get().next_at == at(2024, 7, 2, 2)


@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize(
    ("began", "first"),
    [(at(2024, 7, 1, 9), "2024-07-01T09"), (at(2024, 7, 1, 11, 45), "2024-07-01T11")],
)
def test_a_window_that_ended_before_the_schedule_began_is_never_late(
    began: datetime, first: str, is_stored: bool
) -> None:
    hourly = PartitionByInterval("@hourly", start="2024-01-01")
    sales = scheduled("sales", cron("@hourly"), hourly, since=began)
    if not is_stored:  # as in the sync that declares the asset
        Schedule.objects.all().delete()
        first = "2024-07-01T11"
    declare(sales, freshness=TWO_HOURS, when=at(2024, 7, 1, 11, 45))
    watch_freshness(at(2024, 7, 1, 14))
    assert overdue_keys(sales, at(2024, 7, 1, 14))[0].startswith(first)


def test_a_materialized_window_is_not_late(alice: User, gateway: Gateway) -> None:
    sales = watched()
    write(sales, "2024-07-01", gateway, alice)
    assert watch_freshness(at(2024, 7, 2, 2)) == 0
    assert not LatePartition.objects.exists()


def test_a_partition_that_comes_is_not_overdue_from_then_on(alice: User, gateway: Gateway) -> None:
    sales = watched()
    now = at(2024, 7, 2, 2)
    watch_freshness(now)
    write(sales, "2024-07-01", gateway, alice)
    # Without a beat in between.
    assert (overdue_keys(sales, now), late_total(now)) == ([], LateCounts())
    assert late_marks(sales, ["2024-07-01"], now) == {}
    watch_freshness(now)
    assert not LatePartition.objects.exists()


def test_the_earlier_mark_warns_and_announces_nothing() -> None:
    sales = watched(freshness=WITH_WARNING)
    now = at(2024, 7, 2, 1)
    assert watch_freshness(now) == 0
    assert late_counts(now) == {sales.pk: LateCounts(late=1)}
    assert not late_marks(sales, ["2024-07-01"], now)["2024-07-01"].is_overdue
    # By the clock alone, without a beat.
    assert late_total(at(2024, 7, 2, 2)) == LateCounts(overdue=1)
    assert watch_freshness(at(2024, 7, 2, 2)) == 1


def test_after_a_time_away_all_windows_are_looked_at() -> None:
    sales = watched()
    now = at(2024, 7, 5, 12)
    assert watch_freshness(now) == 4
    assert overdue_keys(sales, now) == ["2024-07-01", "2024-07-02", "2024-07-03", "2024-07-04"]


def test_all_segments_of_a_window_are_watched_and_excluded_windows_are_not() -> None:
    days = PartitionByInterval("@daily", start="2024-01-01", exclude="0 0 2 7 *")
    product = PartitionByProduct({"day": days, "shop": PartitionBySequence(["a", "b"])})
    sales = watched(definition=product)
    now = at(2024, 7, 4, 2)
    watch_freshness(now)
    assert overdue_keys(sales, now) == [
        "2024-07-01|a", "2024-07-01|b", "2024-07-03|a", "2024-07-03|b",
    ]  # fmt: skip


def test_each_overdue_partition_is_one_event() -> None:
    watched()
    for hour in (2, 3, 4):
        watch_freshness(at(2024, 7, 2, hour))
    watch_freshness(at(2024, 7, 3, 2))
    events = Event.objects.order_by("id")
    assert {event.kind for event in events} == {EventKind.PARTITION_OVERDUE}
    assert [(event.asset, event.detail) for event in events] == [
        ("sales", {"partition": f"2024-07-0{day}", "window_end": f"2024-07-0{day + 1}T00:00:00Z",
                   "overdue_at": f"2024-07-0{day + 1}T02:00:00Z"})
        for day in (1, 2)
    ]  # fmt: skip


def test_a_partition_that_comes_before_the_beat_is_no_event(alice: User, gateway: Gateway) -> None:
    sales = watched(freshness=WITH_WARNING)
    watch_freshness(at(2024, 7, 2, 1))
    write(sales, "2024-07-01", gateway, alice)
    assert watch_freshness(at(2024, 7, 2, 2)) == 0
    assert not Event.objects.exists()


def test_a_changed_freshness_moves_the_marks_and_announces_nothing_twice() -> None:
    sales = watched()
    watch_freshness(at(2024, 7, 2, 2))
    declare(sales, freshness={"within": 4 * 3600}, when=at(2024, 7, 2, 3))
    assert overdue_keys(sales, at(2024, 7, 2, 3)) == []
    assert watch_freshness(at(2024, 7, 2, 4)) == 0
    assert overdue_keys(sales, at(2024, 7, 2, 4)) == ["2024-07-01"]
    assert Event.objects.count() == 1
    declare(sales, freshness={"within": 3600}, when=at(2024, 7, 3, 2))
    assert watch_freshness(at(2024, 7, 3, 2)) == 1
    assert overdue_keys(sales, at(2024, 7, 3, 2)) == ["2024-07-01", "2024-07-02"]


def test_a_freshness_that_is_no_longer_declared_is_watched_no_more() -> None:
    sales = watched()
    watch_freshness(at(2024, 7, 2, 2))
    declare(sales, freshness=None, when=at(2024, 7, 2, 3))
    assert late_total(at(2024, 7, 2, 3)) == LateCounts()
    assert not FreshnessWatch.objects.exists()
    assert not LatePartition.objects.exists()


def test_an_asset_of_a_broken_file_stays_watched() -> None:
    sales, other = watched(), asset("other", DAILY)
    declare(other, freshness=TWO_HOURS, when=at(2024, 7, 1, 13))
    now = at(2024, 7, 2, 2)
    watch_freshness(now)
    assert set(late_counts(now)) == {sales.pk, other.pk}


def test_an_asset_that_is_no_longer_declared_is_not_overdue() -> None:
    sales = watched()
    now = at(2024, 7, 2, 2)
    watch_freshness(now)
    Asset.objects.update(active=False)
    sales.refresh_from_db()
    assert (overdue_keys(sales, now), late_counts(now)) == ([], {})
    declare(asset("other", DAILY), freshness=None, when=now)
    assert not FreshnessWatch.objects.exists()


def test_the_counts_read_late_partitions_alone(alice: User, gateway: Gateway) -> None:
    sales = watched()
    now = at(2024, 7, 3, 2)
    watch_freshness(now)
    write(sales, "2024-01-01..2024-06-01", gateway, alice)
    with CaptureQueriesContext(connection) as statements:
        assert late_total(now) == LateCounts(overdue=2)
    (statement,) = statements
    # Two late partitions, their asset, and no partition of the hundred that are there.
    assert rows_read(statement["sql"]) <= 6


def test_a_beat_reads_the_watches_that_are_due() -> None:
    many = [asset(f"sales_{number:02}", DAILY) for number in range(50)]
    declare(*many, freshness=TWO_HOURS, when=DECLARED_AT)
    with CaptureQueriesContext(connection) as statements:
        assert watch_freshness(at(2024, 7, 2, 1)) == 0
    assert sum(rows_read(s["sql"]) for s in statements if s["sql"].startswith("SELECT")) == 0
