"""A small world for the matrix: one person of each kind, and two assets with runs and backfills.

The asset `lent` is lent: the person `granted` has the permission on it. The asset `kept` is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from axes.models import AccessAttempt, AccessLog
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.test.client import ClientHandler
from knox.models import AuthToken

import slicewise
from accounts_app import audit
from accounts_app.models import AuditEntry, Grant, User
from accounts_app.policy import Role
from assets_app.execution.queue import messages
from assets_app.execution.request.runtime_partitions import add_partitions
from assets_app.models import Asset, Bundle, Gateway, Materialization, Run
from backfills_app.models import Backfill
from backfills_app.services import pause_backfill
from backfills_app.services.advance.advancing import advance
from partitions_app.models import PartitionDefinition, RuntimePartition
from slicewise_server.alerts import services as alerts
from slicewise_server.alerts.models import Delivery
from tests import factories
from tests.backfills.driven_backfills import ask, drive
from tests.execution.conftest import make_gateway

KEPT, LENT = "kept", "lent"
PLACES = (KEPT, LENT)
DAY = "2013-01-01"

# The names that the rules have for things, with their numbers and names on the site.
Things = Mapping[str, Any]


@dataclass(frozen=True)
class Person:
    """A person of one kind: the browser, and the program with its token."""

    browser: Client
    program: Client
    token: str


@dataclass(frozen=True)
class World:
    """The people, and the things that belong to each of the two assets."""

    people: Mapping[str, Person]
    things: Mapping[str, Things]


def make_world() -> World:
    """Create the world within the open transaction."""
    people = _make_people()
    boss = User.objects.get(username="superuser")
    with patch.object(messages, "send", lambda *_, **__: True):
        owned = {place: _make_assets(place, boss) for place in PLACES}
        _make_backfills(owned, boss)
    Grant.objects.create(person=User.objects.get(username="granted"), asset=LENT)
    common = _make_common(boss)
    return World(people, {place: common | owned[place] for place in PLACES})


def _make_people() -> dict[str, Person]:
    users = [factories.person(name, Role.VIEWER) for name in ("viewer", "granted")]
    users.append(factories.person("staff", Role.VIEWER, is_staff=True))
    users += [factories.person(role.value, role) for role in Role if role is not Role.VIEWER]
    powerful = ("superuser", "deactivated")
    users += [factories.person(name, is_superuser=True, is_staff=True) for name in powerful]
    browsers = _browsers()
    people = {"anonymous": Person(next(browsers), next(browsers), "f" * 64)}
    for user in users:
        browser = next(browsers)
        browser.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        people[user.username] = Person(
            browser, next(browsers), AuthToken.objects.create(user=user)[1]
        )
    # By SQL, which leaves the session and the token: nothing but the check of the account is left.
    User.objects.filter(username="deactivated").update(is_active=False)
    return people


def _browsers() -> Iterator[Client]:
    """Return clients that share one handler: a new handler looks at all static files."""
    handler = ClientHandler(enforce_csrf_checks=False)
    while True:
        client = Client(raise_request_exception=False)
        client.handler = handler
        yield client


def _make_assets(place: str, boss: User) -> dict[str, Any]:
    asset = factories.asset(place, factories.DAILY_2013, group=f"group-{place}")
    runtime_asset = factories.asset(
        f"{place}-found", slicewise.PartitionAtRuntime(name=f"set_{place}")
    )
    factories.external(f"{place}-told", factories.DAILY_2013)
    factories.asset(f"{place}-whole")
    held = factories.asset(f"{place}-held", factories.DAILY_2013, paused=True)
    add_partitions(runtime_asset, ["AA"], user=boss)
    addresses = {name: f"{place}-{name}" for name in ("found", "told", "whole", "held")}
    return addresses | {"asset": place, "asset_id": asset.pk, "held_id": held.pk}


def _make_backfills(owned: Mapping[str, dict[str, Any]], boss: User) -> None:
    """Create backfills of each asset.

    Each asset gets a backfill that has failed, one that has succeeded, one that is paused, and one
    that is going on, with a run that waits for a worker.
    """
    worker = make_gateway("backfill", slots=100)
    rows: dict[str, dict[str, Backfill]] = {}
    rows["failed"] = {place: ask(boss, place, selection=DAY) for place in PLACES}
    drive(worker, failing=lambda _attempt: True)
    rows["made"] = {place: ask(boss, place, selection="2013-01-02") for place in PLACES}
    drive(worker)
    rows["paused"] = {place: ask(boss, place, selection="2013-01-03") for place in PLACES}
    for backfill in rows["paused"].values():
        pause_backfill(backfill, user=boss)
    rows["going"] = {place: ask(boss, place, selection="2013-01-04") for place in PLACES}
    groups = {backfill.group_id for backfill in rows["going"].values()}
    # A round ends after a second, on a busy machine before each backfill has had a turn.
    for _ in range(20):
        advance()
        if Run.objects.filter(group__in=groups).values("group").distinct().count() == len(groups):
            break
    for place in PLACES:
        owned[place].update({name: rows[name][place].pk for name in rows})
        owned[place].update(
            {f"{name}_run": _run_of(rows[name][place]) for name in ("failed", "going")}
        )


def _run_of(backfill: Backfill) -> int:
    return Run.objects.filter(group=backfill.group_id).order_by("pk")[0].pk


def _make_alerts(boss: User) -> dict[str, Any]:
    """Create a channel that nothing uses, and a channel with a rule and an ended delivery."""
    address = "https://hooks.example/x"
    alerts.create_channel("free", "webhook", address=address, user=boss)
    channel, _ = alerts.create_channel("used", "webhook", address=address, user=boss)
    alerts.save_rule(None, {"name": "failures", "channel": channel}, user=boss)
    delivery = alerts.send_test(channel, user=boss)
    Delivery.objects.update(state="delivered")
    names = {"channel": "free", "used_channel": "used", "alert_rule": "failures"}
    return names | {"delivery": delivery.key}


def _make_common(boss: User) -> dict[str, Any]:
    address = {"username": "viewer", "ip_address": "10.0.0.1"}
    attempt = AccessAttempt.objects.create(
        **address, failures_since_start=1, get_data="", post_data=""
    )
    audit.record(boss, "try", "matrix", "entry")
    materialization = Materialization.objects.order_by("pk")[0]
    return {
        "own_token": AuthToken.objects.get(user__username="operator").token_key,
        "person": User.objects.get(username="viewer").pk,
        "user": User.objects.create_user("extra").pk,
        "group": Group.objects.create(name="crew").pk,
        "attempt": attempt.pk,
        "access": AccessLog.objects.create(**address).pk,
        "token": AuthToken.objects.get(user__username="viewer").pk,
        "entry": AuditEntry.objects.order_by("-pk")[0].pk,
        "definition": PartitionDefinition.objects.order_by("pk")[0].pk,
        "runtime": RuntimePartition.objects.order_by("pk")[0].pk,
        "grant": Grant.objects.get().pk,
        "materialization": materialization.pk,
        "gateway": Gateway.objects.get().pk,
        "bundle": Bundle.objects.get().pk,
        **_make_alerts(boss),
        "app": "assets_app",
        "content_type": ContentType.objects.get_for_model(Asset).pk,
    }
