"""Sessions and tokens end at their person's request, and an ended one opens nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.hashers import make_password
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from knox.models import AuthToken

from accounts_app import forms
from accounts_app.api import tokens
from accounts_app.models import AuditEntry, User
from accounts_app.policy import Role
from tests import factories

pytestmark = pytest.mark.django_db
TOKENS = "/api/v1/tokens/"
ASSETS = "/api/v1/assets/"
OLD, NEW = "correct horse battery", "staple-and-paper-clip"
RESET = "reset-by-an-admin"


@pytest.fixture(autouse=True)
def cheap_hashes(settings: Any) -> None:
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher",
        "django.contrib.auth.hashers.ScryptPasswordHasher",
    ]


@pytest.fixture
def vera() -> User:
    return factories.person("vera", Role.VIEWER, password=OLD)


@pytest.fixture
def token(vera: User) -> str:
    """Create a token of Vera's, which opens the API."""
    text: str = AuthToken.objects.create(user=vera)[1]
    assert opens(text)
    return text


@pytest.fixture
def browser(vera: User) -> Client:
    return signed_in("vera", OLD)


def signed_in(name: str, password: str) -> Client:
    client = Client()
    answer = client.post("/sign-in/", {"username": name, "password": password})
    assert answer.status_code == 302
    return client


def opens(token: str) -> bool:
    answer = Client().get(ASSETS, HTTP_AUTHORIZATION=f"Bearer {token}")
    assert answer.status_code in (200, 401)
    return answer.status_code == 200


def is_signed_in(client: Client) -> bool:
    return client.get("/assets/").status_code == 200


def change_form(old: str = OLD, new: str = NEW, again: str | None = None) -> dict[str, str]:
    repeated = new if again is None else again
    return {"old_password": old, "new_password1": new, "new_password2": repeated}


def test_an_admin_who_sets_a_password_ends_sessions_and_tokens(
    vera: User, token: str, browser: Client
) -> None:
    factories.person("ada", password=OLD, is_superuser=True, is_staff=True)
    address = f"/admin/accounts_app/user/{vera.pk}/password/"
    form = {"usable_password": "true", "password1": NEW, "password2": NEW, "set-password": "1"}
    assert signed_in("ada", OLD).post(address, form).status_code == 302
    assert not opens(token)
    assert not is_signed_in(browser)


def test_a_password_that_is_disabled_ends_sessions_and_tokens(
    vera: User, token: str, browser: Client
) -> None:
    vera.set_unusable_password()
    vera.save()
    assert not opens(token)
    assert not is_signed_in(browser)


def test_the_command_that_changes_a_password_ends_tokens(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getpass", lambda *_, **__: NEW)
    call_command("changepassword", "vera")
    assert not opens(token)


def test_a_deactivated_account_has_no_session_and_no_token_when_it_comes_back(
    vera: User, token: str, browser: Client
) -> None:
    vera.is_active = False
    vera.save()
    assert not opens(token)
    vera.is_active = True
    vera.save()
    assert not opens(token)
    assert not is_signed_in(browser)


def test_an_account_that_was_read_before_it_was_signed_out_does_not_bring_sessions_back(
    vera: User, browser: Client
) -> None:
    read_before = User.objects.get(username="vera")
    vera.sign_out_everywhere()
    read_before.email = "vera@localhost"
    read_before.save()
    assert not is_signed_in(browser)


def test_a_password_that_is_hashed_anew_ends_nothing(token: str, settings: Any) -> None:
    settings.PASSWORD_HASHERS = settings.PASSWORD_HASHERS[::-1]
    signed_in("vera", OLD)
    assert User.objects.get(username="vera").password.startswith("scrypt")
    assert opens(token)


def test_hashing_the_old_password_anew_does_not_bring_it_back(vera: User, settings: Any) -> None:
    settings.PASSWORD_HASHERS = settings.PASSWORD_HASHERS[::-1]
    signing_in = User.objects.get(username="vera")
    vera.set_password(NEW)
    vera.save()
    # It compares with the old hash, which it has read before, and stores a better one of it.
    assert signing_in.check_password(OLD)
    vera.refresh_from_db()
    assert vera.check_password(NEW)
    assert signing_in.sign_in_generation < vera.sign_in_generation


def test_a_password_that_is_hashed_anew_in_vain_is_not_saved_later(
    vera: User, settings: Any
) -> None:
    settings.PASSWORD_HASHERS = settings.PASSWORD_HASHERS[::-1]
    signing_in = User.objects.get(username="vera")
    vera.set_password(NEW)
    vera.save()
    assert signing_in.check_password(OLD)
    signing_in.save()
    assert User.objects.get(username="vera").check_password(NEW)


def reset_by_an_admin(user: User) -> None:
    user.set_password(RESET)
    user.save()


def deactivate(user: User) -> None:
    user.is_active = False
    user.save()


def reset_by_a_statement(user: User) -> None:
    User.objects.filter(pk=user.pk).update(password=make_password(RESET))


BETWEEN = [reset_by_an_admin, deactivate, User.sign_out_everywhere, reset_by_a_statement]


@pytest.mark.parametrize("change", BETWEEN, ids=lambda change: change.__name__)
def test_a_change_of_password_is_refused_after_a_change_that_came_between(
    vera: User, browser: Client, monkeypatch: pytest.MonkeyPatch, change: Callable[[User], None]
) -> None:
    def change_meanwhile(*args: Any, **credentials: Any) -> Any:
        user = authenticate(*args, **credentials)
        change(User.objects.get(username="vera"))
        return user

    monkeypatch.setattr(forms, "authenticate", change_meanwhile)
    answer = browser.post("/account/", change_form())
    assert "Your account has changed meanwhile" in answer.content.decode()
    vera.refresh_from_db()
    assert not vera.check_password(NEW)
    assert vera.is_active is (change is not deactivate)
    assert not AuditEntry.objects.filter(action="change password").exists()


@pytest.mark.parametrize("fields", [None, ["password", "is_active", "email"]])
def test_a_save_of_an_account_that_was_read_before_brings_no_old_password_back(
    vera: User, token: str, fields: list[str] | None
) -> None:
    read_before = User.objects.get(username="vera")
    read_before.refresh_from_db(fields=fields)
    reset_by_an_admin(vera)
    deactivate(vera)
    ended = User.objects.get(username="vera").sign_in_generation
    read_before.email = "vera@localhost"
    read_before.save()
    vera.refresh_from_db()
    assert vera.email == "vera@localhost"
    assert vera.check_password(RESET)
    assert not vera.is_active
    assert vera.sign_in_generation == ended
    assert read_before.check_password(RESET)


def test_a_save_of_other_fields_ends_nothing_for_a_password_that_it_does_not_save(
    vera: User,
) -> None:
    read_before = User.objects.get(username="vera")
    reset_by_an_admin(vera)
    token = AuthToken.objects.create(user=vera)[1]
    read_before.save(update_fields=["is_active"])
    assert opens(token)


def test_an_account_that_was_read_in_part_is_saved_in_part(vera: User) -> None:
    read_before = User.objects.only("username").get()
    reset_by_an_admin(vera)
    deactivate(vera)
    read_before.username = "vera2"
    read_before.save()
    vera.refresh_from_db()
    assert (vera.username, vera.is_active) == ("vera2", False)
    assert vera.check_password(RESET)


def test_own_changes_of_an_account_that_was_read_before_are_saved(vera: User) -> None:
    deactivate(vera)
    read_before = User.objects.defer("password").get()
    reset_by_an_admin(vera)
    read_before.is_active = True
    read_before.set_password(NEW)
    read_before.save()
    vera.refresh_from_db()
    assert vera.is_active
    assert vera.check_password(NEW)


def test_an_account_is_changed_again_and_again_by_the_same_object() -> None:
    user = User(username="vera")
    user.set_password(OLD)
    user.save()
    user.set_password(NEW)
    user.save()
    reset_by_an_admin(User.objects.get())
    user.save()
    assert User.objects.get().check_password(RESET)
    user.set_unusable_password()
    user.save()
    assert not User.objects.get().has_usable_password()


def test_a_fixture_is_loaded_as_it_is(vera: User, tmp_path: Path) -> None:
    dump = tmp_path / "users.json"
    call_command("dumpdata", "accounts_app.User", output=str(dump))
    reset_by_an_admin(vera)
    call_command("loaddata", str(dump))
    assert User.objects.get().check_password(OLD)


def test_other_changes_of_an_account_end_nothing(vera: User, token: str, browser: Client) -> None:
    vera.email = "vera@localhost"
    vera.save()
    vera.save(update_fields=["email"])
    assert opens(token)
    assert is_signed_in(browser)


def test_a_token_that_is_asked_for_while_the_password_changes_is_not_given(
    vera: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change_meanwhile(**credentials: Any) -> Any:
        user = authenticate(**credentials)
        changed = User.objects.get(username="vera")
        changed.set_password(NEW)
        changed.save()
        return user

    monkeypatch.setattr(tokens, "authenticate", change_meanwhile)
    body = {"username": "vera", "password": OLD}
    answer = Client().post(TOKENS, body, content_type="application/json")
    assert answer.status_code == 401
    assert not AuthToken.objects.exists()


def test_everybody_changes_their_own_password(token: str, browser: Client) -> None:
    elsewhere = signed_in("vera", OLD)
    answer = browser.post("/account/", change_form(), follow=True)
    assert "Password changed" in answer.content.decode()
    assert is_signed_in(browser)
    assert not is_signed_in(elsewhere)
    assert not opens(token)
    signed_in("vera", NEW)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (change_form(old="wrong"), "old password"),
        (change_form(new="12345678"), "entirely numeric"),
        (change_form(new="password123"), "too common"),
        (change_form(again="other"), "match"),
        ({}, "required"),
    ],
    ids=["old", "numeric", "common", "again", "empty"],
)
def test_a_change_of_password_that_is_refused_ends_nothing(
    token: str, browser: Client, form: dict[str, str], message: str
) -> None:
    answer = browser.post("/account/", form)
    assert message in answer.content.decode()
    assert opens(token)
    signed_in("vera", OLD)


def test_a_person_signs_out_everywhere(token: str, browser: Client) -> None:
    elsewhere = signed_in("vera", OLD)
    assert browser.get("/account/sign-out-everywhere/").status_code == 405
    assert browser.post("/account/sign-out-everywhere/").status_code == 302
    assert not is_signed_in(browser)
    assert not is_signed_in(elsewhere)
    assert not opens(token)


def test_the_page_lists_and_revokes_own_tokens_alone(
    vera: User, token: str, browser: Client
) -> None:
    kept_token = AuthToken.objects.create(user=vera)[1]
    AuthToken.objects.create(user=vera, expiry=-timedelta(days=1))
    olga = factories.person("olga", Role.OPERATOR)
    of_olga, text_of_olga = AuthToken.objects.create(user=olga)
    text = browser.get("/account/").content.decode()
    assert text.count("/revoke/") == 2
    assert of_olga.token_key not in text
    assert token not in text
    named = AuthToken.objects.get(token_key=token[:15])
    assert browser.post(f"/account/tokens/{named.token_key}/revoke/").status_code == 302
    assert browser.post(f"/account/tokens/{of_olga.token_key}/revoke/").status_code == 404
    assert (opens(token), opens(kept_token), opens(text_of_olga)) == (False, True, True)


def test_the_page_of_an_account_is_for_whoever_is_signed_in(browser: Client) -> None:
    assert browser.get("/account/").status_code == 200
    assert '/account/"' in browser.get("/assets/").content.decode()
    for address in ("/account/", "/account/sign-out-everywhere/", "/account/tokens/abc/revoke/"):
        answer = Client().post(address)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/sign-in/"), address


def test_pages_of_an_account_refuse_forms_of_other_sites(vera: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(vera, backend="django.contrib.auth.backends.ModelBackend")
    for address in ("/account/", "/account/sign-out-everywhere/"):
        assert client.post(address, change_form()).status_code == 403


def test_a_session_from_before_the_upgrade_stays(vera: User) -> None:
    """The check of such a session is of the password alone, as Django's own model computes the
    check.
    """
    django_own = AbstractBaseUser._get_session_auth_hash(vera)  # type: ignore[attr-defined]
    assert vera.get_session_auth_hash() == django_own
    vera.sign_out_everywhere()
    assert vera.get_session_auth_hash() != django_own


def test_the_page_of_the_account_creates_a_token_and_shows_it_once(
    browser: Client, caplog: pytest.LogCaptureFixture
) -> None:
    # The address bar has this address afterwards, and a sign-in leads back to it.
    assert browser.get("/account/tokens/")["Location"] == "/account/"
    answer = browser.post("/account/tokens/", {"password": OLD, "days": "7"})
    assert '<form class="card" method="post" action="/account/">' in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    (text,) = re.findall(r'id="new-token" value="(\w+)"', answer.content.decode())
    assert opens(text)
    stored = AuthToken.objects.get()
    assert abs(stored.expiry - timezone.now() - timedelta(days=7)) < timedelta(minutes=5)
    entry = AuditEntry.objects.get(subject_type="token")
    assert (entry.action, entry.actor.username) == ("create", "vera")  # type: ignore[union-attr]
    page = browser.get("/account/").content.decode()
    assert stored.token_key[:8] in page
    for shown in (page, str(entry.detail), str(dict(browser.session)), caplog.text):
        assert text not in shown
        assert OLD not in shown


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({"password": "wrong", "days": "7"}, "The password is wrong."),
        ({"password": OLD, "days": "3650"}, "not one of the available choices"),
        ({}, "This field is required."),
    ],
)
def test_a_wrong_request_for_a_token_creates_none(
    browser: Client, form: dict[str, str], error: str
) -> None:
    answer = browser.post("/account/tokens/", form)
    assert error in answer.content.decode()
    assert not AuthToken.objects.exists()


def test_a_token_needs_the_token_of_a_form_and_a_session(browser: Client) -> None:
    form = {"password": OLD, "days": "7"}
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = browser.cookies
    assert strict.post("/account/tokens/", form).status_code == 403
    assert Client().post("/account/tokens/", form).status_code == 302
    assert not AuthToken.objects.exists()
