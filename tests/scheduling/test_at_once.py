"""Schedules that are declared anew while somebody pauses them, or while they tick."""

import threading
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from django.db import transaction

from assets_app.catalogue import timetables
from assets_app.catalogue.services import set_paused
from assets_app.models import Asset, Schedule, ScheduleTick
from assets_app.scheduling.ticking import handle_ticks
from slicewise import PartitionByInterval
from tests.cast import person
from tests.execution.test_at_once import elsewhere
from tests.scheduling.scenes import at, cron, scheduled, waiting

DAILY = PartitionByInterval("@daily", start="2024-01-01")
pytestmark = pytest.mark.django_db(transaction=True)


def declare_anew(of: Asset, meanwhile: Callable[[], Any]) -> None:
    """Change its schedule; something happens when what is known of it has been read."""
    assert of.producer is not None
    assert of.producer.current_version is not None
    of.producer.current_version.definition["schedule"] = cron("@hourly")
    of.producer.current_version.save()
    others: list[threading.Thread] = []
    read = timetables._paused_producers

    def read_and_wait(*args: Any) -> set[int]:
        found = read(*args)
        others.append(elsewhere(meanwhile))
        others[0].join(1)
        return found

    with patch.object(timetables, "_paused_producers", read_and_wait), transaction.atomic():
        timetables.store_schedules([of.producer], now=at(2024, 7, 1))
    others[0].join()


def test_what_is_paused_meanwhile_stays_paused() -> None:
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
