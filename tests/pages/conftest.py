"""A person who is signed in, in a browser of Django's and in a real one."""

from collections.abc import Iterator

import pytest
from django.test import Client
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from accounts_app.models import User
from accounts_app.policy import Role
from tests.browser import PATIENCE_MILLISECONDS, chromium
from tests.clients import browser_of
from tests.factories import person


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
