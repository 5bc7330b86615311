"""Partitions that a schedule by time missed while its asset was paused."""

from datetime import datetime
from typing import Any

import pytest

from accounts_app.models import User
from assets_app.catalogue.timetables import pause_schedule, stop_schedules, store_schedules
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, Gateway, PartitionCount
from assets_app.queries.reasons import reasons_of
from assets_app.scheduling.missed import missed_by
from assets_app.scheduling.ticking import handle_ticks
from partitions_app.models import PartitionDefinition
from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence
from tests.factories import asset
from tests.partition_records import record
from tests.scheduling.scheduled_assets import at, by, cron, scheduled

pytestmark = pytest.mark.django_db
DAILY = PartitionByInterval("@daily", start="2024-01-01")
BEGAN = at(2024, 7, 1)


def paused_from_to(paused: Asset, since: datetime, until: datetime) -> None:
    """Pause an asset's schedule, and resume the schedule later."""
    pause_schedule(paused, paused=True, now=since)
    pause_schedule(paused, paused=False, now=until)


def missed(of: Asset, now: datetime) -> tuple[int, str] | None:
    """Return number and selection of the missed partitions, if there are any."""
    found = missed_by(Asset.objects.get(pk=of.pk), now)
    return None if found is None else (found.count, found.selection)


def reschedule(of: Asset, schedule: dict[str, Any], now: datetime) -> None:
    """Give an asset another schedule, as a sync does."""
    producer = of.producer
    assert producer is not None
    version = producer.current_version
    assert version is not None
    version.definition = version.definition | {"schedule": schedule}
    version.save()
    store_schedules([producer], now=now)


def test_a_schedule_that_had_ended_misses_nothing_after_its_last_tick() -> None:
    ended = scheduled(
        "ended", cron("@daily"), DAILY, since=BEGAN, end_date="2024-07-03T00:00:00+00:00"
    )
    paused_from_to(ended, at(2024, 7, 10), at(2024, 7, 20))
    assert missed(ended, at(2024, 7, 21)) == (2, "2024-07-01..2024-07-02")
    Asset.objects.update(activated_at=BEGAN)
    reason = reasons_of(Asset.objects.get(), ["2024-07-02", "2024-07-12"], at(2024, 7, 21))
    assert reason["2024-07-02"].code == "missed_while_paused"
    assert reason["2024-07-12"].code != "missed_while_paused"


def test_a_schedule_misses_what_its_first_tick_would_have_queued() -> None:
    later = scheduled(
        "later", cron("@daily"), DAILY, since=BEGAN, start_date="2024-08-01T00:00:00+00:00"
    )
    paused_from_to(later, at(2024, 7, 2), at(2024, 7, 20, 6))
    assert missed(later, at(2024, 7, 21)) == (19, "2024-07-01..2024-07-19")
    handle_ticks(at(2024, 8, 2))
    queued = {text for run in later.runs.all() for text in run.selection.split(",")}
    assert "2024-07-20" in queued
    assert "2024-07-19" not in queued


def test_windows_that_ended_after_the_last_tick_of_a_pause_are_missed() -> None:
    """The first tick after a pause queues only windows that end after the pause."""
    days = scheduled("days", cron("0 6 * * 1"), DAILY, since=BEGAN)
    paused_from_to(days, at(2024, 7, 2), at(2024, 7, 7, 12))
    assert missed(days, at(2024, 7, 9)) == (6, "2024-07-01..2024-07-06")
    handle_ticks(at(2024, 7, 8, 6))
    assert [run.selection for run in days.runs.all()] == ["2024-07-07"]
    Asset.objects.update(activated_at=BEGAN)
    reason = reasons_of(Asset.objects.get(), ["2024-07-06"], at(2024, 7, 9))["2024-07-06"]
    assert reason.code == "missed_while_paused"


def test_a_file_that_is_missing_for_a_while_keeps_the_list() -> None:
    days = scheduled("days", cron("@daily"), DAILY, since=BEGAN)
    paused_from_to(days, at(2024, 7, 1, 6), at(2024, 7, 5, 6))
    Asset.objects.update(active=False)
    stop_schedules(days.bundle)
    Asset.objects.update(active=True)
    assert days.producer is not None
    store_schedules([days.producer], now=at(2024, 7, 6))
    assert missed(days, at(2024, 7, 9)) == (4, "2024-07-01..2024-07-04")


def test_many_settled_partitions_are_counted_and_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    days = scheduled("days", cron("@daily"), DAILY, since=BEGAN)
    paused_from_to(days, at(2024, 7, 1, 6), at(2024, 7, 8, 6))
    record(days, "2024-07-01..2024-07-03")
    monkeypatch.setattr("assets_app.scheduling.missed._MOST_SUBTRACTED", 2)
    assert missed(days, at(2024, 7, 9)) == (4, "")
    PartitionCount.objects.all().delete()
    record(days, "2024-07-04..2024-07-07")
    assert missed(days, at(2024, 7, 9)) is None


@pytest.mark.parametrize("is_paused", [True, False])
def test_a_schedule_that_follows_no_time_before_misses_nothing_before(is_paused: bool) -> None:
    asset("up", DAILY)
    days = scheduled("days", by("up"), DAILY, since=at(2024, 1, 1))
    pause_schedule(days, paused=True, now=at(2024, 6, 1))
    if is_paused:
        Asset.objects.filter(pk=days.pk).update(paused=True)
    else:
        pause_schedule(days, paused=False, now=at(2024, 6, 2))
    days = Asset.objects.get(pk=days.pk)
    reschedule(days, cron("@daily"), at(2024, 6, 3, 6))
    now = at(2024, 6, 5, 6)
    Asset.objects.update(activated_at=at(2024, 1, 1))
    assert missed(days, now) == ((2, "2024-06-03..2024-06-04") if is_paused else None)
    reason = reasons_of(Asset.objects.get(pk=days.pk), ["2024-02-01"], now)["2024-02-01"]
    assert reason.code != "missed_while_paused"


def test_materialized_and_held_partitions_are_not_missed(alice: User, gateway: Gateway) -> None:
    days = scheduled("days", cron("@daily"), DAILY, since=BEGAN)
    paused_from_to(days, at(2024, 7, 1, 6), at(2024, 7, 8, 6))
    now = at(2024, 7, 9)
    assert missed(days, now) == (7, "2024-07-01..2024-07-07")
    record(days, "2024-07-01..2024-07-03")
    materialize(MaterializeRequest(asset=days, selection="2024-07-05"), user=alice)
    assert missed(days, now) == (3, "2024-07-04,2024-07-06..2024-07-07")


def test_partitions_that_the_definition_lost_do_not_make_up_for_missed_ones() -> None:
    segments = PartitionByProduct([DAILY, PartitionBySequence(["a", "b", "c", "d"])])
    days = scheduled("days", cron("@daily"), segments, since=BEGAN)
    paused_from_to(days, at(2024, 7, 1, 6), at(2024, 7, 5, 6))
    record(days, "time=2024-07-01..2024-07-04 segment=c,d")
    fewer = PartitionByProduct([DAILY, PartitionBySequence(["a", "b"])])
    days.partition_definition = PartitionDefinition.of(fewer.to_json())
    days.save()
    found = missed(days, at(2024, 7, 9))
    assert found is not None
    assert found[0] == 8
