"""Partitions that a schedule by time missed while its asset was paused."""

from datetime import datetime
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.apps import apps
from django.db import connection

from accounts_app.models import User
from assets_app.catalogue.timetables import pause_schedule, stop_schedules, store_schedules
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, Gateway, PartitionCount, Schedule
from assets_app.queries.reasons import reasons_of
from assets_app.scheduling.missed import missed_by
from assets_app.scheduling.ticking import handle_ticks
from partitions_app.models import PartitionDefinition
from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence
from tests.factories import asset
from tests.partition_records import record
from tests.scheduling.scheduled_assets import all_of, at, by, cron, scheduled

pytestmark = pytest.mark.django_db
DAILY = PartitionByInterval("@daily", start="2024-01-01")
BEGAN = at(2024, 7, 1)


def pause(of: Asset, now: datetime) -> None:
    """Pause an asset and its schedule."""
    Asset.objects.filter(pk=of.pk).update(paused=True)
    pause_schedule(of, paused=True, now=now)


def resume(of: Asset, now: datetime) -> None:
    """Resume an asset and its schedule."""
    Asset.objects.filter(pk=of.pk).update(paused=False)
    pause_schedule(of, paused=False, now=now)


def paused_from_to(of: Asset, since: datetime, until: datetime) -> None:
    """Pause an asset, and resume the asset later."""
    pause(of, since)
    resume(of, until)


def missed(of: Asset, now: datetime) -> tuple[int, str] | None:
    """Return number and selection of the missed partitions, if there are any."""
    found = missed_by(Asset.objects.get(pk=of.pk), now)
    return None if found is None else (found.count, found.selection)


def reschedule(of: Asset, schedule: dict[str, Any] | None, now: datetime, **more: Any) -> None:
    """Give an asset another schedule, or none, as a sync does."""
    producer = of.producer
    assert producer is not None
    version = producer.current_version
    assert version is not None
    version.definition = version.definition | {"schedule": schedule} | more
    version.save()
    store_schedules([producer], now=now)


def lose_file(of: Asset, now: datetime) -> None:
    """Sync without the file of an asset."""
    Asset.objects.filter(pk=of.pk).update(active=False)
    stop_schedules(of.bundle, now=now)
    Asset.objects.filter(pk=of.pk).update(active=True)


def find_file(of: Asset, now: datetime) -> None:
    """Sync with the file of an asset again."""
    assert of.producer is not None
    store_schedules([of.producer], now=now)


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
    lose_file(days, at(2024, 7, 5, 12))
    find_file(days, at(2024, 7, 6))
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


def without_schedule(name: str, now: datetime) -> Asset:
    """Create an asset whose schedule was taken out of the code at some time."""
    days = scheduled(name, cron("@daily"), DAILY, since=at(2023, 12, 1))
    reschedule(days, None, now)
    return days


def test_without_a_schedule_a_pause_misses_nothing() -> None:
    days = without_schedule("days", at(2024, 1, 15))
    paused_from_to(days, at(2024, 6, 1), at(2024, 6, 2))
    reschedule(days, cron("@daily"), at(2024, 6, 3))
    assert missed(days, at(2024, 6, 5)) is None
    Asset.objects.update(activated_at=at(2024, 1, 1))
    reason = reasons_of(Asset.objects.get(pk=days.pk), ["2024-02-01"], at(2024, 6, 5))["2024-02-01"]
    assert reason.code == "not_queued"


def test_a_pause_misses_what_came_due_since_the_schedule_came_back() -> None:
    days = without_schedule("days", at(2024, 1, 15))
    pause(days, at(2024, 6, 1))
    reschedule(days, cron("@daily"), at(2024, 6, 3))
    assert missed(days, at(2024, 6, 5)) == (2, "2024-06-03..2024-06-04")
    resume(days, at(2024, 6, 6))
    assert missed(days, at(2024, 6, 8)) == (3, "2024-06-03..2024-06-05")


def test_a_pause_without_times_misses_no_time_of_a_later_schedule() -> None:
    """Whether the file was missing for a while, or times came step by step."""
    up = asset("up", DAILY)
    missing = scheduled("missing", by("up"), DAILY, since=at(2024, 1, 1))
    stepwise = scheduled("stepwise", by("up"), DAILY, since=at(2024, 1, 1))
    record(up, "2024-01-01..2024-05-31")
    for days in (missing, stepwise):
        paused_from_to(days, at(2024, 6, 1), at(2024, 6, 2))
    lose_file(missing, at(2024, 6, 2, 12))
    reschedule(missing, cron("@daily"), at(2024, 6, 3))
    reschedule(stepwise, all_of(by("up"), cron("@daily")), at(2024, 6, 3))
    assert missed(stepwise, at(2024, 6, 3, 6)) is None
    reschedule(stepwise, cron("@daily"), at(2024, 6, 4))
    assert [missed(days, at(2024, 6, 6)) for days in (missing, stepwise)] == [None, None]


def test_a_pause_misses_times_since_they_came_to_a_schedule_by_assets() -> None:
    up = asset("up", DAILY)
    record(up, "2024-01-01..2024-06-30")
    days = scheduled("days", by("up"), DAILY, since=at(2024, 1, 1))
    pause(days, at(2024, 6, 1))
    reschedule(days, all_of(by("up"), cron("@daily")), at(2024, 6, 3))
    # Upstream writes of the whole pause go on being examined.
    assert Schedule.objects.get().handled_before_pause == at(2024, 1, 1)
    expected = (3, "2024-06-03..2024-06-05")
    assert missed(days, at(2024, 6, 6)) == expected
    resume(days, at(2024, 6, 6))
    assert missed(days, at(2024, 6, 8)) == expected


def test_a_file_that_is_missing_during_a_pause_keeps_what_was_missed_before() -> None:
    up = asset("up", DAILY)
    record(up, "2024-06-01..2024-07-31")
    joined = scheduled("joined", all_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    days = scheduled("days", cron("@daily"), DAILY, since=BEGAN)
    for of in (joined, days):
        pause(of, at(2024, 7, 1, 6))
        lose_file(of, at(2024, 7, 4, 6))
        find_file(of, at(2024, 7, 6, 6))
    expected = (5, "2024-07-01..2024-07-03,2024-07-06..2024-07-07")
    assert [missed(of, at(2024, 7, 8, 6)) for of in (joined, days)] == [expected, expected]
    # The schedule is resumed while its file is missing once more.
    for of in (joined, days):
        lose_file(of, at(2024, 7, 8, 6))
        resume(of, at(2024, 7, 10))
        find_file(of, at(2024, 7, 11))
    assert [missed(of, at(2024, 7, 12)) for of in (joined, days)] == [expected, expected]
    Asset.objects.update(activated_at=BEGAN)
    reason = reasons_of(Asset.objects.get(pk=days.pk), ["2024-07-07"], at(2024, 7, 12))
    assert reason["2024-07-07"].code == "missed_while_paused"


def test_a_file_that_comes_back_without_a_schedule_ends_the_list() -> None:
    days = scheduled("days", cron("@daily"), DAILY, since=BEGAN)
    pause(days, at(2024, 7, 1, 6))
    lose_file(days, at(2024, 7, 3, 6))
    reschedule(days, None, at(2024, 7, 4))
    reschedule(days, cron("@daily"), at(2024, 8, 6))
    assert missed(days, at(2024, 8, 8)) == (4, "2024-07-01..2024-07-02,2024-08-06..2024-08-07")


@pytest.mark.parametrize("joined", [True, False])
def test_a_schedule_that_ends_during_a_pause_is_extended(joined: bool) -> None:
    up = asset("up", DAILY)
    record(up, "2024-06-01..2024-08-31")
    rule = all_of(by("up"), cron("@daily")) if joined else cron("@daily")
    days = scheduled("days", rule, DAILY, since=BEGAN, end_date="2024-07-04T00:00:00+00:00")
    pause(days, at(2024, 7, 2))
    reschedule(days, cron("@daily"), at(2024, 8, 3), end_date=None)
    expected = (5, "2024-07-01..2024-07-03,2024-08-03..2024-08-04")
    assert missed(days, at(2024, 8, 5)) == expected


def test_a_rule_that_cannot_be_read_any_more_is_replaced_during_a_pause() -> None:
    days = scheduled("days", cron("@daily"), DAILY, since=BEGAN, timezone="US/Pacific")
    pause(days, at(2024, 7, 2, 12))
    row = Schedule.objects.get()
    Schedule.objects.update(rule=(row.rule or {}) | {"timezone": "US/Pacific-New"})
    reschedule(days, cron("@daily"), at(2024, 7, 4), timezone="America/Los_Angeles")
    found = missed(days, at(2024, 7, 6, 12))
    assert found is not None
    assert found[1].endswith("2024-07-05")


@pytest.mark.parametrize("is_paused", [True, False])
def test_a_schedule_that_is_extended_misses_nothing_after_its_old_end(is_paused: bool) -> None:
    days = scheduled(
        "days", cron("@daily"), DAILY, since=BEGAN, end_date="2024-07-03T00:00:00+00:00"
    )
    handle_ticks(at(2024, 7, 3))
    pause(days, at(2024, 8, 1))
    if not is_paused:
        resume(days, at(2024, 8, 2))
    reschedule(days, cron("@daily"), at(2024, 8, 3), end_date=None)
    assert missed(days, at(2024, 8, 5)) == ((2, "2024-08-03..2024-08-04") if is_paused else None)


def test_materialized_and_held_partitions_are_not_missed(alice: User, gateway: Gateway) -> None:
    days = scheduled("days", cron("@daily"), DAILY, since=BEGAN)
    paused_from_to(days, at(2024, 7, 1, 6), at(2024, 7, 8, 6))
    now = at(2024, 7, 9)
    assert missed(days, now) == (7, "2024-07-01..2024-07-07")
    record(days, "2024-07-01..2024-07-03")
    materialize(MaterializeRequest(asset=days, selection="2024-07-05"), user=alice)
    assert missed(days, now) == (3, "2024-07-04,2024-07-06..2024-07-07")


@pytest.mark.parametrize("most", [20_000, 2])
def test_partitions_that_the_definition_lost_do_not_make_up_for_missed_ones(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("assets_app.scheduling.missed._MOST_SUBTRACTED", most)
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


def test_a_paused_asset_that_joins_a_function_pauses_its_schedule() -> None:
    """And resumes the schedule by leaving it, also after an earlier pause."""
    days = scheduled("days", cron("@daily"), DAILY, since=BEGAN)
    paused_from_to(days, at(2024, 7, 1, 6), at(2024, 7, 2, 6))
    Asset.objects.update(paused=True)
    find_file(days, at(2024, 7, 4, 6))
    assert missed(days, at(2024, 7, 6)) == (4, "2024-07-02..2024-07-05")
    Asset.objects.update(paused=False)
    find_file(days, at(2024, 7, 7, 6))
    assert missed(days, at(2024, 7, 9)) == (5, "2024-07-02..2024-07-06")
    handle_ticks(at(2024, 7, 8))
    assert [run.selection for run in days.runs.all()] == ["2024-07-07"]


def test_an_asset_that_no_file_declares_pauses_no_function() -> None:
    days = scheduled("days", cron("@daily"), DAILY, since=BEGAN)
    pause(days, at(2024, 7, 1, 6))
    beside = asset("beside", DAILY)
    Asset.objects.filter(pk=beside.pk).update(producer=days.producer)
    Asset.objects.filter(pk=days.pk).update(active=False)
    find_file(days, at(2024, 7, 4, 6))
    row = Schedule.objects.get(producer=days.producer)
    assert (row.is_in_pause, row.next_at) == (False, at(2024, 7, 5))


def test_a_paused_asset_that_joins_an_ended_schedule_misses_nothing_before() -> None:
    days = scheduled(
        "days", cron("@daily"), DAILY, since=BEGAN, end_date="2024-07-03T00:00:00+00:00"
    )
    handle_ticks(at(2024, 7, 3))
    Asset.objects.update(paused=True)
    reschedule(days, cron("@daily"), at(2024, 8, 3), end_date=None)
    assert missed(days, at(2024, 8, 5)) == (2, "2024-08-03..2024-08-04")
    # A person pauses what is paused already: the list goes on.
    pause(days, at(2024, 8, 4, 6))
    assert missed(days, at(2024, 8, 6)) == (3, "2024-08-03..2024-08-05")


def test_the_link_to_a_backfill_names_what_was_missed_and_not_what_lies_between() -> None:
    days = scheduled("days", cron("@daily"), DAILY, since=BEGAN)
    pause(days, at(2024, 7, 1, 6))
    lose_file(days, at(2024, 7, 3, 6))
    find_file(days, at(2024, 8, 1, 6))
    found = missed_by(Asset.objects.get(), at(2024, 8, 3))
    assert found is not None
    assert found.selection == "2024-07-01..2024-07-02,2024-08-01..2024-08-02"
    assert parse_qs(found.form) == {"selection": [found.selection]}
    Asset.objects.update(activated_at=BEGAN)
    reasons = reasons_of(Asset.objects.get(), ["2024-07-02", "2024-08-02"], at(2024, 8, 3))
    assert {reason.code for reason in reasons.values()} == {"paused"}


def test_processes_of_an_earlier_version_begin_and_end_pauses() -> None:
    """During an upgrade a process may know no spans: it leaves those of the pause before."""
    days = scheduled("days", cron("@daily"), DAILY, since=BEGAN)
    paused_from_to(days, at(2024, 7, 1, 6), at(2024, 7, 2, 6))
    old_rows = Schedule.objects.all()
    old_rows.update(
        paused_at=at(2024, 7, 5, 6), unpaused_at=None, handled_before_pause=at(2024, 7, 5)
    )
    Asset.objects.update(paused=True)
    assert missed(days, at(2024, 7, 7)) == (2, "2024-07-05..2024-07-06")
    resume(days, at(2024, 7, 7, 6))
    assert missed(days, at(2024, 7, 8)) == (2, "2024-07-05..2024-07-06")
    pause(days, at(2024, 7, 9, 6))
    Asset.objects.update(paused=False, activated_at=BEGAN)
    ended = at(2024, 7, 11, 6)
    old_rows.update(unpaused_at=ended, handled_until=ended, began_at=ended)
    assert missed(days, at(2024, 7, 12)) == (4, "2024-07-07..2024-07-10")
    reason = reasons_of(Asset.objects.get(), ["2024-07-10"], at(2024, 7, 12))["2024-07-10"]
    assert reason.code == "missed_while_paused"


@pytest.mark.parametrize("most", [20_000, 2])
def test_windows_that_are_excluded_later_do_not_make_up_for_missed_ones(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Nor do windows between two spans of a pause, which the schedule has not missed."""
    monkeypatch.setattr("assets_app.scheduling.missed._MOST_SUBTRACTED", most)
    segments = PartitionByProduct([DAILY, PartitionBySequence(["a", "b"])])
    days = scheduled("days", cron("@daily"), segments, since=BEGAN)
    pause(days, at(2024, 7, 1, 6))
    lose_file(days, at(2024, 7, 8, 6))
    find_file(days, at(2024, 7, 10, 6))
    resume(days, at(2024, 7, 12, 6))
    # Monday 1 July is missing; Saturday and Sunday, 6 and 7 July, are excluded afterwards.
    record(days, "time=2024-07-02..2024-07-10")
    weekdays = PartitionByInterval("@daily", start="2024-01-01", exclude="0 0 * * 6,0")
    fewer = PartitionByProduct([weekdays, PartitionBySequence(["a", "b"])])
    days.partition_definition = PartitionDefinition.of(fewer.to_json())
    days.save()
    found = missed(days, at(2024, 7, 14))
    assert found is not None
    assert found[0] == 2 * len(["2024-07-01", "2024-07-11"])


def test_pauses_from_before_the_spans_keep_their_lists() -> None:
    """Of a pause on record, the migration writes what the rule of then had ticks for."""
    asset("up", DAILY)
    rules = {
        "daily": (cron("@daily"), None),
        "ended": (cron("@daily"), "2024-07-03T00:00:00+00:00"),
        "over": (cron("@daily"), "2024-06-01T00:00:00+00:00"),
        "joined": (all_of(by("up"), cron("@daily")), None),
        "by_assets": (by("up"), None),
        "goes_on": (cron("@daily"), None),
    }
    for name, (rule, end) in rules.items():
        of = scheduled(name, rule, DAILY, since=BEGAN, end_date=end)
        pause(of, at(2024, 7, 2, 6))
        if name != "goes_on":
            resume(of, at(2024, 7, 5, 6))
    Schedule.objects.update(misses_since=None, missed_spans=[], handled_before_pause=BEGAN)
    migration = import_module("assets_app.migrations.0005_missed_spans")
    migration.write_spans(apps, SimpleNamespace(connection=connection))
    spans = dict(Schedule.objects.values_list("producer__name", "missed_spans"))
    until = {"daily": at(2024, 7, 5, 6), "ended": at(2024, 7, 3), "joined": at(2024, 7, 5, 6)}
    assert spans == {
        name: [[BEGAN.isoformat(), until[name].isoformat()]] if name in until else []
        for name in rules
    }
    since = dict(Schedule.objects.values_list("producer__name", "misses_since"))
    assert since == dict.fromkeys(rules) | {"goes_on": BEGAN}
