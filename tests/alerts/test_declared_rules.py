"""Alerts in definition files become rules that follow the files."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

import slicewise
from accounts_app.models import User
from assets_app.catalogue.services import SyncReport, sync_bundle
from assets_app.models import Asset
from assets_app.signals import bundle_synced
from slicewise import DefinitionError
from slicewise.declaring.alerts import ALERT_KINDS
from slicewise_server.alerts import services
from slicewise_server.alerts.declared_rules import (
    SyncFollower,
    alerts_without_channel,
    store_declared_rules,
)
from slicewise_server.alerts.matching import match_events
from slicewise_server.alerts.models import AlertRule, Channel, Delivery
from slicewise_server.events.feed import publish_events
from slicewise_server.events.models import Event, EventKind
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest
from tests.described_answers import DescribedClient
from tests.factories import asset

pytestmark = pytest.mark.django_db
Bundle = Callable[..., Path]
HEADER = "from datetime import timedelta\nfrom slicewise import Alert, Asset, asset\n"
sdk: Any = slicewise  # to a type checker, the mistaken calls would be wrong


def synced(bundle: Bundle, text: str) -> SyncReport:
    return sync_bundle("shop", bundle(shop=HEADER + text))


def hook(admin: User, name: str = "oncall") -> Channel:
    return services.create_channel(name, "webhook", address="https://hooks.example/x", user=admin)[
        0
    ]


def declared() -> dict[str, list[str]]:
    """Return the assets of each declared rule, by the rule's name."""
    return dict(AlertRule.objects.filter(declared=True).values_list("name", "assets"))


def orders() -> None:
    """Make nothing: a function for decorators."""


def declaring(name: str, *alerts: dict[str, Any]) -> Asset:
    return asset(name, alerts=list(alerts))


FAILED = {"kinds": ["run_failed"], "to": "oncall", "gather_seconds": 30}


def test_assets_with_the_same_alerts_share_a_rule(bundle: Bundle, admin: User) -> None:
    hook(admin)
    report = synced(
        bundle,
        "oncall = Alert('validation_failed', 'run_failed', to='oncall')\n"
        "@asset(alerts=[oncall])\ndef orders(): ...\n"
        "@asset(alerts=oncall)\ndef customers(): ...\n"
        "@asset(alerts=[Alert(to='oncall', gather=timedelta(minutes=5))])\ndef prices(): ...\n"
        "@asset.multi(outlets=[Asset('a'), Asset('b')], alerts=[oncall])\ndef both(): ...\n",
    )
    assert report.errors == []
    assert declared() == {
        "oncall: run_failed, validation_failed, 30 s (declared)": ["a", "b", "customers", "orders"],
        "oncall: all events, 300 s (declared)": ["prices"],
    }


def test_rules_follow_a_sync_in_a_process_without_alerts(bundle: Bundle, admin: User) -> None:
    """As `slicewise sync` is, whose signal no receiver of alerts hears."""
    hook(admin)
    follower = SyncFollower(seconds=0)
    follower.look()
    receivers, bundle_synced.receivers = bundle_synced.receivers, []
    bundle_synced.sender_receivers_cache.clear()
    try:
        synced(bundle, "@asset(alerts=[Alert('run_failed', to='oncall')])\ndef orders(): ...\n")
        assert declared() == {}
    finally:
        bundle_synced.receivers = receivers
        bundle_synced.sender_receivers_cache.clear()
    follower.look()
    assert declared() == {"oncall: run_failed, 30 s (declared)": ["orders"]}
    with CaptureQueriesContext(connection) as statements:
        follower.look()
    assert len(statements) == 1
    # The same version is stored once more where another bundle has given up a name.
    Asset.objects.update(active=False)
    follower.look()
    assert declared() == {}


def test_a_declared_rule_sends_messages(bundle: Bundle, admin: User) -> None:
    hook(admin)
    synced(bundle, "@asset(alerts=[Alert('run_failed', to='oncall')])\ndef orders(): ...\n")
    for name, kind in (("orders", "run_failed"), ("orders", "run_recovered"), ("x", "run_failed")):
        Event.objects.create(kind=kind, asset=name)
    publish_events(timezone.now())
    match_events(timezone.now())
    bodies = [body["event"] for body in Delivery.objects.values_list("body", flat=True) if body]
    assert [(event["asset"], event["kind"]) for event in bodies] == [("orders", "run_failed")]


def test_rules_follow_the_files(bundle: Bundle, admin: User) -> None:
    hook(admin)
    alert = "alerts=[Alert('run_failed', to='oncall')]"
    synced(bundle, f"@asset({alert})\ndef a(): ...\n@asset({alert})\ndef b(): ...\n")
    rule = AlertRule.objects.get()
    synced(bundle, f"@asset({alert})\ndef b(): ...\n")
    assert declared() == {rule.name: ["b"]}
    assert AlertRule.objects.get().pk == rule.pk
    synced(bundle, "@asset()\ndef b(): ...\n")
    assert declared() == {}


def test_a_broken_file_leaves_the_alerts_of_its_assets(bundle: Bundle, admin: User) -> None:
    hook(admin)
    synced(bundle, "@asset(alerts=[Alert('run_failed', to='oncall')])\ndef a(): ...\n")
    before = declared()
    assert before
    assert synced(bundle, "@asset(\n").errors
    assert declared() == before


def test_alerts_wait_for_their_channel(admin: User) -> None:
    declaring("orders", FAILED)
    store_declared_rules()
    assert declared() == {}
    assert alerts_without_channel() == [("oncall", ["orders"], 1)]
    hook(admin)
    assert list(declared().values()) == [["orders"]]
    assert alerts_without_channel() == []


def test_missing_channels_are_read_by_one_bounded_statement(
    django_assert_num_queries: Callable[..., Any],
) -> None:
    for number in range(30):
        declaring(f"asset-{number:02}", FAILED, FAILED | {"to": f"channel-{number:02}"})
    declaring("gone", FAILED | {"to": "a"})
    Asset.objects.filter(name="gone").update(active=False)
    with django_assert_num_queries(1):
        missing = alerts_without_channel()
    assert [row.channel for row in missing] == [f"channel-{number:02}" for number in range(20)]
    Asset.objects.filter(name__gt="asset-00").update(alerts=[FAILED])
    channels = {row.channel: row for row in alerts_without_channel()}
    assert channels["oncall"].asset_count == 30
    assert channels["oncall"].assets == [f"asset-{number:02}" for number in range(10)]
    assert channels["oncall"].asset_names.endswith("asset-09, …")


def test_a_bundle_with_too_many_different_alerts_is_refused_and_leaves_the_rules(
    bundle: Bundle, admin: User
) -> None:
    hook(admin)
    synced(bundle, "@asset(alerts=[Alert('run_failed', to='oncall')])\ndef orders(): ...\n")
    before = declared()
    report = synced(
        bundle,
        "def declare(number):\n"
        "    @asset(name=f'a{number}', alerts=[Alert(to=f'channel-{number}')])\n"
        "    def made(): ...\n"
        "for number in range(1_001):\n"
        "    declare(number)\n",
    )
    (error,) = report.errors
    assert "at most 1,000 different alerts" in error["message"]
    assert declared() == before


@pytest.mark.django_db(transaction=True)
def test_a_channel_is_not_deleted_while_a_sync_adds_its_rule(admin: User) -> None:
    channel = hook(admin)
    declaring("orders", FAILED)

    def delete() -> None:
        try:
            services.delete_channel(channel, user=admin)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            store_declared_rules()
            deletion = threads.submit(delete)
            with pytest.raises(TimeoutError):
                deletion.result(1)
        with pytest.raises(ConflictingRequest, match="Alert rules use the channel"):
            deletion.result(120)
    assert Channel.objects.get().rules.count() == 1


def test_a_changed_rule_sends_the_events_before_the_change(admin: User) -> None:
    services.create_channel("oncall", "message", address="json://mail.example", user=admin)
    declaring("orders", FAILED)
    store_declared_rules()
    Event.objects.create(kind="run_failed", asset="orders")
    publish_events(timezone.now())
    match_events(timezone.now())
    declaring("prices", FAILED)
    store_declared_rules()
    assert Delivery.objects.get().state == "waiting"
    Asset.objects.update(active=False)
    store_declared_rules()
    assert not AlertRule.objects.exists()
    assert Delivery.objects.get().rule_name.endswith("(declared)")


def test_a_rule_that_changes_or_ends_sends_events_that_were_not_matched_before(admin: User) -> None:
    services.create_channel("oncall", "message", address="json://mail.example", user=admin)
    declaring("orders", FAILED)
    store_declared_rules()
    Event.objects.create(kind="run_failed", asset="orders")
    publish_events(timezone.now())
    Asset.objects.update(active=False)
    declaring("prices", FAILED)
    store_declared_rules()
    assert "orders" in str(Delivery.objects.get().body)
    Event.objects.create(kind="run_failed", asset="prices")
    publish_events(timezone.now())
    Asset.objects.update(active=False)
    store_declared_rules()
    assert not AlertRule.objects.exists()
    assert Delivery.objects.count() == 2


def test_an_unchanged_rule_is_not_written(
    admin: User, django_assert_num_queries: Callable[..., Any]
) -> None:
    hook(admin)
    declaring("orders", FAILED)
    store_declared_rules()
    # A savepoint and its release, the lock, assets, channels, rules of people, and rules.
    with django_assert_num_queries(7):
        store_declared_rules()


def test_people_pause_a_declared_rule_and_change_no_more(admin: User) -> None:
    hook(admin)
    declaring("orders", FAILED)
    store_declared_rules()
    rule = AlertRule.objects.get()
    with pytest.raises(ConflictingRequest, match="Definition files declare this rule"):
        services.save_rule(rule, {"kinds": []}, user=admin)
    with pytest.raises(ConflictingRequest, match="Definition files declare this rule"):
        services.delete_rule(rule, user=admin)
    services.save_rule(rule, {"active": False}, user=admin)
    store_declared_rules()
    rule.refresh_from_db()
    assert not rule.active
    with pytest.raises(ConflictingRequest, match="Alert rules use the channel") as refused:
        services.delete_channel(rule.channel, user=admin)
    assert "come from definition files: name another channel in alerts= there" in str(refused.value)
    assert "Give these rules another channel" not in str(refused.value)
    api = DescribedClient()
    api.force_authenticate(admin)
    address = f"/api/v1/alert-rules/{rule.name}/"
    assert api.get(address).json()["declared"] is True
    assert api.delete(address).status_code == 409


def test_no_other_rule_takes_the_name_of_a_declared_rule(admin: User) -> None:
    fields = {"name": "oncall: run_failed, 30 s (declared)", "channel": hook(admin)}
    with pytest.raises(InvalidRequest, match="Only rules of definition files"):
        services.save_rule(None, fields, user=admin)


def test_a_rule_of_a_person_with_such_a_name_stops_no_sync(admin: User) -> None:
    name = "oncall: run_failed, 30 s (declared)"
    AlertRule.objects.create(name=name, channel=hook(admin), position=0)
    declaring("orders", FAILED)
    store_declared_rules()
    assert declared() == {}
    AlertRule.objects.update(name="another")
    store_declared_rules()
    assert declared() == {name: ["orders"]}


def test_long_names_of_rules_differ(admin: User) -> None:
    channel = "c" * 100
    hook(admin, channel)
    kinds = sorted(ALERT_KINDS)
    declaring("a", {"kinds": kinds, "to": channel, "gather_seconds": 30})
    declaring("b", {"kinds": kinds, "to": channel, "gather_seconds": 31})
    store_declared_rules()
    assert sorted(declared().values()) == [["a"], ["b"]]
    assert all(len(name) <= 100 for name in declared())


def test_kinds_of_the_sdk_are_the_kinds_of_assets_events() -> None:
    of_no_asset = {EventKind.WORKER_LOST, EventKind.BUNDLE_BROKEN, EventKind.BUNDLE_MENDED}
    assert {*ALERT_KINDS} == {*EventKind.values} - of_no_asset


def test_overdue_is_short_for_overdue_partitions() -> None:
    assert slicewise.Alert("overdue", to="oncall") == slicewise.Alert(
        "partition_overdue", to="oncall"
    )
    assert slicewise.Alert("overdue", to="oncall").to_json()["kinds"] == ["partition_overdue"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sdk.Alert("run_faild", to="oncall"), "did you mean 'run_failed'"),
        (lambda: sdk.Alert("worker_lost", to="oncall"), "is no kind of an asset's events"),
        (lambda: sdk.Alert(["run_failed"], to="oncall"), "takes kinds of events as texts"),
        (lambda: sdk.Alert("run_failed", to=""), "to is the name of a channel"),
        (lambda: sdk.Alert("run_failed", to="https://hooks.example/x"), "addresses belong to"),
        (lambda: sdk.Alert(to="x", gather=30), "gather is a timedelta"),
        (lambda: sdk.Alert(to="x", gather=timedelta(hours=2)), "gather is a timedelta"),
        (lambda: sdk.asset(alerts="oncall")(orders), "alerts is a list such as"),
        (lambda: sdk.asset(alerts=["run_failed"])(orders), "alerts is a list such as"),
    ],
)
def test_mistakes_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        make()
    assert message in str(refused.value)
