"""Tokens for programs, and addresses that need no sign-in."""

from typing import Any

import pytest
from knox.models import AuthToken
from rest_framework.test import APIClient

from accounts_app.models import AuditEntry, User
from tests import factories

ADDRESS = "/api/v1/tokens/"
PASSWORD = "correct horse battery"


@pytest.fixture
def olga(olga: User, settings: Any) -> User:
    """Create an operator with a password that is cheap to hash."""
    return factories.give_password(olga, PASSWORD, settings)


def ask(client: APIClient, **changes: Any) -> Any:
    return client.post(ADDRESS, {"username": "olga", "password": PASSWORD} | changes, format="json")


def test_a_token_opens_the_api_until_it_is_revoked(stranger_api: APIClient, olga: User) -> None:
    answer = ask(stranger_api)
    assert answer.status_code == 201, answer.content
    bearer: dict[str, Any] = {"HTTP_AUTHORIZATION": f"Bearer {answer.json()['token']}"}
    assert stranger_api.get("/api/v1/assets/", **bearer).status_code == 200
    assert stranger_api.delete(ADDRESS, **bearer).status_code == 204
    assert stranger_api.get("/api/v1/assets/", **bearer).status_code == 401
    assert [entry.action for entry in AuditEntry.objects.all()] == ["revoke", "create"]
    assert AuditEntry.objects.first().actor == olga  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "changes", [{"password": "wrong"}, {"username": "nobody"}], ids=["password", "user"]
)
def test_wrong_credentials_give_no_token(
    stranger_api: APIClient, olga: User, changes: dict[str, str]
) -> None:
    answer = ask(stranger_api, **changes)
    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"
    assert not AuthToken.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [{"password": ""}, {"username": None}, {"username": 1}, {"username": "\0"}, {"scope": "all"}],
    ids=str,
)
def test_unfit_credentials_are_refused(stranger_api: APIClient, changes: dict[str, Any]) -> None:
    assert ask(stranger_api, **changes).status_code == 400


def test_an_inactive_user_gets_no_token(stranger_api: APIClient, olga: User) -> None:
    User.objects.update(is_active=False)
    assert ask(stranger_api).status_code == 401


def test_attempts_on_an_account_are_limited(
    stranger_api: APIClient, olga: User, settings: Any
) -> None:
    settings.AXES_FAILURE_LIMIT = 3
    statuses = [ask(stranger_api, password="wrong").status_code for _ in range(4)]
    assert statuses[-1] == 429
    # The right password does not open it either.
    locked = ask(stranger_api)
    assert locked.status_code == 429
    assert locked["Content-Type"] == "application/problem+json"


def test_requests_from_an_address_are_throttled(stranger_api: APIClient, olga: User) -> None:
    statuses = [ask(stranger_api, username=f"nobody{n}").status_code for n in range(21)]
    assert statuses[0] == 401
    assert statuses[-1] == 429


def test_a_session_has_no_token_to_revoke(api: APIClient) -> None:
    assert api.delete(ADDRESS).status_code == 409


def test_health_needs_no_sign_in_and_tells_no_secret(
    stranger_api: APIClient, settings: Any
) -> None:
    answer = stranger_api.get("/api/v1/health/", HTTP_AUTHORIZATION="Bearer nonsense")
    assert answer.json() == {"status": "ok", "database": "ok", "broker": "ok"}
    settings.REDIS_URL = "redis://:hidden@127.0.0.1:1/0"
    answer = stranger_api.get("/api/v1/health/")
    assert answer.status_code == 503
    assert answer.json() == {"status": "down", "database": "ok", "broker": "down"}
