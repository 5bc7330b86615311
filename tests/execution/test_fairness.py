"""The order of runs: no run that cannot start keeps a ready run waiting."""

from collections import Counter
from datetime import timedelta
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.attempt import attempts
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import (
    Asset,
    Gateway,
    Queue,
    Run,
    RunState,
)
from tests.execution.conftest import make_gateway
from tests.factories import DAILY_2013, asset
from tests.queued_runs import add_runs, queue_runs


def sent() -> Counter[str]:
    """Count the dispatched runs of each asset."""
    rows = Run.objects.filter(state=RunState.DISPATCHED)
    return Counter(rows.values_list("asset__name", flat=True))


def limited(name: str, **options: Any) -> Asset:
    return asset(name, DAILY_2013, options=options)


def test_five_hundred_runs_of_one_asset_keep_no_other_waiting(gateway: Gateway) -> None:
    many, single = limited("many"), limited("one")
    queue_runs(many, 500)
    queue_runs(single, 1)
    dispatch()
    assert sent() == {"many": 5, "one": 1}


def test_five_hundred_requests_for_one_asset_keep_no_other_waiting(gateway: Gateway) -> None:
    many, single = limited("many"), limited("one")
    for _ in range(500):
        queue_runs(many, 1)
    queue_runs(single, 1)
    # It was heard of while all these were written down.
    Gateway.objects.update(last_seen=timezone.now())
    dispatch()
    assert sent() == {"many": 5, "one": 1}


def test_requests_for_one_asset_take_turns(gateway: Gateway) -> None:
    flights = limited("raw_flights")
    large, small = queue_runs(flights, 50), queue_runs(flights, 50)
    dispatch()
    assert large.runs.filter(state=RunState.DISPATCHED).count() == 3
    assert small.runs.filter(state=RunState.DISPATCHED).count() == 3


def test_who_has_runs_going_waits_for_who_has_none(gateway: Gateway) -> None:
    queue_runs(limited("early"), 50)
    dispatch()
    queue_runs(limited("late"), 50)
    Gateway.objects.update(slots=5)
    dispatch()
    assert sent() == {"early": 6, "late": 4}


def test_the_limit_of_an_asset_holds_over_all_that_asks_for_it(gateway: Gateway) -> None:
    make_gateway("backfill")
    flights = limited("raw_flights", max_active_runs=2)
    for _ in range(3):
        queue_runs(flights, 5)
    queue_runs(flights, 5, Queue.BACKFILL)
    assert dispatch() == 2
    assert dispatch() == 0
    run = Run.objects.filter(state=RunState.DISPATCHED).first()
    assert run
    assert attempts.begin(run.pk, gateway)
    assert dispatch() == 0


def test_the_version_in_force_says_the_limit(gateway: Gateway) -> None:
    flights = limited("raw_flights", max_active_runs=1)
    queue_runs(flights, 5)
    assert dispatch() == 1
    assert flights.producer
    version = flights.producer.current_version
    assert version
    version.definition |= {"max_active_runs": 3}
    version.save()
    assert dispatch() == 2


def test_runs_at_their_assets_limit_stand_before_nobody(gateway: Gateway) -> None:
    queue_runs(limited("limited", max_active_runs=1), 500)
    queue_runs(limited("free"), 50)
    dispatch()
    assert sent() == {"limited": 1, "free": 5}
    Gateway.objects.update(slots=5)
    dispatch()
    assert sent() == {"limited": 1, "free": 9}


def test_within_one_group_an_asset_at_its_limit_stands_before_nobody(gateway: Gateway) -> None:
    group = queue_runs(limited("limited", max_active_runs=1, priority=3), 50, max_active_runs=3)
    add_runs(group, limited("free"), 50)
    dispatch()
    dispatch()
    assert sent() == {"limited": 1, "free": 2}


def test_runs_that_are_too_early_stand_before_nobody(gateway: Gateway) -> None:
    flights = limited("raw_flights", max_active_runs=2)
    group = queue_runs(flights, 500, max_active_runs=2)
    Run.objects.update(not_before=timezone.now() + timedelta(minutes=1))
    add_runs(group, flights, 3)
    assert dispatch() == 2
    assert not Run.objects.filter(state=RunState.DISPATCHED, not_before__isnull=False).exists()


def test_a_retry_that_waits_for_its_time_takes_nothing_of_a_limit(gateway: Gateway) -> None:
    flights = limited("raw_flights", max_active_runs=1)
    queue_runs(flights, 2)
    first = Run.objects.order_by("id").first()
    assert first
    Run.objects.filter(pk=first.pk).update(not_before=timezone.now() + timedelta(minutes=1))
    assert dispatch() == 1
    Run.objects.filter(pk=first.pk).update(not_before=timezone.now())
    assert dispatch() == 0


def test_paused_runs_stand_before_nobody(gateway: Gateway) -> None:
    flights = limited("raw_flights", max_active_runs=3)
    queue_runs(flights, 500, paused=True)
    queue_runs(flights, 5)
    assert dispatch() == 3


def test_an_asset_of_higher_priority_goes_first_whoever_asks(alice: User, gateway: Gateway) -> None:
    queue_runs(limited("usual"), 50)
    urgent = limited("urgent", priority=5)
    materialize(MaterializeRequest(asset=urgent, selection="2013-01-01..2013-01-04"), user=alice)
    dispatch()
    assert sent() == {"urgent": 4, "usual": 2}


def test_scheduled_runs_and_backfills_take_no_slot_from_each_other(gateway: Gateway) -> None:
    make_gateway("backfill", slots=2)
    queue_runs(limited("scheduled"), 500)
    dispatch()
    queue_runs(limited("backfilled"), 500, Queue.BACKFILL)
    dispatch()
    assert sent() == {"scheduled": 6, "backfilled": 4}
    Run.objects.all().delete()
    queue_runs(limited("more_backfilled"), 500, Queue.BACKFILL)
    dispatch()
    queue_runs(limited("more_scheduled"), 500)
    dispatch()
    assert sent() == {"more_backfilled": 4, "more_scheduled": 6}


def test_neither_queue_always_gets_what_an_asset_allows(gateway: Gateway) -> None:
    make_gateway("backfill")
    flights = limited("raw_flights", max_active_runs=1)
    queue_runs(flights, 60)
    queue_runs(flights, 60, Queue.BACKFILL)
    queue_counts = Counter[str]()
    for _ in range(60):
        # Heard of, however slow the machine is.
        Gateway.objects.update(last_seen=timezone.now())
        dispatch()
        run = Run.objects.get(state=RunState.DISPATCHED)
        queue_counts[run.queue] += 1
        run.delete()
    assert min(queue_counts["scheduled"], queue_counts["backfill"]) > 5


def test_each_queue_costs_one_choice_whatever_is_queued(gateway: Gateway) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as statements:
            assert dispatch()
        return len(statements)

    flights = limited("raw_flights")
    queue_runs(flights, 1)
    few = statements()
    for number in range(20):
        queue_runs(limited(f"a{number}"), 30)
    assert statements() == few
