"""Headers of answers for browsers, proxies and programs; and addresses that need no sign-in."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from accounts_app.models import User
from tests import factories

PASSWORD = "correct horse battery"
HEALTH = "/api/v1/health/"
POD = "10.42.0.17:8000"


@pytest.fixture
def behind_tls(settings: Any) -> None:
    """Set the settings that BEHIND_TLS sets."""
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")


@pytest.fixture
def known_user(vera: User, tokens_asked_for_anew: None, settings: Any) -> User:
    """Create a viewer, with a password that is cheap to hash."""
    return factories.give_password(vera, PASSWORD, settings)


def ask(password: str = PASSWORD) -> Any:
    return APIClient().post(
        "/api/v1/tokens/", {"username": "vera", "password": password}, format="json"
    )


@pytest.mark.parametrize("method", ["get", "head"])
def test_health_answers_a_plain_probe(
    stranger: Client, db: None, behind_tls: None, settings: Any, method: str
) -> None:
    assert reverse("api:health") == settings.HEALTH_ADDRESS == HEALTH
    answer = getattr(stranger, method)(HEALTH, HTTP_HOST=POD)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "address", ["/", "/sign-in/", "/api/v1/runs/", "/api/v1/tokens/", "/api/v1/health", "/admin/"]
)
def test_nothing_else_answers_a_plain_probe(
    stranger: Client, db: None, behind_tls: None, address: str
) -> None:
    assert stranger.get(address).status_code == 301
    assert stranger.get(address, HTTP_HOST=POD).status_code == 400
    named = stranger.get(address, HTTP_HOST=POD, HTTP_X_FORWARDED_PROTO="https")
    assert named.status_code == 400


@pytest.mark.parametrize("address", ["/api/v1/health/%0A", "/x/api/v1/health/"])
def test_addresses_that_resemble_the_health_address_are_no_probes(
    stranger: Client, behind_tls: None, address: str
) -> None:
    assert stranger.get(address).status_code == 301


def test_a_write_to_health_needs_our_name(stranger: Client, behind_tls: None) -> None:
    assert stranger.post(HEALTH, HTTP_HOST=POD).status_code == 400


def test_nobody_keeps_the_answer_that_holds_a_token(known_user: User) -> None:
    granted, refused = ask(), ask("wrong")
    assert (granted.status_code, refused.status_code) == (201, 401)
    assert granted["Cache-Control"] == refused["Cache-Control"] == "no-store"


def test_a_locked_account_says_when_to_come_back(known_user: User, settings: Any) -> None:
    settings.AXES_FAILURE_LIMIT = 1
    ask("wrong")
    answer = ask()
    assert answer.status_code == 429
    # Less the time since the failure, which may be seconds on a slow machine.
    assert 840 < int(answer["Retry-After"]) <= 900


def test_too_many_requests_say_when_to_come_back(known_user: User) -> None:
    answers = [ask("wrong") for _ in range(21)]
    assert answers[-1].status_code == 429
    assert 0 < int(answers[-1]["Retry-After"]) <= 60


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/sign-in/", HEALTH, "/nowhere/", "/static/icon.svg"])
def test_no_page_may_use_a_camera(stranger: Client, address: str) -> None:
    policy = stranger.get(address)["Permissions-Policy"]
    assert "camera=()" in policy
    assert "geolocation=()" in policy
