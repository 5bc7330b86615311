"""Browsers and programs in which a person is signed in, as clients of Django and DRF."""

from django.core.cache import cache
from django.test import Client
from rest_framework.test import APIClient

from accounts_app.models import User
from tests.described_answers import DescribedClient


def browser_of(user: User) -> Client:
    """Return a browser in which the person is signed in."""
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def api_client_of(user: User) -> APIClient:
    """Return a program that is signed in as the person.

    An error of the server is an answer, not a traceback.
    """
    client = DescribedClient(raise_request_exception=False)
    client.force_login(user)
    return client


def forget_token_requests() -> None:
    """Forget that tests have asked for tokens from the address of the test clients."""
    cache.delete("throttle-tokens-127.0.0.1")
