"""The trail names sign-ins, refused sign-ins, and changes with old and new value; entries stay."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from knox.models import AuthToken

from accounts_app import audit
from accounts_app.models import AuditEntry, User
from accounts_app.policy import Role
from tests import factories
from tests.clients import browser_of

pytestmark = pytest.mark.django_db
USERS = "/admin/accounts_app/user/"
PASSWORD, NEW = "correct horse battery", "staple-and-paper-clip"


@pytest.fixture(autouse=True)
def cheap_hashes(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def vera() -> User:
    return factories.person("vera", Role.VIEWER, password=PASSWORD)


@pytest.fixture
def admin(db: None) -> Client:
    return browser_of(factories.person("ada", Role.ADMIN, is_staff=True))


def sign_in(name: str, password: str, address: str = "/sign-in/") -> Client:
    client = Client(REMOTE_ADDR="192.0.2.7")
    client.post(address, {"username": name, "password": password, "next": "/"})
    return client


def trail() -> list[tuple[str, str, str, str | None]]:
    """Return actor, action, target and address of each entry, the oldest first."""
    fields = ("actor_name", "action", "subject", "address")
    return list(AuditEntry.objects.order_by("id").values_list(*fields))


def test_sign_ins_and_sign_outs_are_in_it(vera: User) -> None:
    sign_in("vera", PASSWORD).post("/sign-out/")
    assert trail() == [
        ("vera", "sign in", "vera", "192.0.2.7"),
        ("vera", "sign out", "vera", "192.0.2.7"),
    ]


def test_a_sign_in_on_the_admin_site_is_in_it() -> None:
    factories.person("ada", password=PASSWORD, is_staff=True)
    sign_in("ada", PASSWORD, "/admin/login/").post("/admin/logout/")
    assert [action for _, action, _, _ in trail()] == ["sign in", "sign out"]


def test_failed_sign_ins_and_lockouts_are_in_it(vera: User, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 2
    for _ in range(4):
        sign_in("vera", "wrong")
    # Attempts while the account is locked are not tried: they would fill the trail.
    assert trail() == [
        ("", "fail to sign in", "vera", "192.0.2.7"),
        ("", "fail to sign in", "vera", "192.0.2.7"),
        ("", "lock out", "vera", "192.0.2.7"),
    ]


def test_a_name_that_nobody_has_is_not_kept(vera: User) -> None:
    """Such a name may be a password that a person has typed into the wrong field."""
    sign_in("hunter2 my secret", "vera")
    assert trail() == [("", "fail to sign in", "(no such user)", "192.0.2.7")]
    assert "hunter2" not in str(AuditEntry.objects.values())


def test_tokens_that_are_issued_refused_and_revoked_are_in_it(vera: User) -> None:
    client = Client(REMOTE_ADDR="192.0.2.7")
    body = {"username": "vera", "password": PASSWORD}
    for changes in ({}, {"password": "wrong"}):
        client.post("/api/v1/tokens/", body | changes, content_type="application/json")
    token = AuthToken.objects.get()
    vera.refresh_from_db()
    audit_before = AuditEntry.objects.count()
    client.force_login(vera, backend="django.contrib.auth.backends.ModelBackend")
    client.post(f"/account/tokens/{token.token_key}/revoke/")
    assert trail() == [
        ("vera", "create", token.token_key, "192.0.2.7"),
        ("", "fail to sign in", "vera", "192.0.2.7"),
        ("vera", "revoke", token.token_key, "192.0.2.7"),
    ]
    assert audit_before == 2


def test_every_way_to_end_all_tokens_is_in_the_audit_trail(
    vera: User, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    AuthToken.objects.create(user=vera)
    form = {"usable_password": "true", "password1": NEW, "password2": NEW, "set-password": "1"}
    assert admin.post(f"{USERS}{vera.pk}/password/", form).status_code == 302
    by_admin, change = AuditEntry.objects.filter(subject="vera").order_by("id")
    assert (by_admin.actor_name, by_admin.action) == ("ada", "end sessions and tokens")
    assert by_admin.detail == {"cause": "new password", "tokens": 1}
    assert (change.action, change.detail) == ("change", {"changed": {"password": "set anew"}})
    monkeypatch.setattr("getpass.getpass", lambda *_, **__: PASSWORD)
    call_command("changepassword", "vera")
    by_command = AuditEntry.objects.latest("id")
    assert (by_command.actor_name, by_command.action) == ("", "end sessions and tokens")


def test_a_role_that_is_given_is_named(vera: User, admin: Client) -> None:
    roles = {group.name: group.pk for group in Group.objects.all()}
    form: dict[str, Any] = {
        "username": "vera", "first_name": "", "last_name": "", "email": "vera@localhost",
        "is_active": "on", "groups": [roles["viewer"], roles["editor"]],
        "date_joined_0": f"{vera.date_joined:%Y-%m-%d}",
        "date_joined_1": f"{vera.date_joined:%H:%M:%S}",
    }  # fmt: skip
    assert admin.post(f"{USERS}{vera.pk}/change/", form).status_code == 302
    entry = AuditEntry.objects.get(action="change")
    assert (entry.actor_name, entry.subject) == ("ada", "vera")
    changed = entry.detail["changed"]
    assert changed["groups"] == {"from": ["viewer"], "to": ["editor", "viewer"]}
    assert changed["email"] == {"from": "", "to": "vera@localhost"}


def test_an_account_that_is_made_says_with_what(admin: Client) -> None:
    form = {"username": "new", "usable_password": "true", "password1": NEW, "password2": NEW}
    assert admin.post(f"{USERS}add/", form).status_code == 302
    entry = AuditEntry.objects.get(action="create")
    assert entry.detail == {"set": {"username": "new"}}
    assert NEW not in str(AuditEntry.objects.values())


def test_a_token_that_an_admin_revokes_says_whose(vera: User, admin: Client) -> None:
    token, _ = AuthToken.objects.create(user=vera)
    page = f"/admin/knox/authtoken/{token.digest}/delete/"
    assert admin.post(page, {"post": "yes"}).status_code == 302
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.subject_type) == ("delete", "token")
    assert entry.subject == f"{token.token_key} of vera"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts_app_auditentry SET actor_name = 'olga'",
        "UPDATE accounts_app_auditentry SET at = now() - interval '1 day'",
        "UPDATE accounts_app_auditentry SET actor_id = NULL, detail = '{}'",
        "UPDATE accounts_app_auditentry SET actor_id = NULL, actor_name = ''",
        "UPDATE accounts_app_auditentry SET actor_id = actor_id",
        "DELETE FROM accounts_app_auditentry",
        "TRUNCATE accounts_app_auditentry",
        "TRUNCATE accounts_app_user CASCADE",
    ],
)
def test_the_database_refuses_a_change_of_the_trail(vera: User, statement: str) -> None:
    audit.record(vera, "cancel", "run", "7", {"state": "queued"})
    before = list(AuditEntry.objects.values())
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        with pytest.raises(DatabaseError, match="audit trail"), transaction.atomic():
            cursor.execute(statement)
    assert list(AuditEntry.objects.values()) == before


def test_a_user_who_is_deleted_leaves_the_entries(vera: User) -> None:
    audit.record(vera, "cancel", "run", "7")
    vera.delete()
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.actor_name) == (None, "vera")


def test_a_process_of_the_version_before_deletes_a_user_while_an_upgrade_is_under_way(
    vera: User,
) -> None:
    """The old process sets the reference to null while the user exists, which takes nothing from
    the entry.
    """
    audit.record(vera, "cancel", "run", "7", {"state": "queued"})
    before = AuditEntry.objects.values("actor_name", "action", "subject", "detail").get()
    vera.groups.clear()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_app_auditentry SET actor_id = NULL")
        cursor.execute("DELETE FROM accounts_app_user WHERE username = 'vera'")
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    assert AuditEntry.objects.values("actor_name", "action", "subject", "detail").get() == before
    assert AuditEntry.objects.get().actor is None


def test_the_reference_of_an_entry_names_an_account_or_nothing() -> None:
    """The database has compared all entries, and sets the reference to null with the account."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT confdeltype, convalidated, condeferrable, condeferred FROM pg_constraint"
            " WHERE conrelid = 'accounts_app_auditentry'::regclass AND contype = 'f'"
        )
        assert cursor.fetchall() == [("n", True, True, True)]


@pytest.mark.django_db(transaction=True)
def test_the_owner_of_the_table_prunes_it_in_the_documented_way() -> None:
    audit.record(factories.person("vera"), "cancel", "run", "7")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE accounts_app_auditentry DISABLE TRIGGER audit_entry_stays")
        cursor.execute("DELETE FROM accounts_app_auditentry WHERE at < now()")
        cursor.execute("ALTER TABLE accounts_app_auditentry ENABLE TRIGGER audit_entry_stays")
    assert not AuditEntry.objects.exists()
