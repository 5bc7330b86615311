"""Partitions that a schedule by assets missed while its asset was paused, before and after
unpausing.
"""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.catalogue.pausing import set_paused
from assets_app.catalogue.timetables import store_schedules
from assets_app.models import (
    Asset,
    Gateway,
    Outbox,
    Run,
    Schedule,
    Trigger,
)
from assets_app.queries.clock import database_now
from assets_app.scheduling.missed import missed_by
from assets_app.scheduling.outbox import process_outbox
from assets_app.scheduling.requeue_due import requeue_due
from slicewise import PartitionByInterval, PartitionBySequence
from tests.factories import asset
from tests.scheduling.beats import look, written
from tests.scheduling.pauses import missed, written_before
from tests.scheduling.scheduled_assets import (
    all_of,
    at,
    by,
    fresh,
    make_all,
    scheduled,
    waiting,
    write,
)

HOURLY = PartitionByInterval("@hourly", start="2024-01-01")
DAILY = PartitionByInterval("@daily", start="2024-01-01")
SEGMENTS = PartitionBySequence(["a", "b"])
BEGAN = at(2024, 7, 1)
pytestmark = pytest.mark.django_db


def paused_since(of: Asset, earlier: timedelta) -> None:
    """Move the begin of the pause back: a write just before a pause counts as part of it."""
    Schedule.objects.filter(producer=of.producer).update(paused_at=database_now() - earlier)


@pytest.fixture
def daily(gateway: Gateway, alice: User) -> Asset:
    """Create a paused asset by day, scheduled by hours; a day was made before the pause."""
    hourly = asset("hourly", HOURLY)
    daily = scheduled("daily", by("hourly"), DAILY, since=BEGAN)
    write(hourly, "2024-07-01T00:00Z..2024-07-01T23:00Z", gateway, alice)
    process_outbox(database_now())
    make_all(daily, gateway)
    set_paused(daily, True, user=alice)
    return daily


def write_hours(selection: str, gateway: Gateway, user: User) -> None:
    write(Asset.objects.get(name="hourly"), selection, gateway, user)
    process_outbox(database_now())


def test_whole_days_written_during_the_pause_are_missed_until_they_are_made(
    daily: Asset, gateway: Gateway, alice: User
) -> None:
    assert missed(daily) is None
    write_hours("2024-07-02T00:00Z..2024-07-03T23:00Z", gateway, alice)
    write_hours("2024-07-05T00:00Z..2024-07-05T22:00Z", gateway, alice)  # an hour is lacking
    assert waiting(daily) == []
    assert missed(daily) == "2024-07-02..2024-07-03"
    set_paused(daily, False, user=alice)
    process_outbox(database_now())
    requeue_due(database_now())
    assert waiting(daily) == []
    assert missed(daily) == "2024-07-02..2024-07-03"
    write(daily, "2024-07-02", gateway, alice)
    assert missed(daily) == "2024-07-03"
    write(daily, "2024-07-03", gateway, alice)
    assert missed(daily) is None


def test_a_materialized_day_is_missed_once_an_hour_of_it_is_newer(
    daily: Asset, gateway: Gateway, alice: User
) -> None:
    write_hours("2024-07-01T05:00Z", gateway, alice)
    missed_keys = missed_by(Asset.objects.get(pk=daily.pk), database_now())
    assert missed_keys is not None
    assert (missed_keys.count, missed_keys.first, missed_keys.is_all) == (1, "2024-07-01", True)
    assert missed_keys.form == "selection=2024-07-01&existing=stale"


def test_partitions_written_after_the_pause_are_due_and_not_missed(
    daily: Asset, gateway: Gateway, alice: User
) -> None:
    write_hours("2024-07-02", gateway, alice)
    set_paused(daily, False, user=alice)
    write_hours("2024-07-03", gateway, alice)
    assert waiting(daily) == ["2024-07-03"]
    assert missed(daily) == "2024-07-02"
    make_all(daily, gateway)
    assert missed(daily) == "2024-07-02"


def test_upstream_partitions_of_a_backfill_are_not_missed(
    daily: Asset, gateway: Gateway, alice: User
) -> None:
    write_hours("2024-07-02", gateway, alice)
    Run.objects.filter(asset__name="hourly").update(trigger=Trigger.BACKFILL)
    assert missed(daily) is None


def test_partitions_in_flight_are_not_missed(daily: Asset, gateway: Gateway, alice: User) -> None:
    from assets_app.execution.request.requests import MaterializeRequest, materialize

    write_hours("2024-07-02..2024-07-03", gateway, alice)
    materialize(MaterializeRequest(asset=daily, selection="2024-07-02"), user=alice)
    assert missed(daily) == "2024-07-03"


def test_a_new_pause_begins_a_new_list_and_an_old_one_is_forgotten(
    daily: Asset, gateway: Gateway, alice: User, settings: object
) -> None:
    settings.SCHEDULE_TICK_DAYS = 30  # type: ignore[attr-defined]
    write_hours("2024-07-02", gateway, alice)
    set_paused(daily, False, user=alice)
    assert missed(daily, database_now() + timedelta(days=29)) == "2024-07-02"
    assert missed(daily, database_now() + timedelta(days=31)) is None
    set_paused(daily, True, user=alice)
    paused_since(daily, timedelta(minutes=-2))
    assert missed(daily) is None


@pytest.mark.usefixtures("same_day")
def test_windows_that_ended_before_a_segment_was_written_are_missed(
    gateway: Gateway, alice: User
) -> None:
    regions = asset("regions", SEGMENTS)
    by_region = scheduled("by_region", by("regions"), DAILY, since=database_now())
    began = database_now() - timedelta(days=2)
    Schedule.objects.update(handled_until=began)
    set_paused(by_region, True, user=alice)
    write(regions, "*", gateway, alice)
    process_outbox(database_now())
    missed_keys = missed_by(Asset.objects.get(pk=by_region.pk), database_now())
    set_paused(by_region, False, user=alice)
    assert missed_keys is not None
    assert missed_keys.count == 2
    assert missed_by(Asset.objects.get(pk=by_region.pk), database_now()) == missed_keys


def test_an_asset_that_is_not_partitioned_is_missed_as_a_whole(
    gateway: Gateway, alice: User
) -> None:
    hourly = asset("hourly", HOURLY)
    total = scheduled("total", by("hourly"), since=BEGAN)
    set_paused(total, True, user=alice)
    assert missed(total) is None
    write(hourly, "2024-07-01T00:00Z", gateway, alice)
    missed_keys = missed_by(Asset.objects.get(pk=total.pk), database_now())
    assert missed_keys is not None
    assert (missed_keys.count, missed_keys.first, missed_keys.form) == (1, "", "")


def test_many_writes_cost_as_many_statements_as_few(
    daily: Asset, gateway: Gateway, alice: User
) -> None:
    write_hours("2024-07-02", gateway, alice)
    with CaptureQueriesContext(connection) as few:
        assert missed(daily) == "2024-07-02"
    write_hours("2024-07-03..2024-07-12", gateway, alice)
    with CaptureQueriesContext(connection) as many:
        assert missed(daily) == "2024-07-02..2024-07-12"
    assert len(many) == len(few)


def scored_with_a_waiting_day(
    gateway: Gateway, user: User, definition: PartitionByInterval | None = DAILY
) -> tuple[Asset, Asset]:
    """Return a paused asset of which a day waits for a fresh model, and the model."""
    a, model = asset("a", DAILY), asset("model")
    scored = scheduled(
        "scored", all_of(by("a"), fresh("model", timedelta(days=1))), definition, since=BEGAN
    )
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, user)
    set_paused(scored, True, user=user)
    Schedule.objects.filter(producer=scored.producer).update(paused_at=at(2024, 7, 2, 2))
    return scored, model


def unpaused_at(of: Asset, when: datetime, user: User) -> None:
    """Unpause an asset at a moment."""
    set_paused(of, False, user=user)
    Schedule.objects.filter(producer=of.producer).update(unpaused_at=when)


@pytest.mark.parametrize(("definition", "day"), [(DAILY, "2024-07-01"), (None, "")])
def test_a_partition_whose_fresh_asset_is_written_during_the_pause_is_missed_until_the_next_write(
    gateway: Gateway, alice: User, definition: PartitionByInterval | None, day: str
) -> None:
    scored, model = scored_with_a_waiting_day(gateway, alice, definition)
    assert missed(scored, at(2024, 7, 2, 3)) is None, "the model is old"
    written(model, "", at(2024, 7, 2, 4), gateway, alice)
    assert waiting(scored) == []
    assert missed(scored, at(2024, 7, 2, 5)) == day
    unpaused_at(scored, at(2024, 7, 2, 6), alice)
    look(at(2024, 7, 2, 7))
    assert waiting(scored) == [], "there is no catch-up"
    assert missed(scored, at(2024, 7, 2, 8)) == day
    written(model, "", at(2024, 7, 2, 9), gateway, alice)
    assert waiting(scored) == [day]
    assert missed(scored, at(2024, 7, 2, 10)) is None


def test_a_partition_whose_fresh_asset_a_backfill_writes_during_the_pause_is_not_missed(
    gateway: Gateway, alice: User
) -> None:
    scored, model = scored_with_a_waiting_day(gateway, alice)
    written(model, "", at(2024, 7, 2, 4), gateway, alice)
    Run.objects.filter(asset=model).update(trigger=Trigger.BACKFILL)
    assert missed(scored, at(2024, 7, 2, 5)) is None


def test_a_failing_schedule_with_new_code_keeps_the_waiting_partitions_of_a_pause(
    gateway: Gateway, alice: User
) -> None:
    scored, model = scored_with_a_waiting_day(gateway, alice)
    Schedule.objects.filter(producer=scored.producer).update(retry_at=at(2024, 7, 2, 3), failures=1)
    assert scored.producer is not None
    store_schedules([scored.producer], now=at(2024, 7, 2, 3))
    written(model, "", at(2024, 7, 2, 4), gateway, alice)
    assert missed(scored, at(2024, 7, 2, 5)) == "2024-07-01"


def test_writes_that_waited_for_a_worker_when_the_asset_was_paused_are_missed(
    daily: Asset, gateway: Gateway, alice: User
) -> None:
    set_paused(daily, False, user=alice)
    hourly = Asset.objects.get(name="hourly")
    write(hourly, "2024-07-02", gateway, alice)
    written_before(hourly, "2024-07-02", timedelta(hours=2))
    set_paused(daily, True, user=alice)
    process_outbox(database_now())
    assert missed(daily) == "2024-07-02"


def test_a_pause_of_a_schedule_that_owes_nothing_begins_with_the_pause(
    daily: Asset, gateway: Gateway, alice: User
) -> None:
    write_hours("2024-07-02", gateway, alice)
    written_before(Asset.objects.get(name="hourly"), "2024-07-02", timedelta(hours=2))
    Outbox.objects.create(
        run=Run.objects.earliest("id"), failures=3, not_before=database_now() + timedelta(hours=1)
    )
    Outbox.objects.update(created_at=database_now() - timedelta(days=1))
    set_paused(daily, False, user=alice)
    set_paused(daily, True, user=alice)
    assert missed(daily) is None
