"""Alerts and the feed of events for assets that one function makes together."""

from __future__ import annotations

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from accounts_app.models import User
from assets_app.execution.attempt import ending
from assets_app.execution.attempt.ending import Failure
from assets_app.models import Asset, Gateway
from assets_app.scheduling.recording import record_truncation
from slicewise_server.alerts import services
from slicewise_server.alerts.matching import match_events
from slicewise_server.alerts.messages import message
from slicewise_server.alerts.models import Delivery
from slicewise_server.events.feed import publish_events
from slicewise_server.events.models import Event
from tests.attempts import begun
from tests.factories import DAILY_2013, asset, together

pytestmark = pytest.mark.django_db


@pytest.fixture
def outlets(db: None) -> list[Asset]:
    return together("split", ["train", "validate"], DAILY_2013)


def fail(of: Asset, alice: User, gateway: Gateway) -> Event:
    """Fail a run of the asset and match the event with all rules."""
    ending.fail(begun(of, alice, gateway).row, Failure(error="ValueError: no rows"))
    publish_events(timezone.now())
    match_events(timezone.now())
    return Event.objects.get(kind="run_failed")


def test_a_rule_for_any_of_the_assets_is_told_once(
    outlets: list[Asset], alice: User, admin: User, gateway: Gateway
) -> None:
    channel, _key = services.create_channel(
        "hook", "webhook", address="https://hooks.example/x", user=admin
    )
    Asset.objects.filter(name="validate").update(tags=["daily"], owners=["ann"])
    filters = {
        "first": {"assets": ["train"]}, "second": {"assets": ["validate"]},
        "both": {"assets": ["train", "validate"]}, "tag": {"tags": ["daily"]},
        "owner": {"owners": ["ann"]}, "other": {"assets": ["flights"]}, "all": {},
    }  # fmt: skip
    for name, fields in filters.items():
        services.save_rule(None, {"name": name, "channel": channel, **fields}, user=admin)
    event = fail(outlets[0], alice, gateway)
    assert event.detail["assets"] == ["train", "validate"]
    told = sorted(Delivery.objects.values_list("rule_name", flat=True))
    assert told == ["all", "both", "first", "owner", "second", "tag"]
    body = Delivery.objects.filter(rule_name="second").get().body
    assert body is not None
    assert "materializes train, validate" in body["text"]


def test_the_feed_finds_an_event_by_each_of_the_assets(
    outlets: list[Asset], alice: User, gateway: Gateway, api: APIClient
) -> None:
    fail(outlets[0], alice, gateway)
    for names, count in (("train", 1), ("validate", 1), ("flights", 0)):
        page = api.get("/api/v1/events/", {"asset": names}).json()
        assert len(page["results"]) == count, names
    both = api.get("/api/v1/events/?asset=train&asset=validate").json()
    assert len(both["results"]) == 1


def test_an_asset_that_is_made_alone_has_no_list(alice: User, gateway: Gateway) -> None:
    assert "assets" not in fail(asset("flights", DAILY_2013), alice, gateway).detail


def test_a_truncated_schedule_names_all_assets(outlets: list[Asset]) -> None:
    record_truncation(outlets[0], DAILY_2013.select("2013-01"), queued=5, now=timezone.now())
    assert Event.objects.get().detail["assets"] == ["train", "validate"]
    facts = "31 partitions, 2013-01-01 to 2013-01-31, not examined; the newest 5 were examined."
    assert facts in message(Event.objects.all())["text"]
