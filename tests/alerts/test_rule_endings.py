"""A rule that changes or ends sends the events until then as the rule was before."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import User
from assets_app.models import Asset
from slicewise_server.alerts import matching, rule_endings, services
from slicewise_server.alerts.declared_rules import SyncFollower, store_declared_rules
from slicewise_server.alerts.matching import match_events
from slicewise_server.alerts.models import AlertRule, Channel, Delivery
from slicewise_server.events.feed import publish_events, publish_first
from slicewise_server.events.models import Event
from tests.factories import asset

pytestmark = pytest.mark.django_db
FAILED = {"kinds": ["run_failed"], "to": "hook", "gather_seconds": 30}
Change = Callable[[AlertRule, User], Any]


def set_kinds(alert_rule: AlertRule, user: User) -> AlertRule:
    return services.save_rule(alert_rule, {"kinds": ["worker_lost"]}, user=user)


def pause(alert_rule: AlertRule, user: User) -> AlertRule:
    return services.save_rule(alert_rule, {"active": False}, user=user)


def resume(alert_rule: AlertRule, user: User) -> AlertRule:
    return services.save_rule(alert_rule, {"active": True}, user=user)


def delete(alert_rule: AlertRule, user: User) -> None:
    services.delete_rule(alert_rule, user=user)


CHANGES = [pytest.param(change, id=change.__name__) for change in (set_kinds, pause, delete)]


@pytest.fixture
def channel(admin: User) -> Channel:
    address = "https://hooks.example/x"
    return services.create_channel("hook", "webhook", address=address, user=admin)[0]


@pytest.fixture
def rule(channel: Channel, admin: User) -> AlertRule:
    return services.save_rule(None, {"name": "rule", "channel": channel}, user=admin)


def happen(*assets: str) -> None:
    """Write failures that have no position in the feed yet."""
    for name in assets:
        Event.objects.create(kind="run_failed", asset=name)


def match() -> None:
    publish_events(timezone.now())
    match_events(timezone.now())


def told() -> list[str]:
    """List the assets of all deliveries, the earliest first."""
    bodies = Delivery.objects.order_by("id").values_list("body", flat=True)
    return [body["event"]["asset"] for body in bodies if body is not None]


@pytest.mark.parametrize("change", CHANGES)
def test_an_event_that_has_no_position_yet_belongs_to_the_rule_before_the_change(
    rule: AlertRule, admin: User, change: Change
) -> None:
    happen("sales")
    change(rule, admin)
    match()
    assert told() == ["sales"]


def test_an_event_that_has_no_position_yet_is_before_a_new_rule(
    channel: Channel, admin: User
) -> None:
    happen("before")
    services.save_rule(None, {"name": "rule", "channel": channel}, user=admin)
    happen("after")
    match()
    assert told() == ["after"]


def test_an_event_of_a_pause_is_not_sent_afterwards_though_it_has_no_position_yet(
    rule: AlertRule, admin: User
) -> None:
    pause(rule, admin)
    happen("paused")
    resume(rule, admin)
    happen("resumed")
    match()
    assert told() == ["resumed"]


@pytest.mark.parametrize("by_follower", [False, True], ids=["by a sync", "by a new worker"])
def test_an_event_that_has_no_position_yet_belongs_to_the_declared_rule_before_the_change(
    channel: Channel, *, by_follower: bool
) -> None:
    asset("sales", alerts=[FAILED])
    store_declared_rules()
    AlertRule.objects.update(gather_seconds=0)
    happen("sales")
    Asset.objects.update(active=False)
    asset("stock", alerts=[FAILED | {"gather_seconds": 60}])
    if by_follower:
        # As a worker begins: no event of the time without the worker has a position.
        match_events(timezone.now())
        SyncFollower(seconds=0).look()
    else:
        store_declared_rules()
    match()
    assert told() == ["sales"]
    assert list(AlertRule.objects.values_list("assets", flat=True)) == [["stock"]]


@pytest.mark.parametrize("change", CHANGES)
def test_a_rule_whose_events_cannot_be_matched_can_be_changed(
    rule: AlertRule, admin: User, change: Change, caplog: pytest.LogCaptureFixture
) -> None:
    AlertRule.objects.filter(pk=rule.pk).update(assets=["sales"], tags=7)
    happen("sales")
    publish_events(timezone.now())
    before = AlertRule.objects.get().position
    change(rule, admin)
    assert told() == []
    assert "messages of a rule not ended" in caplog.text
    if change is delete:
        assert not AlertRule.objects.exists()
    else:
        assert AlertRule.objects.get().position == before


@pytest.mark.parametrize("change", CHANGES)
def test_a_message_whose_events_cannot_be_read_is_closed_without_a_list(
    admin: User, change: Change
) -> None:
    mail, _ = services.create_channel("mail", "message", address="json://localhost", user=admin)
    gathering = services.save_rule(
        None, {"name": "mail", "channel": mail, "assets": ["sales"]}, user=admin
    )
    happen("sales")
    match()
    AlertRule.objects.update(tags=7)
    change(gathering, admin)
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.event_count) == ("waiting", 1)
    assert delivery.body is not None
    assert "an error prevented the reading" in delivery.body["text"]


def test_a_change_reads_a_bounded_number_of_events_and_the_changed_rule_gets_the_others(
    rule: AlertRule, admin: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rule_endings, "_AT_ONCE", 1)
    monkeypatch.setattr(rule_endings, "_MOST_MATCHED", 2)
    happen("a", "b", "c")
    publish_events(timezone.now())
    services.save_rule(rule, {"assets": ["c"]}, user=admin)
    assert told() == ["a", "b"]
    assert "a changed rule has unread events" in caplog.text
    match()
    assert told() == ["a", "b", "c"]


def test_a_message_of_too_many_events_is_closed_without_a_list(
    admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail, _ = services.create_channel("mail", "message", address="json://localhost", user=admin)
    gathering = services.save_rule(None, {"name": "mail", "channel": mail}, user=admin)
    happen("a", "b", "c")
    match()
    monkeypatch.setattr(rule_endings, "_MOST_LISTED", 2)
    delete(gathering, admin)
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.event_count) == ("waiting", 3)
    assert delivery.body is not None
    assert delivery.body["title"] == "Slicewise: 3 events"
    assert "The events of this message are not listed" in delivery.body["text"]


def test_an_event_without_a_position_sets_no_rule_back_to_the_beginning(
    rule: AlertRule, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    happen("sales")
    match()
    position = AlertRule.objects.get().position
    happen("stock")
    publish_events(timezone.now())
    monkeypatch.setattr(matching, "events_after", lambda _: Event.objects.filter(position=None))
    happen("lost")
    match_events(timezone.now())
    assert AlertRule.objects.get().position == position > 0
    assert "has no position" in caplog.text


def test_a_deletion_detaches_messages_in_batches_before_positions_are_held_back(
    rule: AlertRule, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_endings, "_DETACHED_AT_ONCE", 2)
    happen("a", "b", "c", "d", "e")
    match()
    Delivery.objects.filter(pk=Delivery.objects.earliest("pk").pk).update(state="delivered")
    with CaptureQueriesContext(connection) as statements:
        delete(rule, admin)
    texts = [statement["sql"] for statement in statements.captured_queries]
    detachments = [
        number
        for number, text in enumerate(texts)
        if text.startswith('UPDATE "alerts_delivery" SET "rule_id" = NULL')
    ]
    (lock,) = (number for number, text in enumerate(texts) if "pg_advisory_xact_lock" in text)
    assert sum(number < lock for number in detachments) == 3
    assert told() == ["a", "b", "c", "d", "e"]
    assert not Delivery.objects.exclude(rule=None).exists()
    assert set(Delivery.objects.values_list("rule_name", flat=True)) == {"rule"}


@pytest.mark.django_db(transaction=True)
def test_a_change_waits_for_positions_that_are_being_given(rule: AlertRule, admin: User) -> None:
    happen("sales")

    def change() -> None:
        try:
            delete(rule, admin)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            publish_first(1)
            deletion = threads.submit(change)
            with pytest.raises(TimeoutError):
                deletion.result(1)
            # The rule is not locked meanwhile: matching goes on.
            assert AlertRule.objects.select_for_update(nowait=True).exists()
        deletion.result(120)
    assert told() == ["sales"]
