"""A person who is signed in, in a browser of Django's and in a real one."""

import time
from collections.abc import Iterator

import pytest
from django.test import Client
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from accounts_app.models import User
from accounts_app.policy import Role
from tests.browser import PATIENCE_MILLISECONDS, chromium
from tests.clients import browser_of
from tests.factories import person
from tests.kept_counts import no_kept_counts

__all__ = ["no_kept_counts"]

_HOUR_SECONDS = 60 * 60
# Longer than a test of some requests takes.
_BEFORE_SECONDS = 60

expect.set_options(timeout=PATIENCE_MILLISECONDS)


@pytest.fixture
def same_hour() -> None:
    """Wait for the next hour, if the hour is about to end: columns of the chart of runs begin with
    an hour.
    """
    passed = time.time() % _HOUR_SECONDS
    if passed > _HOUR_SECONDS - _BEFORE_SECONDS:
        time.sleep(_HOUR_SECONDS - passed + 1)


@pytest.fixture
def vera(db: None) -> User:
    """Create a person who may make partitions."""
    return person("vera", Role.OPERATOR)


@pytest.fixture
def browser(vera: User) -> Client:
    """Return Vera's browser."""
    return browser_of(vera)


@pytest.fixture
def page(live_server: LiveServer, vera: User, browser: Client) -> Iterator[Page]:
    """Open Vera's browser, a real browser."""
    with chromium() as started:
        page = started.new_page(base_url=live_server.url, viewport={"width": 900, "height": 500})
        session = browser.cookies["sessionid"].value
        page.set_default_timeout(PATIENCE_MILLISECONDS)
        page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        yield page
