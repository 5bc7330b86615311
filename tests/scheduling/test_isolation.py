"""An asset that cannot be evaluated keeps no other from being made."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.catalogue.timetables import store_schedules
from assets_app.models import Asset, AssetDependency, Gateway, Outbox, Run, Schedule
from assets_app.scheduling import outbox
from assets_app.scheduling.affected import NewPartition
from assets_app.scheduling.outbox import process_outbox
from assets_app.scheduling.queueing import TouchedPartitions, queue_due
from assets_app.scheduling.requeue_due import requeue_due
from assets_app.scheduling.ticking import handle_ticks
from slicewise import Offset, PartitionByInterval
from tests.factories import asset
from tests.query_plans import rows_read
from tests.scheduling.scheduled_assets import at, by, cron, scheduled, waiting, write

DAILY = PartitionByInterval("@daily", start="2024-01-01")
BEGAN = at(2024, 7, 1)
NOW = at(2024, 8, 1)
MINUTE = timedelta(minutes=1)
pytestmark = pytest.mark.django_db


@pytest.fixture
def upstream(db: None) -> Asset:
    return asset("one", DAILY)


@pytest.fixture
def lagging(upstream: Asset) -> list[Asset]:
    """Create three assets that follow the upstream asset, a day later."""
    return [
        scheduled(name, by("one"), DAILY, since=BEGAN, upstream={"one": Offset(-1)})
        for name in ("first", "second", "third")
    ]


def unreadable(of: Asset) -> None:
    """Make the asset's mapping one of a package that is not installed any more."""
    AssetDependency.objects.filter(downstream=of).update(mapping={"kind": "gone"})


def schedule_of(asset: Asset) -> Schedule:
    return Schedule.objects.get(producer=asset.producer)


def test_the_others_are_evaluated_and_it_is_evaluated_once_it_can_be(
    upstream: Asset, lagging: list[Asset], alice: User, gateway: Gateway
) -> None:
    mappings = AssetDependency.objects.filter(downstream=lagging[1])
    mapping = mappings.get().mapping
    unreadable(lagging[1])
    write(upstream, "2024-07-01", gateway, alice)
    assert process_outbox(NOW) == 1
    assert [waiting(downstream) for downstream in lagging] == [["2024-07-02"], [], ["2024-07-02"]]
    assert schedule_of(lagging[1]).error
    assert [schedule_of(lagging[place]).error for place in (0, 2)] == ["", ""]
    assert process_outbox(NOW) == 0, "it is left alone for a while"
    assert process_outbox(NOW + MINUTE) == 1
    assert schedule_of(lagging[1]).failures == 2
    assert process_outbox(NOW + 2 * MINUTE) == 0, "each time for longer"
    mappings.update(mapping=mapping)
    assert process_outbox(NOW + 3 * MINUTE) == 1
    assert [waiting(downstream) for downstream in lagging] == [["2024-07-02"]] * 3
    assert not Outbox.objects.exists()
    assert (schedule_of(lagging[1]).error, schedule_of(lagging[1]).failures) == ("", 0)


def test_writes_are_kept_for_a_schedule_whose_evaluation_is_put_off(
    upstream: Asset, lagging: list[Asset], alice: User, gateway: Gateway
) -> None:
    mappings = AssetDependency.objects.filter(downstream=lagging[1])
    mapping = mappings.get().mapping
    unreadable(lagging[1])
    for day in ("2024-07-01", "2024-07-02"):
        write(upstream, day, gateway, alice)
        process_outbox(NOW)
    assert schedule_of(lagging[1]).failures == 1, "it is not tried with each write"
    mappings.update(mapping=mapping)
    assert process_outbox(NOW + MINUTE) == 2
    assert [waiting(downstream) for downstream in lagging] == [["2024-07-02", "2024-07-03"]] * 3


def test_failed_evaluations_have_their_turn_among_many_new_writes(
    upstream: Asset, lagging: list[Asset], alice: User, gateway: Gateway
) -> None:
    mappings = AssetDependency.objects.filter(downstream=lagging[1])
    mapping = mappings.get().mapping
    unreadable(lagging[1])
    write(upstream, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    mappings.update(mapping=mapping)
    run = Run.objects.filter(asset=upstream).get()
    fields = {
        field.attname: getattr(run, field.attname)
        for field in Run._meta.concrete_fields
        if not field.primary_key
    }
    runs = Run.objects.bulk_create(Run(**fields) for _ in range(500))
    Outbox.objects.bulk_create(Outbox(run=run) for run in runs)
    assert process_outbox(NOW + MINUTE) <= 200
    assert waiting(lagging[1]) == ["2024-07-02"]
    process_outbox(NOW + MINUTE)
    process_outbox(NOW + MINUTE)
    assert not Outbox.objects.exists()


def test_a_failure_costs_the_same_however_much_is_kept_for_the_schedule(
    upstream: Asset,
    lagging: list[Asset],
    alice: User,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mappings = AssetDependency.objects.filter(downstream=lagging[1])
    mapping = mappings.get().mapping
    unreadable(lagging[1])
    days = [f"2024-07-{day:02}" for day in range(1, 8)]
    for day in days:
        write(upstream, day, gateway, alice)
        process_outbox(NOW)
    entries = list(Outbox.objects.order_by("id").values())
    assert len(entries) == len(days)
    monkeypatch.setattr(outbox, "_RETRIED_AT_ONCE", 2)
    assert process_outbox(NOW + MINUTE) == 2
    assert schedule_of(lagging[1]).failures == 2
    assert process_outbox(NOW + MINUTE) == 0, "the others wait for the same schedule"
    assert list(Outbox.objects.order_by("id").values()) == entries, "none of them is written again"
    mappings.update(mapping=mapping)
    assert [process_outbox(NOW + 3 * MINUTE) for _ in range(5)] == [2, 2, 2, 1, 0]
    assert len(waiting(lagging[1])) == len(days)
    assert not Outbox.objects.exists()


def test_writes_kept_for_waiting_schedules_are_not_read(
    upstream: Asset, lagging: list[Asset], alice: User, gateway: Gateway
) -> None:
    unreadable(lagging[1])
    write(upstream, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    run, schedule = Run.objects.filter(asset=upstream).get(), schedule_of(lagging[1])
    fields = {
        field.attname: getattr(run, field.attname)
        for field in Run._meta.concrete_fields
        if not field.primary_key
    }
    runs = Run.objects.bulk_create(Run(**fields) for _ in range(2_000))
    Outbox.objects.bulk_create(Outbox(run=run, schedule=schedule, not_before=NOW) for run in runs)
    with CaptureQueriesContext(connection) as statements:
        assert process_outbox(NOW + MINUTE / 2) == 0
    assert sum(rows_read(query["sql"]) for query in statements) < 20


def test_new_code_is_tried_at_once(
    upstream: Asset, lagging: list[Asset], alice: User, gateway: Gateway
) -> None:
    mappings = AssetDependency.objects.filter(downstream=lagging[1])
    mapping = mappings.get().mapping
    unreadable(lagging[1])
    write(upstream, "2024-07-01", gateway, alice)
    process_outbox(NOW)
    mappings.update(mapping=mapping)
    assert lagging[1].producer
    store_schedules([lagging[1].producer], now=NOW)
    assert process_outbox(NOW) == 1
    assert waiting(lagging[1]) == ["2024-07-02"]


def test_new_code_is_tried_at_once_for_windows_that_are_over(
    upstream: Asset, lagging: list[Asset], alice: User, gateway: Gateway
) -> None:
    mappings = AssetDependency.objects.filter(downstream=lagging[1])
    mapping = mappings.get().mapping
    for day in ("2024-07-01", "2024-07-02"):
        write(upstream, day, gateway, alice)
    process_outbox(at(2024, 7, 2, 12))
    unreadable(lagging[1])
    requeue_due(at(2024, 7, 3))
    assert waiting(lagging[1]) == []
    mappings.update(mapping=mapping)
    assert lagging[1].producer
    store_schedules([lagging[1].producer], now=at(2024, 7, 3))
    assert requeue_due(at(2024, 7, 3)) == 1, "the other window is not over yet"
    assert waiting(lagging[1]) == ["2024-07-02"]


def test_a_statement_too_large_for_the_database_does_not_block_later_writes(
    upstream: Asset,
    lagging: list[Asset],
    alice: User,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ask_too_much(touched: TouchedPartitions, *more: Any) -> int:
        if touched.target.asset == lagging[1]:
            with connection.cursor() as cursor:
                cursor.execute("SELECT repeat('x', 2000000000)")
        return queue_due(touched, *more)

    write(upstream, "2024-07-01", gateway, alice)
    with monkeypatch.context() as patched:
        patched.setattr(outbox, "queue_due", ask_too_much)
        assert process_outbox(NOW) == 1
    assert [waiting(downstream) for downstream in lagging] == [["2024-07-02"], [], ["2024-07-02"]]
    assert "OperationalError" in schedule_of(lagging[1]).error
    assert process_outbox(NOW + MINUTE) == 1
    assert waiting(lagging[1]) == ["2024-07-02"]


def test_an_entry_that_cannot_be_read_keeps_no_other_from_being_evaluated(
    upstream: Asset,
    lagging: list[Asset],
    alice: User,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for day in ("2024-07-01", "2024-07-02", "2024-07-03"):
        write(upstream, day, gateway, alice)
    unread = Outbox.objects.order_by("id")[1]
    made_by = outbox._materialized_by

    def fail(entries: Sequence[Outbox]) -> list[NewPartition]:
        if unread in entries:
            raise MemoryError
        return made_by(entries)

    with monkeypatch.context() as patched:
        patched.setattr(outbox, "_materialized_by", fail)
        assert process_outbox(NOW) == 3
    assert waiting(lagging[0]) == ["2024-07-02", "2024-07-04"]
    assert [entry.pk for entry in Outbox.objects.all()] == [unread.pk]
    assert process_outbox(NOW) == 0
    assert process_outbox(NOW + MINUTE) == 1
    assert waiting(lagging[0]) == ["2024-07-02", "2024-07-04", "2024-07-03"]


def test_the_others_are_seen_to_when_their_windows_are_over(
    upstream: Asset, lagging: list[Asset], alice: User, gateway: Gateway
) -> None:
    mappings = AssetDependency.objects.filter(downstream=lagging[1])
    mapping = mappings.get().mapping
    write(upstream, "2024-07-01", gateway, alice)
    process_outbox(at(2024, 7, 2, 12))
    assert [waiting(downstream) for downstream in lagging] == [[], [], []]
    unreadable(lagging[1])
    assert requeue_due(at(2024, 7, 3)) == 3
    assert [waiting(downstream) for downstream in lagging] == [["2024-07-02"], [], ["2024-07-02"]]
    assert requeue_due(at(2024, 7, 3)) == 0, "it is left alone for a while"
    assert schedule_of(lagging[1]).error
    mappings.update(mapping=mapping)
    assert requeue_due(at(2024, 7, 3) + MINUTE) == 1
    assert waiting(lagging[1]) == ["2024-07-02"]
    assert schedule_of(lagging[1]).error == ""


def test_all_writes_are_tried_again_after_an_error_of_the_database(
    upstream: Asset,
    lagging: list[Asset],
    alice: User,
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError("deadlock detected")

    write(upstream, "2024-07-01", gateway, alice)
    with monkeypatch.context() as patched:
        patched.setattr(outbox, "queue_due", fail)
        with pytest.raises(OperationalError):
            process_outbox(NOW)
    assert process_outbox(NOW) == 1
    assert [waiting(downstream) for downstream in lagging] == [["2024-07-02"]] * 3


def test_the_others_tick_and_what_it_missed_is_made_once_it_can_be_read() -> None:
    names = ("first", "second", "third")
    daily = [scheduled(name, cron("@daily"), DAILY, since=BEGAN) for name in names]
    schedules = Schedule.objects.filter(producer=daily[1].producer)
    rule = schedules.get().rule
    schedules.update(rule={"kind": "gone"})
    assert handle_ticks(at(2024, 7, 2)) == 2
    assert [waiting(downstream) for downstream in daily] == [["2024-07-01"], [], ["2024-07-01"]]
    # It is left alone for a while.
    assert not Schedule.objects.filter(next_at__lte=at(2024, 7, 2)).exists()
    schedules.update(rule=rule)
    assert handle_ticks(at(2024, 7, 3)) == 3
    assert [waiting(downstream) for downstream in daily] == [["2024-07-01", "2024-07-02"]] * 3
