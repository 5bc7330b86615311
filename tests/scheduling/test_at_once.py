"""Schedules that are declared anew while a person pauses the asset, or during a tick; runs that are
recorded while other runs are evaluated.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection, transaction

from accounts_app.models import AuditEntry
from assets_app.catalogue import freshness_watches, storing, timetables
from assets_app.catalogue.pausing import set_paused
from assets_app.catalogue.services import sync_bundle
from assets_app.execution.queue.settling import _write_outbox
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, AssetPartition, Outbox, Run, Schedule, ScheduleTick
from assets_app.queries.clock import database_now
from assets_app.scheduling import outbox
from assets_app.scheduling.outbox import process_outbox
from assets_app.scheduling.requeue_due import requeue_due
from assets_app.scheduling.ticking import handle_ticks
from slicewise import PartitionByInterval
from tests.catalogue.conftest import Bundle, bundle
from tests.execution.conftest import make_gateway
from tests.factories import asset, person
from tests.scheduling.beats import look
from tests.scheduling.scheduled_assets import (
    after,
    all_of,
    any_of,
    at,
    by,
    cron,
    fresh,
    scheduled,
    waiting,
    write,
)
from tests.threads import elsewhere, locked_partitions, wait_for_end_or_lock

__all__ = ["bundle"]

DAILY = PartitionByInterval("@daily", start="2024-01-01")
pytestmark = pytest.mark.django_db(transaction=True)


def declare_anew(of: Asset, meanwhile: Callable[[], Any]) -> None:
    """Change the asset's schedule, with an act after the old state has been read."""
    assert of.producer is not None
    assert of.producer.current_version is not None
    version = of.producer.current_version
    version.definition = version.definition | {"schedule": cron("@hourly")}
    of.producer.current_version.save()
    threads: list[threading.Thread] = []
    read = timetables._paused_producers

    def read_and_wait(*args: Any) -> set[int]:
        paused = read(*args)
        threads.append(elsewhere(meanwhile))
        wait_for_end_or_lock(threads[0])
        return paused

    with patch.object(timetables, "_paused_producers", read_and_wait), transaction.atomic():
        timetables.store_schedules([of.producer], now=at(2024, 7, 1))
    threads[0].join()


def test_an_asset_paused_during_a_sync_stays_paused() -> None:
    alice = person("alice", is_superuser=True)
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    declare_anew(daily, lambda: set_paused(daily, True, user=alice))
    assert Schedule.objects.get().next_at is None
    assert handle_ticks(at(2024, 7, 2)) == 0


def test_a_tick_meanwhile_waits_and_is_handled_once() -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    declare_anew(daily, lambda: handle_ticks(at(2024, 7, 2)))
    assert handle_ticks(at(2024, 7, 2)) == 1
    assert waiting(daily) == ["2024-07-01"]
    assert ScheduleTick.objects.count() == 1


def test_a_pause_during_a_tick_waits_for_the_tick() -> None:
    alice = person("alice", is_superuser=True)
    daily = scheduled("daily", cron("@daily"), DAILY, since=at(2024, 7, 1))
    with transaction.atomic():
        assert handle_ticks(at(2024, 7, 2)) == 1
        pause = elsewhere(lambda: set_paused(daily, True, user=alice))
        wait_for_end_or_lock(pause)
    pause.join()
    assert waiting(daily) == ["2024-07-01"]
    assert Schedule.objects.get().is_in_pause


def test_pauses_of_two_assets_of_one_function_are_made_one_after_the_other() -> None:
    alice = person("alice", is_superuser=True)
    first = scheduled("first", cron("@daily"), DAILY, since=at(2024, 7, 1))
    second = asset("second", DAILY)
    Asset.objects.filter(pk=second.pk).update(producer=first.producer)
    with transaction.atomic():
        Asset.objects.select_for_update().get(pk=first.pk)
        pause = elsewhere(lambda: set_paused(second, True, user=alice))
        wait_for_end_or_lock(pause)
        set_paused(first, True, user=alice)
    pause.join()
    assert not Asset.objects.filter(paused=False).exists()
    assert AuditEntry.objects.filter(action="pause").count() == 1


SPLIT = """
from slicewise import *
@asset.multi(outlets=[{outlets}], schedule="@daily", partition=PartitionByInterval("@daily"))
def split(): ...
"""


def sync_during(folder: Path, meanwhile: Callable[[], Any]) -> None:
    """Sync the folder, with an act on another thread once the sync has stored the assets."""
    threads: list[threading.Thread] = []
    store = freshness_watches.store_watches

    def act_and_store(*args: Any, **options: Any) -> None:
        threads.append(elsewhere(meanwhile))
        wait_for_end_or_lock(threads[0])
        store(*args, **options)

    with patch.object(storing, "store_watches", act_and_store):
        assert sync_bundle("trials", folder).errors == []
    threads[0].join()


@pytest.mark.parametrize("paused", ["train", "test"])
def test_a_pause_during_a_sync_pauses_the_assets_that_join_the_function(
    bundle: Bundle, paused: str
) -> None:
    alice = person("alice", is_superuser=True)
    folder = bundle(a=SPLIT.format(outlets="Asset('train'), Asset('test', description='Old')"))
    assert sync_bundle("trials", folder).errors == []
    of = Asset.objects.get(name=paused)
    (folder / "a.py").write_text(
        SPLIT.format(outlets="Asset('train'), Asset('test'), Asset('new')")
    )
    sync_during(folder, lambda: set_paused(of, True, user=alice))
    assert Schedule.objects.get().is_in_pause
    assert set(Asset.objects.values_list("name", "paused")) == {
        ("train", True), ("test", True), ("new", True),
    }  # fmt: skip


def test_a_pause_during_a_sync_pauses_no_asset_that_leaves_the_function(bundle: Bundle) -> None:
    alice = person("alice", is_superuser=True)
    folder = bundle(a=SPLIT.format(outlets="Asset('train'), Asset('test')"))
    assert sync_bundle("trials", folder).errors == []
    train = Asset.objects.get(name="train")
    (folder / "a.py").write_text(SPLIT.format(outlets="Asset('train')"))
    sync_during(folder, lambda: set_paused(train, True, user=alice))
    assert Asset.objects.get(name="train").paused
    assert not Asset.objects.get(name="test").paused


def test_partitions_recorded_while_earlier_partitions_of_the_run_are_evaluated_are_evaluated() -> (
    None
):
    alice = person("alice", is_superuser=True)
    write(asset("daily", DAILY), "2024-07-01", make_gateway("scheduled"), alice)
    run = Run.objects.get()
    read, has_read, may_end = outbox._materialized_by, threading.Event(), threading.Event()

    def read_and_wait(entries: Any) -> Any:
        decoded = read(entries)
        has_read.set()
        assert may_end.wait(120)
        return decoded

    with patch.object(outbox, "_materialized_by", read_and_wait):
        evaluation = elsewhere(lambda: process_outbox(at(2024, 7, 2)))
        assert has_read.wait(120)
        # The rest of its partitions, by a later attempt.
        record = elsewhere(lambda: _write_outbox(run.pk))
        wait_for_end_or_lock(record)
        may_end.set()
        evaluation.join(120)
        record.join(120)
    assert Outbox.objects.filter(run=run).count() == 1
    assert process_outbox(at(2024, 7, 2)) == 1


def test_an_entry_is_left_out_while_other_partitions_of_its_run_are_recorded() -> None:
    alice = person("alice", is_superuser=True)
    write(asset("daily", DAILY), "2024-07-01", make_gateway("scheduled"), alice)
    run = Run.objects.get()
    has_written, may_end = threading.Event(), threading.Event()

    def record() -> None:
        with transaction.atomic():
            _write_outbox(run.pk)
            has_written.set()
            assert may_end.wait(120)

    recording = elsewhere(record)
    try:
        assert has_written.wait(120)
        assert process_outbox(at(2024, 7, 2)) == 0
    finally:
        may_end.set()
        recording.join(120)
    assert process_outbox(at(2024, 7, 2)) == 1
    assert not Outbox.objects.exists()


@contextmanager
def locked(of: Asset) -> Iterator[None]:
    """Lock the partitions of an asset in another transaction, as one that records many does."""
    may_end = threading.Event()
    thread = locked_partitions(of, may_end)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '60s'")
        yield
    finally:
        may_end.set()
        thread.join()
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = 0")


@pytest.mark.parametrize("schedule", [cron("@daily"), any_of(cron("@daily"), by("daily"))])
def test_a_partition_that_is_locked_keeps_no_other_schedule_from_its_tick(
    schedule: dict[str, Any],
) -> None:
    alice, midnight = person("alice", is_superuser=True), at(2024, 7, 2)
    asset("daily", DAILY)
    busy, free = (scheduled(name, schedule, DAILY, since=at(2024, 7, 1)) for name in "bf")
    materialize(MaterializeRequest(asset=busy, selection="2024-07-01"), user=alice)
    Run.objects.update(created_at=midnight - timedelta(hours=1))
    with locked(busy):
        assert handle_ticks(midnight) == 1
        assert waiting(free) == ["2024-07-01"]
    put_off = Schedule.objects.get(producer=busy.producer)
    assert (put_off.handled_until, put_off.error) == (at(2024, 7, 1), "")
    assert handle_ticks(midnight + timedelta(seconds=5)) == 1
    assert AssetPartition.objects.get(asset=busy).due_again


def test_a_partition_that_is_locked_keeps_nothing_else_from_being_evaluated() -> None:
    alice, now = person("alice", is_superuser=True), at(2024, 7, 2)
    daily = asset("daily", DAILY)
    busy, free = (scheduled(name, by("daily"), DAILY, since=at(2024, 7, 1)) for name in "bf")
    materialize(MaterializeRequest(asset=busy, selection="2024-07-01"), user=alice)
    write(daily, "2024-07-01", make_gateway("scheduled"), alice)
    with locked(busy):
        assert process_outbox(now) == 1
        assert waiting(free) == ["2024-07-01"]
    assert not Schedule.objects.exclude(error="").exists()
    assert process_outbox(now) == 0
    assert process_outbox(now + timedelta(seconds=5)) == 1
    assert AssetPartition.objects.get(asset=busy).due_again
    assert not Outbox.objects.exists()


def test_a_locked_partition_that_waits_for_a_fresh_asset_is_examined_when_it_is_free() -> None:
    alice, written_at = person("alice", is_superuser=True), at(2024, 7, 2, 8)
    model = asset("model")
    hours, days = timedelta(hours=6), timedelta(days=3_000)
    waits = all_of(after(hours), fresh("model", days))
    busy, free = (scheduled(name, waits, DAILY, since=at(2024, 7, 1)) for name in "bf")
    look(at(2024, 7, 2, 6))
    assert waiting(busy) == waiting(free) == []
    write(model, "", make_gateway("scheduled"), alice)
    with locked(busy):
        assert process_outbox(written_at) == 1
        requeue_due(written_at)
        assert (waiting(busy), waiting(free)) == ([], ["2024-07-01"])
        # Still locked: kept once more.
        assert process_outbox(written_at + timedelta(seconds=3)) == 1
    assert Outbox.objects.get().schedule == Schedule.objects.get(producer=busy.producer)
    look(written_at + timedelta(seconds=10))
    assert waiting(busy) == ["2024-07-01"]
    assert not Outbox.objects.exists()
    assert not Schedule.objects.exclude(error="").exists()


def test_schedules_tick_while_the_rest_of_their_bundle_is_stored(bundle: Bundle) -> None:
    declared = 'from slicewise import asset\n@asset(schedule="@daily")\ndef whole(): ...\n'
    assert sync_bundle("trials", bundle(a=declared)).errors == []
    tomorrow = database_now() + timedelta(days=1)
    store, ticked = storing._store_dependencies, list[int]()

    def tick_meanwhile(*args: Any) -> None:
        elsewhere(lambda: ticked.append(handle_ticks(tomorrow))).join(120)
        store(*args)

    with patch.object(storing, "_store_dependencies", tick_meanwhile):
        assert sync_bundle("trials", bundle(a=declared + "# changed\n")).errors == []
    assert ticked == [1]
