"""Marks of partitions that wait for a moment of `After`, or for a fresh asset."""

from datetime import timedelta

import pytest

from accounts_app.models import User
from assets_app.catalogue.timetables import store_schedules
from assets_app.models import Asset, Gateway, ProducerVersion, Run, Trigger
from slicewise import PartitionByInterval
from tests.factories import asset
from tests.scheduling.beats import look, written
from tests.scheduling.scheduled_assets import (
    after,
    all_of,
    any_of,
    at,
    begin,
    by,
    fail,
    finish,
    fresh,
    make_all,
    scheduled,
    waiting,
)

DAILY = PartitionByInterval("@daily", start="2024-01-01")
BEGAN = at(2024, 7, 1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
pytestmark = pytest.mark.django_db


def scored_by_an_old_model(user: User, gateway: Gateway) -> tuple[Asset, Asset]:
    """Return an asset with a queued day that is late, and the model that is too old."""
    a, model = asset("a", DAILY), asset("model")
    alone = all_of(by("a"), after(6 * HOUR, remake=True))
    scored = scheduled(
        "scored", any_of(all_of(by("a"), fresh("model", DAY)), alone), DAILY, since=BEGAN
    )
    written(model, "", at(2024, 7, 1), gateway, user)
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, user)
    look(at(2024, 7, 2, 6))
    assert waiting(scored) == ["2024-07-01"]
    return scored, model


def test_a_model_that_comes_during_the_late_run_makes_the_partition_again_once(
    alice: User, gateway: Gateway
) -> None:
    scored, model = scored_by_an_old_model(alice, gateway)
    attempt = begin(Run.objects.get(asset=scored), gateway)
    written(model, "", at(2024, 7, 2, 7), gateway, alice)
    finish(attempt)
    look(at(2024, 7, 2, 8))
    assert waiting(scored) == ["2024-07-01"]
    make_all(scored, gateway)
    written(model, "", at(2024, 7, 2, 9), gateway, alice)
    assert waiting(scored) == []


def test_a_model_that_the_late_run_has_read_makes_nothing_again(
    alice: User, gateway: Gateway
) -> None:
    scored, model = scored_by_an_old_model(alice, gateway)
    written(model, "", at(2024, 7, 2, 7), gateway, alice)
    make_all(scored, gateway)
    look(at(2024, 7, 2, 8))
    assert waiting(scored) == []


def test_a_shorter_span_queues_a_window_once(alice: User, gateway: Gateway) -> None:
    a = asset("a", DAILY)
    patient = scheduled("patient", all_of(by("a"), after(15 * HOUR)), DAILY, since=BEGAN)
    look(at(2024, 7, 1, 15))
    written(a, "2024-07-01", at(2024, 7, 2, 1), gateway, alice)
    producer = patient.producer
    assert producer is not None
    assert producer.current_version is not None
    definition = {
        **producer.current_version.definition,
        "schedule": all_of(by("a"), after(6 * HOUR)),
    }
    ProducerVersion.objects.filter(pk=producer.current_version.pk).update(definition=definition)
    Asset.objects.filter(pk=patient.pk).update(schedule=definition["schedule"])
    producer.refresh_from_db()
    store_schedules([producer], now=at(2024, 7, 2, 13))
    look(at(2024, 7, 2, 13))
    assert Run.objects.get(asset=patient).trigger == Trigger.SCHEDULE
    fail(Run.objects.get(asset=patient), gateway)
    look(at(2024, 7, 2, 15))
    look(at(2024, 7, 2, 16))
    assert waiting(patient) == []
