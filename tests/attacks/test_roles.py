"""Each role allows its actions, and no person extends their own role."""

from __future__ import annotations

from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import Group
from django.test import Client

from accounts_app.models import AuditEntry, User
from accounts_app.policy import Role
from tests import factories
from tests.clients import browser_of

pytestmark = pytest.mark.django_db
USERS = "/admin/accounts_app/user/"
ATTEMPTS = "/admin/axes/accessattempt/"
PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def cheap_hashes(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.AXES_FAILURE_LIMIT = 3


@pytest.fixture
def ada() -> User:
    """Create an admin by role alone."""
    return factories.person("ada", Role.ADMIN, password=PASSWORD)


@pytest.fixture
def root() -> User:
    return factories.person("root", password=PASSWORD, is_superuser=True, is_staff=True)


@pytest.fixture
def browser(ada: User) -> Client:
    return browser_of(ada)


def form_of(user: User, **changes: Any) -> dict[str, Any]:
    """Return the form of a user in the admin with its present values, but for the changes."""
    form: dict[str, Any] = {
        "username": user.username, "first_name": "", "last_name": "", "email": "",
        "groups": list(user.groups.values_list("pk", flat=True)), "user_permissions": [],
        "date_joined_0": f"{user.date_joined:%Y-%m-%d}",
        "date_joined_1": f"{user.date_joined:%H:%M:%S}",
        **{name: "on" for name in ("is_active", "is_staff", "is_superuser") if getattr(user, name)},
    }  # fmt: skip
    return form | changes


def test_an_admin_by_role_opens_the_admin_site_until_the_role_is_taken_away(
    ada: User, browser: Client
) -> None:
    assert browser.get("/admin/").status_code == 200
    assert browser.get(USERS).status_code == 200
    assert 'href="/admin/"' in browser.get("/assets/").content.decode()
    ada.groups.clear()
    assert browser.get("/admin/").status_code == 302
    assert browser.get(USERS).status_code == 302
    assert 'href="/admin/"' not in browser.get("/assets/").content.decode()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.EDITOR])
def test_other_roles_do_not_open_it(role: Role) -> None:
    client = browser_of(factories.person("vera", role))
    assert client.get("/admin/").status_code == 302
    assert 'href="/admin/"' not in client.get("/assets/").content.decode()


def test_an_admin_by_role_signs_in_on_the_admin_site(ada: User) -> None:
    client = Client()
    form = {"username": "ada", "password": PASSWORD, "next": "/admin/"}
    assert client.post("/admin/login/", form).status_code == 302
    assert client.get("/admin/").status_code == 200
    factories.person("vera", Role.VIEWER, password=PASSWORD)
    refused = Client().post("/admin/login/", form | {"username": "vera"})
    assert refused.status_code == 200
    assert "staff" in refused.content.decode()


def test_the_admin_site_sends_whoever_changes_their_password_to_their_account(
    browser: Client,
) -> None:
    answer = browser.get("/admin/password_change/")
    assert (answer.status_code, answer["Location"]) == (302, "/account/")


def locked_out(name: str) -> Client:
    """Return a browser that is locked out after too many passwords."""
    client = Client()
    form = {"username": name, "password": "wrong"}
    statuses = [client.post("/sign-in/", form).status_code for _ in range(3)]
    assert statuses[-1] == 429
    return client


def test_an_admin_by_role_unlocks_a_locked_account(browser: Client) -> None:
    vera = factories.person("vera", Role.VIEWER, password=PASSWORD)
    client = locked_out("vera")
    right = {"username": "vera", "password": PASSWORD}
    assert client.post("/sign-in/", right).status_code == 429
    act = {"action": "unlock", "_selected_action": [vera.pk]}
    assert "era can sign in again" in browser.post(USERS, act, follow=True).content.decode()
    entry = AuditEntry.objects.get(action="unlock")
    assert (entry.actor_name, entry.subject) == ("ada", "vera")
    assert client.post("/sign-in/", right).status_code == 302


def test_an_admin_by_role_sees_and_deletes_attempts(browser: Client) -> None:
    factories.person("vera", Role.VIEWER, password=PASSWORD)
    locked_out("vera")
    attempt = AccessAttempt.objects.get()
    assert "vera" in browser.get(ATTEMPTS).content.decode()
    page = browser.get(f"{ATTEMPTS}{attempt.pk}/change/")
    assert page.status_code == 200
    assert "Form Data" not in page.content.decode()
    assert "post_data" not in page.content.decode()
    deleted = browser.post(f"{ATTEMPTS}{attempt.pk}/delete/", {"post": "yes"})
    assert deleted.status_code == 302
    assert not AccessAttempt.objects.exists()
    assert browser.get("/admin/axes/accesslog/").status_code == 200


def test_attempts_have_no_action_that_leaves_no_trail(browser: Client) -> None:
    """The action of axes deletes attempts without an entry, and needs a field that axes adds to a
    request.
    """
    factories.person("vera", Role.VIEWER, password=PASSWORD)
    locked_out("vera")
    attempt = AccessAttempt.objects.get()
    assert "cleanup_expired_attempts" not in browser.get(ATTEMPTS).content.decode()
    act = {"action": "cleanup_expired_attempts", "_selected_action": [attempt.pk]}
    assert browser.post(ATTEMPTS, act).status_code == 302
    assert AccessAttempt.objects.exists()
    act = {"action": "delete_selected", "_selected_action": [attempt.pk], "post": "yes"}
    browser.post(ATTEMPTS, act)
    assert not AccessAttempt.objects.exists()
    assert AuditEntry.objects.get(action="delete").subject == "vera from 127.0.0.1"


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.EDITOR])
def test_nobody_else_unlocks(role: Role) -> None:
    client = browser_of(factories.person("vera", role, is_staff=True))
    assert client.get(ATTEMPTS).status_code == 403
    assert client.get("/admin/axes/accesslog/").status_code == 403
    assert client.get(USERS).status_code == 403


def test_an_admin_by_role_makes_nobody_a_superuser(ada: User, browser: Client) -> None:
    vera = factories.person("vera", Role.VIEWER)
    raised = {"is_superuser": "on", "user_permissions": ["1"], "first_name": "Changed"}
    for user in (ada, vera):
        answer = browser.post(f"{USERS}{user.pk}/change/", form_of(user, **raised))
        assert answer.status_code == 302
        user.refresh_from_db()
        assert (user.first_name, user.is_superuser) == ("Changed", False)
        assert not user.user_permissions.exists()


def test_an_admin_by_role_does_not_touch_a_superuser(root: User, browser: Client) -> None:
    before = User.objects.values().get(pk=root.pk)
    page = f"{USERS}{root.pk}"
    assert browser.get(f"{page}/change/").status_code == 200
    assert browser.post(f"{page}/change/", form_of(root, email="a@b.c")).status_code == 403
    form = {"usable_password": "true", "password1": "staple-clip", "password2": "staple-clip"}
    assert browser.get(f"{page}/password/").status_code == 403
    assert browser.post(f"{page}/password/", form).status_code == 403
    assert browser.post(f"{page}/delete/", {"post": "yes"}).status_code == 403
    browser.post(USERS, {"action": "delete_selected", "_selected_action": [root.pk], "post": "yes"})
    assert User.objects.values().get(pk=root.pk) == before


def test_an_admin_by_role_gives_and_takes_roles(browser: Client) -> None:
    vera = factories.person("vera", Role.VIEWER)
    roles = {group.name: group.pk for group in Group.objects.all()}
    form = form_of(vera, groups=[roles["editor"]])
    assert browser.post(f"{USERS}{vera.pk}/change/", form).status_code == 302
    assert [group.name for group in vera.groups.all()] == ["editor"]


def test_a_superuser_makes_superusers(root: User, ada: User) -> None:
    raised = form_of(ada, is_superuser="on")
    assert browser_of(root).post(f"{USERS}{ada.pk}/change/", raised).status_code == 302
    ada.refresh_from_db()
    assert ada.is_superuser


def test_a_role_keeps_its_name(browser: Client) -> None:
    """To rename a group that is a role takes the role from all its people."""
    group = Group.objects.get_or_create(name="admin")[0]
    page = f"/admin/auth/group/{group.pk}"
    browser.post(f"{page}/change/", {"name": "chiefs", "permissions": []})
    assert Group.objects.get(pk=group.pk).name == "admin"
    assert browser.post(f"{page}/delete/", {"post": "yes"}).status_code == 403
