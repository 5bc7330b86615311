"""Rules: the events that a channel is told of, each once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from accounts_app.models import User
from slicewise_server.alerts import services
from slicewise_server.alerts.matching import match_events
from slicewise_server.alerts.messages import message
from slicewise_server.alerts.models import AlertRule, Channel, Delivery
from slicewise_server.events.feed import publish_events
from slicewise_server.events.models import Event
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest
from tests.factories import asset

pytestmark = pytest.mark.django_db
HOOK = "https://hooks.example/x"


@pytest.fixture
def channel(admin: User) -> Channel:
    return services.create_channel("hook", "webhook", address=HOOK, user=admin)[0]


def rule(channel: Channel, admin: User, name: str = "rule", **fields: Any) -> AlertRule:
    return services.save_rule(None, {"name": name, "channel": channel, **fields}, user=admin)


def happen(asset: str = "", kind: str = "run_failed", **fields: Any) -> Event:
    event = Event.objects.create(kind=kind, asset=asset, **fields)
    publish_events(timezone.now())
    match_events(timezone.now())
    return event


def told() -> list[str]:
    """List the assets of all deliveries, the earliest first."""
    bodies = Delivery.objects.order_by("id").values_list("body", flat=True)
    return [body["event"]["asset"] for body in bodies if body is not None]


def title_of(delivery: Delivery) -> str:
    """Return the title of a message that is closed."""
    assert delivery.body is not None
    return str(delivery.body["title"])


def test_a_rule_begins_with_the_next_event(channel: Channel, admin: User) -> None:
    happen("before")
    rule(channel, admin)
    happen("after")
    match_events(timezone.now())
    assert told() == ["after"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ["sales", "stock", "", "unknown"]),
        ({"assets": ["sales", "unknown"]}, ["sales", "unknown"]),
        ({"groups": ["shop"]}, ["sales"]),
        ({"tags": ["daily", "x"]}, ["stock"]),
        ({"owners": ["ann"]}, ["sales", "stock"]),
        ({"groups": ["shop"], "tags": ["daily"]}, ["sales", "stock"]),
        ({"groups": [""]}, []),
    ],
)
def test_a_rule_is_for_assets_that_it_names_in_any_way(
    channel: Channel, admin: User, fields: dict[str, Any], expected: Sequence[str]
) -> None:
    asset("sales", group="shop", owners=["ann", "bob"])
    asset("stock", tags=["daily"], owners=["ann"])
    rule(channel, admin, **fields)
    for name in ("sales", "stock", "", "unknown"):
        happen(name)
    assert told() == list(expected)


def test_a_rule_is_for_its_kinds(channel: Channel, admin: User) -> None:
    rule(channel, admin, kinds=["worker_lost", "run_recovered"])
    happen("a")
    happen("b", kind="run_recovered")
    assert told() == ["b"]


def test_failed_runs_of_backfills_are_told_only_if_asked(channel: Channel, admin: User) -> None:
    quiet = rule(channel, admin)
    happen("a", backfill_id=7)
    assert told() == []
    services.save_rule(quiet, {"backfill_runs": True}, user=admin)
    happen("b", backfill_id=7)
    assert told() == ["b"]


def test_an_inactive_rule_tells_nothing_of_its_pause(channel: Channel, admin: User) -> None:
    paused = rule(channel, admin)
    services.save_rule(paused, {"active": False}, user=admin)
    happen("a")
    services.save_rule(paused, {"active": True}, user=admin)
    happen("b")
    assert told() == ["b"]


@pytest.mark.parametrize("kind", ["validation_failed", "validation_warned"])
def test_validations_of_backfills_are_told_only_if_asked(
    channel: Channel, admin: User, kind: str
) -> None:
    rule(channel, admin)
    happen("a", kind=kind, backfill_id=7)
    assert told() == []
    happen("b", kind=kind)
    assert told() == ["b"]


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "run_exploded", "asset": "sales"},
        {"kind": "backfill_failed", "backfill_id": 7},
        {"kind": "backfill_failed", "asset": "sales", "detail": {"partitions": {}}},
        {"kind": "schedule_truncated", "asset": "sales", "detail": {"partitions": "x"}},
        {"kind": "run_recovered", "asset": "sales", "detail": []},
    ],
)
def test_an_event_that_cannot_be_worded_keeps_no_other_waiting(
    channel: Channel, admin: User, settings: Any, fields: dict[str, Any]
) -> None:
    settings.SLICEWISE_URL = "https://slicewise.example"
    rule(channel, admin)
    Event.objects.create(**fields)
    happen("stock")
    assert told() == [fields.get("asset", ""), "stock"]
    body = Delivery.objects.earliest("id").body
    assert body is not None
    assert fields["kind"].split("_")[0] in body["text"]


def test_a_backfill_without_a_page_is_told_of(settings: Any) -> None:
    settings.SLICEWISE_URL = "https://slicewise.example"
    lost = Event(kind="backfill_failed", asset="sales", error="ValueError: x")
    assert message([lost])["text"] == "sales: 1 backfill failed in part or whole: ValueError: x"


def test_a_run_that_failed_in_part_names_its_first_failed_partitions() -> None:
    days = [f"2013-01-{day:02}" for day in range(1, 11)]
    detail = {"partitions": 1_500, "failed": 1_200, "failed_partitions": days, "selection": "2013"}
    failed = Event(kind="run_failed", asset="sales", detail=detail)
    last_line = message([failed])["text"].splitlines()[-1]
    assert last_line == f"  1,200 of 1,500 partitions failed: {', '.join(days)} and 1,190 more"


def test_an_error_of_one_rule_keeps_no_other_waiting(
    channel: Channel, admin: User, caplog: pytest.LogCaptureFixture
) -> None:
    broken = rule(channel, admin, "broken", assets=["sales"])
    rule(channel, admin, "whole")
    AlertRule.objects.filter(pk=broken.pk).update(tags=7)
    happen("sales")
    assert list(Delivery.objects.values_list("rule_name", flat=True)) == ["whole"]
    assert "events not matched" in caplog.text
    AlertRule.objects.filter(pk=broken.pk).update(tags=[])
    match_events(timezone.now())
    assert set(Delivery.objects.values_list("rule_name", flat=True)) == {"broken", "whole"}


def test_an_event_is_worded_once_for_all_rules(
    channel: Channel, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    worded: list[Event] = []

    def noted(events: Sequence[Event]) -> dict[str, Any]:
        worded.extend(events)
        return message(events)

    monkeypatch.setattr("slicewise_server.alerts.matching.message", noted)
    for number in range(3):
        rule(channel, admin, f"rule_{number}")
    happen("sales")
    assert (len(worded), Delivery.objects.count()) == (1, 3)


def test_a_rule_for_owners_hears_of_backfills_of_several_assets(
    channel: Channel, admin: User
) -> None:
    asset("sales", owners=["ann"])
    asset("stock", owners=["bob"])
    rule(channel, admin, owners=["ann"])
    for names in (["stock"], ["stock", "sales"], ["unknown"]):
        happen(kind="backfill_failed", backfill_id=7, detail={"assets": names})
    (delivery,) = Delivery.objects.all()
    assert delivery.body is not None
    assert delivery.body["event"]["detail"]["assets"] == ["stock", "sales"]


def test_a_rule_for_assets_hears_of_workers_only_if_it_names_the_kind(
    channel: Channel, admin: User
) -> None:
    rule(channel, admin, "quiet", assets=["sales"])
    rule(channel, admin, "named", assets=["sales"], kinds=["worker_lost", "backfill_failed"])
    happen(kind="worker_lost", worker="w1")
    happen(kind="bundle_broken", bundle="trials")
    assert list(Delivery.objects.values_list("rule_name", flat=True)) == ["named"]


def test_a_change_of_a_rule_closes_its_open_message(admin: User) -> None:
    mail, _ = services.create_channel("mail", "message", address="json://localhost", user=admin)
    gathering = rule(mail, admin, gather_seconds=60)
    happen("sales")
    services.save_rule(gathering, {"kinds": ["worker_lost"]}, user=admin)
    delivery = Delivery.objects.get()
    assert (delivery.state, title_of(delivery)) == ("waiting", "Slicewise: 1 run failed (sales)")


def test_a_message_whose_assets_moved_meanwhile_is_not_empty(admin: User) -> None:
    mail, _ = services.create_channel("mail", "message", address="json://localhost", user=admin)
    sales = asset("sales", group="shop")
    rule(mail, admin, gather_seconds=60, groups=["shop"])
    happen("sales")
    type(sales).objects.update(group="other")
    match_events(timezone.now() + timedelta(seconds=61))
    delivery = Delivery.objects.get()
    assert (delivery.state, title_of(delivery)) == ("waiting", "Slicewise: 1 event")
    assert delivery.body is not None
    assert delivery.body["text"]


@pytest.mark.parametrize("kind", ["backfill_succeeded", "backfill_canceled"])
def test_errors_of_runs_are_listed_only_for_failed_backfills(kind: str) -> None:
    counts = {"total": 2, "succeeded": 2, "failed": 0, "canceled": 0, "skipped": 0}
    Event.objects.create(kind="run_failed", asset="sales", backfill_id=7, error="ValueError: day")
    ended = Event(kind=kind, asset="sales", backfill_id=7, detail={"partitions": counts})
    assert "ValueError" not in message([ended])["text"]


def test_events_of_a_while_are_one_message_with_a_fixed_text(admin: User) -> None:
    mail, _ = services.create_channel("mail", "message", address="json://localhost", user=admin)
    gathering = rule(mail, admin, gather_seconds=60)
    for name in ("a", "b", "a"):
        happen(name)
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.event_count, delivery.body) == ("gathering", 3, None)
    match_events(timezone.now() + timedelta(seconds=61))
    delivery.refresh_from_db()
    assert delivery.state == "waiting"
    assert title_of(delivery) == "Slicewise: 3 runs failed"
    happen("c")
    assert sorted(Delivery.objects.values_list("state", flat=True)) == ["gathering", "waiting"]
    services.delete_rule(gathering, user=admin)
    last = Delivery.objects.latest("id")
    assert (last.state, title_of(last)) == ("waiting", "Slicewise: 1 run failed (c)")


def test_a_failed_backfill_is_one_message_with_its_errors() -> None:
    counts = {"total": 10_000, "succeeded": 0, "failed": 10_000, "canceled": 0, "skipped": 0}
    Event.objects.bulk_create(
        Event(kind="run_failed", asset="sales", backfill_id=7, error=f"ValueError: day {number}")
        for number in range(10_000)
    )
    ended = Event.objects.create(
        kind="backfill_failed",
        asset="sales",
        backfill_id=7,
        detail={"name": "backfill_sales", "state": "failed", "partitions": counts},
    )
    text = message([ended])["text"]
    assert text.splitlines() == [
        "sales: 1 backfill failed in part or whole",
        "  10,000 failed of 10,000 partitions",
        "  10,000 runs failed: ValueError: day 9999",
    ]


def test_a_message_of_many_errors_is_short() -> None:
    events = [
        Event(kind="run_failed", asset=f"asset_{number}", error=f"Error{'x' * number}")
        for number in range(50)
    ]
    lines = message(events)["text"].splitlines()
    assert len(lines) == 11
    assert lines[-1] == "40 more events of other kinds or with other errors."


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"kinds": ["run_fialed"]}, "kinds"),
        ({"gather_seconds": 3601}, "gather_seconds"),
        ({"name": "rule"}, "name"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_field(
    channel: Channel, admin: User, fields: dict[str, Any], field: str
) -> None:
    rule(channel, admin)
    with pytest.raises(InvalidRequest) as refused:
        rule(channel, admin, **{"name": "other", **fields})
    assert list(refused.value.errors) == [field]
    assert AlertRule.objects.count() == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "webhook", "address": "ftp://x"},
        {"kind": "webhook", "address": "https://"},
        {"kind": "webhook", "address": "https://[x"},
        {"kind": "message", "address": "nothing://x"},
        {"kind": "message", "address": "https"},
        {"kind": "message", "variable": "SECRET_KEY"},
        {"kind": "message"},
        {"kind": "message", "address": "json://x", "variable": "SLICEWISE_ALERT_X"},
    ],
)
def test_a_wrong_address_is_refused(admin: User, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        services.create_channel("x", **fields, user=admin)
    assert not Channel.objects.exists()


def test_a_channel_with_rules_is_not_deleted(channel: Channel, admin: User) -> None:
    used_by = rule(channel, admin)
    with pytest.raises(ConflictingRequest, match="rule"):
        services.delete_channel(channel, user=admin)
    services.delete_rule(used_by, user=admin)
    services.delete_channel(channel, user=admin)
    assert not Channel.objects.exists()


def test_operators_change_no_alerts(channel: Channel, olga: User) -> None:
    with pytest.raises(PermissionDenied):
        rule(channel, olga)
    with pytest.raises(PermissionDenied):
        services.change_channel(channel, active=False, user=olga)
