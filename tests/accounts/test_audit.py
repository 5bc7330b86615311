"""The audit trail says where a write came from."""

import pytest
from django.test import Client

from accounts_app import audit
from accounts_app.models import AuditEntry, User
from accounts_app.policy import Role
from assets_app.models import Asset
from tests import factories
from tests.clients import browser_of


@pytest.fixture
def olga(db: None) -> User:
    return factories.person("olga", Role.OPERATOR)


@pytest.fixture
def carriers(db: None) -> Asset:
    return factories.asset("carriers")


def test_a_write_by_request_has_the_address_it_came_from(olga: User, carriers: Asset) -> None:
    client = browser_of(olga)
    address = "/api/v1/assets/carriers/materialize/"
    client.post(address, {}, content_type="application/json", REMOTE_ADDR="192.0.2.7")
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.action, entry.subject) == ("olga", "materialize", "carriers")
    assert entry.address == "192.0.2.7"


def test_a_write_without_a_request_has_none_afterwards(olga: User) -> None:
    Client().get("/api/v1/health/", REMOTE_ADDR="192.0.2.7")
    audit.record(olga, "cancel", "run", "7")
    assert AuditEntry.objects.get().address is None


def test_an_entry_outlives_the_account(olga: User) -> None:
    audit.record(olga, "cancel", "run", "7")
    olga.delete()
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.actor_name) == (None, "olga")
