"""Writes and partitions that a schedule had yet to evaluate when its asset was paused: the list of
missed partitions has them.
"""

from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.db import connection

from accounts_app.models import User
from assets_app.catalogue.pausing import set_paused
from assets_app.execution.attempt import attempts
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.execution.request.retrying import retry_run
from assets_app.models import (
    Asset,
    AssetDependency,
    AssetPartition,
    Gateway,
    Materialization,
    Outbox,
    Run,
    Schedule,
)
from assets_app.queries import unevaluated_writes
from assets_app.queries.clock import database_now
from assets_app.scheduling import outbox
from assets_app.scheduling.missed import missed_by
from assets_app.scheduling.outbox import process_outbox
from assets_app.scheduling.requeue_due import requeue_due
from assets_app.scheduling.writes_before_pauses import keep_for_missed
from slicewise import PartitionByInterval
from tests.factories import asset
from tests.scheduling.beats import look, written
from tests.scheduling.pauses import missed, without_mapping, written_before
from tests.scheduling.scheduled_assets import (
    all_of,
    at,
    begin,
    by,
    fail,
    finish,
    fresh,
    make,
    make_all,
    publish_part,
    scheduled,
    waiting,
    write,
)

DAILY = PartitionByInterval("@daily", start="2024-01-01")
HOURLY = PartitionByInterval("@hourly", start="2024-01-01")
BEGAN = at(2024, 7, 1)
pytestmark = pytest.mark.django_db


def reported() -> tuple[Asset, Asset]:
    """Return an asset by day, and an asset by day that follows."""
    return asset("a", DAILY), scheduled("report", by("a"), DAILY, since=BEGAN)


def scored_with_model() -> tuple[Asset, Asset, Asset]:
    """Return an asset by day, a model, and an asset that follows both and needs a fresh model."""
    a, model = asset("a", DAILY), asset("model")
    terms = all_of(by("a"), fresh("model", timedelta(days=1)))
    return a, model, scheduled("scored", terms, DAILY, since=BEGAN)


def test_writes_that_a_failing_schedule_still_owes_are_missed_when_the_asset_is_paused(
    gateway: Gateway, alice: User
) -> None:
    a, report = reported()
    write(a, "2024-07-01", gateway, alice)
    written_before(a, "2024-07-01", timedelta(hours=3))
    process_outbox(database_now())
    make_all(report, gateway)
    mapping = AssetDependency.objects.get(downstream=report).mapping
    without_mapping(report)
    write(a, "2024-07-02", gateway, alice)
    written_before(a, "2024-07-02", timedelta(hours=2))
    process_outbox(database_now())
    written_before(a, "2024-07-02", timedelta(hours=2))
    assert Schedule.objects.get(producer=report.producer).failures == 1
    set_paused(report, True, user=alice)
    process_outbox(database_now() + timedelta(hours=1))
    assert not Outbox.objects.exists()
    AssetDependency.objects.filter(downstream=report).update(mapping=mapping)
    assert missed(report) == "2024-07-02"
    set_paused(report, False, user=alice)
    process_outbox(database_now())
    assert waiting(report) == []
    assert missed(report) == "2024-07-02"
    write(report, "2024-07-02", gateway, alice)
    assert missed(report) is None


def moved_back(earlier: timedelta) -> None:
    """Move all runs and materializations to an earlier time."""
    when = database_now() - earlier
    Materialization.objects.update(created_at=when)
    AssetPartition.objects.filter(version__gt=0).update(materialized_at=when)
    Run.objects.update(created_at=when, queued_at=when, ended_at=when)


def pause_during_record(of: Asset, user: User) -> None:
    """Pause an asset as if the transaction of the only write in the outbox still went on: the pause
    does not see the write, which was recorded ten minutes ago.
    """
    entry = Outbox.objects.get()
    Outbox.objects.all().delete()
    moved_back(timedelta(minutes=10))
    set_paused(of, True, user=user)
    entry.save(force_insert=True)


class HeldDay(NamedTuple):
    """An asset by day that follows another, and a run under way of a day that is due again."""

    report: Asset
    run: attempts.Attempt


@pytest.fixture
def held_day(gateway: Gateway, alice: User) -> HeldDay:
    """Write a day anew while a run holds the day downstream; all of this was long ago."""
    a, report = reported()
    write(a, "2024-07-01", gateway, alice)
    process_outbox(database_now())
    run = begin(Run.objects.get(asset=report), gateway)
    write(a, "2024-07-01", gateway, alice)
    process_outbox(database_now())
    written_before(a, "2024-07-01", timedelta(hours=2))
    long_ago = database_now() - timedelta(hours=3)
    Run.objects.filter(asset=report).update(created_at=long_ago, queued_at=None)
    return HeldDay(report, run)


def test_a_day_written_while_a_run_held_it_is_missed_when_the_run_ends_in_the_pause(
    held_day: HeldDay, alice: User
) -> None:
    report = held_day.report
    set_paused(report, True, user=alice)
    assert missed(report) is None, "the run goes on"
    finish(held_day.run)
    assert missed(report) is None, "the partition is still marked"
    requeue_due(database_now())
    assert waiting(report) == []
    assert missed(report) == "2024-07-01"
    set_paused(report, False, user=alice)
    look(database_now())
    assert waiting(report) == [], "there is no catch-up"
    assert missed(report) == "2024-07-01"


def test_a_day_whose_run_ends_after_the_pause_is_queued_and_not_missed(
    held_day: HeldDay, gateway: Gateway, alice: User
) -> None:
    report = held_day.report
    set_paused(report, True, user=alice)
    set_paused(report, False, user=alice)
    finish(held_day.run)
    look(database_now())
    assert waiting(report) == ["2024-07-01"]
    assert missed(report) is None
    fail(Run.objects.filter(asset=report).latest("id"), gateway)
    assert missed(report) is None


def test_a_day_whose_evaluation_failed_after_a_run_is_missed_when_the_asset_is_paused(
    held_day: HeldDay, alice: User
) -> None:
    report = held_day.report
    finish(held_day.run)
    mapping = AssetDependency.objects.get(downstream=report).mapping
    without_mapping(report)
    requeue_due(database_now())
    set_paused(report, True, user=alice)
    requeue_due(database_now() + timedelta(hours=1))
    AssetDependency.objects.filter(downstream=report).update(mapping=mapping)
    assert missed(report) == "2024-07-01"


def test_a_day_that_waited_for_its_end_is_missed_when_it_ends_in_the_pause(
    gateway: Gateway, alice: User
) -> None:
    a, report = reported()
    written(a, "2024-07-01", at(2024, 7, 1, 12), gateway, alice)
    set_paused(report, True, user=alice)
    Schedule.objects.filter(producer=report.producer).update(paused_at=at(2024, 7, 1, 20))
    assert missed(report, at(2024, 7, 1, 21)) is None
    look(at(2024, 7, 2, 0, 1))
    assert waiting(report) == []
    assert missed(report, at(2024, 7, 2, 1)) == "2024-07-01"


@pytest.mark.parametrize("is_failing", [False, True], ids=["at once", "after a failure"])
def test_a_day_that_a_fresh_asset_released_before_the_pause_is_missed(
    gateway: Gateway, alice: User, is_failing: bool
) -> None:
    a, model, scored = scored_with_model()
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    write(model, "", gateway, alice)
    fresh_at = at(2024, 7, 2, 4)
    AssetPartition.objects.filter(asset=model).update(materialized_at=fresh_at)
    Materialization.objects.filter(partition__asset=model).update(created_at=fresh_at)
    mappings = AssetDependency.objects.in_bulk()
    if is_failing:
        without_mapping(scored)
    process_outbox(fresh_at + timedelta(seconds=1))
    if is_failing:
        requeue_due(fresh_at + timedelta(seconds=1))
    set_paused(scored, True, user=alice)
    # The pause begins after the minute in which a write counts as one of the pause.
    Schedule.objects.filter(producer=scored.producer).update(
        paused_at=fresh_at + timedelta(minutes=5), unevaluated_since=None
    )
    requeue_due(fresh_at + timedelta(hours=1))
    AssetDependency.objects.bulk_update(mappings.values(), ["mapping"])
    assert waiting(scored) == []
    assert missed(scored, at(2024, 7, 2, 8)) == "2024-07-01"


def test_partitions_to_examine_are_those_of_the_paused_asset(
    held_day: HeldDay, alice: User
) -> None:
    other = scheduled("other", by("a"), DAILY, since=BEGAN)
    set_paused(other, True, user=alice)
    assert other.producer
    other.producer.schedule.refresh_from_db()
    assert other.producer.schedule.partitions_to_examine == {}
    set_paused(held_day.report, True, user=alice)
    (marked,) = AssetPartition.objects.filter(asset=held_day.report)
    schedule = Schedule.objects.get(producer=held_day.report.producer)
    assert schedule.partitions_to_examine == {"ids": [marked.pk], "is_cut": False}


def test_a_write_whose_record_ends_after_the_pause_began_is_missed(
    gateway: Gateway, alice: User
) -> None:
    a, report = reported()
    write(a, "2024-07-01", gateway, alice)
    pause_during_record(report, alice)
    assert missed(report) is None
    process_outbox(database_now())
    assert missed(report) == "2024-07-01"


def test_a_run_recorded_in_two_parts_is_owed_since_its_first_part(
    gateway: Gateway, alice: User
) -> None:
    a, report = reported()
    days = MaterializeRequest(asset=a, selection="2024-07-01..2024-07-02", strategy="range")
    (run,) = materialize(days, user=alice).runs.all()
    publish_part(begin(run, gateway), {a: ["2024-07-01"]})
    long_ago = database_now() - timedelta(hours=3)
    Materialization.objects.update(created_at=long_ago)
    Outbox.objects.update(created_at=long_ago)
    Run.objects.update(created_at=long_ago, queued_at=long_ago, ended_at=long_ago)
    run.refresh_from_db()
    make(retry_run(run, user=alice), gateway)
    assert Outbox.objects.get().created_at == long_ago
    set_paused(report, True, user=alice)
    process_outbox(database_now())
    assert missed(report) == "2024-07-01..2024-07-02"


def test_entries_of_another_schedule_move_no_list_back(gateway: Gateway, alice: User) -> None:
    a, report = reported()
    without_mapping(scheduled("other", by("a"), DAILY, since=BEGAN))
    write(a, "2024-07-01", gateway, alice)
    process_outbox(database_now())
    fail(Run.objects.get(asset=report), gateway)
    moved_back(timedelta(hours=3))
    Outbox.objects.update(created_at=database_now() - timedelta(hours=3))
    set_paused(report, True, user=alice)
    assert missed(report) is None
    process_outbox(database_now() + timedelta(hours=1))
    assert missed(report) is None


def test_a_retried_run_moves_no_list_back_to_its_evaluated_first_part(
    gateway: Gateway, alice: User
) -> None:
    a, report = reported()
    days = MaterializeRequest(asset=a, selection="2024-07-01..2024-07-02", strategy="range")
    (run,) = materialize(days, user=alice).runs.all()
    publish_part(begin(run, gateway), {a: ["2024-07-01"]})
    process_outbox(database_now())
    fail(Run.objects.get(asset=report), gateway)
    moved_back(timedelta(hours=3))
    set_paused(report, True, user=alice)
    run.refresh_from_db()
    make(retry_run(run, user=alice), gateway)
    process_outbox(database_now())
    assert missed(report) == "2024-07-02"


def test_a_write_of_a_fresh_asset_whose_record_ends_in_the_pause_is_missed(
    gateway: Gateway, alice: User
) -> None:
    a, model, scored = scored_with_model()
    write(a, "2024-07-01", gateway, alice)
    process_outbox(database_now())
    moved_back(timedelta(hours=3))
    write(model, "", gateway, alice)
    pause_during_record(scored, alice)
    process_outbox(database_now())
    assert missed(scored) == "2024-07-01"


def test_a_mark_that_waits_for_a_fresh_asset_is_recorded_too(gateway: Gateway, alice: User) -> None:
    a, model, scored = scored_with_model()
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    set_paused(scored, True, user=alice)
    (marked,) = AssetPartition.objects.filter(asset=scored)
    # An evaluation that has not ended when the pause begins releases the partition.
    AssetPartition.objects.filter(pk=marked.pk).update(due_at=at(2024, 7, 2, 4))
    write(model, "", gateway, alice)
    moved_back(timedelta(hours=3))
    Outbox.objects.all().delete()
    requeue_due(database_now())
    assert missed(scored) == "2024-07-01"


def test_an_unpause_between_two_steps_of_an_evaluation_loses_no_write(
    gateway: Gateway, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, report = reported()
    write(a, "2024-07-01", gateway, alice)
    pause_during_record(report, alice)

    def unpause_first(*arguments: Any) -> Any:
        set_paused(report, False, user=alice)
        return keep_for_missed(*arguments)

    monkeypatch.setattr(outbox, "keep_for_missed", unpause_first)
    process_outbox(database_now())
    assert waiting(report) == []
    assert missed(report) == "2024-07-01"


def test_of_many_marks_those_are_recorded_that_come_due_first(
    gateway: Gateway, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unevaluated_writes, "_MOST_MARKED", 3)
    a = asset("a", DAILY)
    report = scheduled("report", by("a"), HOURLY, since=BEGAN)
    written(a, "2024-07-01", at(2024, 7, 1, 12), gateway, alice)
    make_all(report, gateway)
    set_paused(report, True, user=alice)
    Schedule.objects.filter(producer=report.producer).update(paused_at=at(2024, 7, 1, 20))
    look(at(2024, 7, 1, 15, 1))
    missed_hours = missed_by(Asset.objects.get(pk=report.pk), at(2024, 7, 1, 21))
    assert missed_hours
    assert missed_hours.selection == "2024-07-01T12:00Z..2024-07-01T14:00Z"
    assert not missed_hours.is_all


@pytest.mark.django_db(transaction=True)
def test_a_write_is_looked_at_again_while_another_transaction_locks_the_schedule(
    gateway: Gateway, alice: User
) -> None:
    a, report = reported()
    write(a, "2024-07-01", gateway, alice)
    pause_during_record(report, alice)
    other = connection.copy()
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("SELECT FROM assets_app_schedule FOR NO KEY UPDATE")
    process_outbox(database_now())
    assert missed(report) is None
    other.rollback()
    other.close()
    process_outbox(database_now() + timedelta(minutes=1))
    assert missed(report) == "2024-07-01"
    assert not Outbox.objects.exists()
