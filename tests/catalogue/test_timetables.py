"""Schedules of whole bundles, brought up to date in sets."""

from collections.abc import Mapping

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from assets_app.catalogue.timetables import store_schedules
from assets_app.models import GroupKind, Producer, Queue, RunGroup, Schedule
from tests.factories import asset
from tests.scheduling.scheduled_assets import at, by, cron

pytestmark = pytest.mark.django_db


def producer(name: str, schedule: Mapping[str, object] | None, **options: object) -> Producer:
    stored_producer = asset(
        name, options={"schedule": schedule, **options}, schedule=schedule
    ).producer
    assert stored_producer is not None
    return stored_producer


def say(of: Producer, **options: object) -> None:
    """Declare the producer anew."""
    assert of.current_version is not None
    of.current_version.definition = of.current_version.definition | options


def test_each_producer_gets_the_schedule_that_it_declares() -> None:
    daily = producer("daily", cron("@daily"), priority=3, max_active_runs=2)
    follows = producer("follows", by("daily"))
    by_hand = producer("by_hand", None)
    store_schedules([daily, follows, by_hand], now=at(2024, 7, 1, 12))
    first, second = Schedule.objects.select_related("group").order_by("producer__name")
    assert (first.producer, first.by_time, first.next_at) == (daily, True, at(2024, 7, 2))
    assert (second.producer, second.by_time, second.next_at) == (follows, False, None)
    assert first.handled_until == second.handled_until == at(2024, 7, 1, 12)
    assert [first.group.label, second.group.label] == ["daily", "follows"]
    assert (first.group.priority, first.group.max_active_runs) == (3, 2)
    assert (second.group.priority, second.group.max_active_runs) == (0, None)
    assert {first.group.kind, second.group.kind} == {GroupKind.SCHEDULE}
    assert {first.group.queue, second.group.queue} == {Queue.SCHEDULED}


def test_only_what_has_changed_is_written() -> None:
    unchanged, changed, unscheduled = (
        producer(name, cron("@daily")) for name in ("same", "other", "gone")
    )
    store_schedules([unchanged, changed, unscheduled], now=at(2024, 7, 1))
    say(changed, schedule=cron("@hourly"), priority=1)
    say(unscheduled, schedule=None)
    with CaptureQueriesContext(connection) as statements:
        store_schedules([unchanged, changed, unscheduled], now=at(2024, 7, 1, 12))
    written = [
        query["sql"] for query in statements if query["sql"].startswith(("UPDATE", "INSERT"))
    ]
    assert len(written) == 2
    rows = {row.producer.name: row for row in Schedule.objects.select_related("producer", "group")}
    assert rows["same"].next_at == at(2024, 7, 2)
    # It goes on from where the old one was.
    assert rows["other"].next_at == at(2024, 7, 1, 1)
    assert rows["other"].group.priority == 1
    assert (rows["gone"].rule, rows["gone"].next_at) == (None, None)
    with CaptureQueriesContext(connection) as statements:
        store_schedules([unchanged, changed, unscheduled], now=at(2024, 7, 1, 12))
    assert not [query for query in statements if not query["sql"].startswith("SELECT")]


@pytest.mark.parametrize(
    "old",
    [
        {"schedule": by("other")},
        {"schedule": cron("@daily"), "end_date": "2022-07-01T00:00:00+00:00"},
    ],
    ids=["by an asset", "over"],
)
def test_where_there_were_no_ticks_a_schedule_by_time_begins_now(old: dict[str, object]) -> None:
    scheduled_producer = producer("made", None)
    say(scheduled_producer, **old)
    store_schedules([scheduled_producer], now=at(2022, 7, 1))
    say(scheduled_producer, schedule=cron("@daily"), end_date=None)
    store_schedules([scheduled_producer], now=at(2024, 7, 1, 12))
    row = Schedule.objects.get()
    assert (row.handled_until, row.next_at) == (at(2024, 7, 1, 12), at(2024, 7, 2))
    say(scheduled_producer, end_date="2025-01-01T00:00:00+00:00")
    store_schedules([scheduled_producer], now=at(2024, 7, 5))
    assert Schedule.objects.get().handled_until == at(2024, 7, 1, 12)


def test_a_schedule_past_its_end_date_stays_unchanged() -> None:
    scheduled_producer = producer("made", cron("@daily"), end_date="2022-07-01T00:00:00+00:00")
    for moment in (at(2022, 7, 1), at(2024, 7, 1)):
        store_schedules([scheduled_producer], now=moment)
    assert Schedule.objects.get().handled_until == at(2022, 7, 1)


def test_a_schedule_by_other_assets_goes_on_from_where_the_old_one_was() -> None:
    scheduled_producer = producer("made", by("one"))
    store_schedules([scheduled_producer], now=at(2022, 7, 1))
    say(scheduled_producer, schedule=by("two"))
    store_schedules([scheduled_producer], now=at(2024, 7, 1))
    assert Schedule.objects.get().handled_until == at(2022, 7, 1)


def test_statements_do_not_grow_with_producers() -> None:
    def statements(many: int) -> int:
        producers = [producer(f"of_{many}_{number}", cron("@daily")) for number in range(many)]
        with CaptureQueriesContext(connection) as statements:
            store_schedules(producers, now=at(2024, 7, 1))
        return len(statements)

    assert statements(2) == statements(30)
    assert RunGroup.objects.count() == Schedule.objects.count() == 32
