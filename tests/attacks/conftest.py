"""Whose browsers, programs and runs an attacker has, or has not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts_app.models import User
from accounts_app.policy import Role
from assets_app.models import Asset
from slicewise.runner.parent_client import WarmParent
from tests import factories
from tests.attacks.users import open_folder, parent_of_others
from tests.clients import api_client_of, forget_token_requests
from tests.runtime.runs import Runs


@pytest.fixture
def vera(db: None) -> User:
    """Create a viewer."""
    return factories.person("vera", Role.VIEWER)


@pytest.fixture
def viewer_api(vera: User) -> APIClient:
    """Return the viewer's program; an error of the server is an answer, not a traceback."""
    return api_client_of(vera)


@pytest.fixture
def stranger() -> Client:
    """Return the browser of a person who is not signed in."""
    return Client(raise_request_exception=False, enforce_csrf_checks=True)


@pytest.fixture
def raw_flights(db: None) -> Asset:
    """Create a daily asset, partitioned for all of 2013."""
    return factories.asset("raw_flights", factories.DAILY_2013)


@pytest.fixture
def tokens_asked_for_anew(db: None) -> Iterator[None]:
    """Forget requests for tokens before and after the test: all clients have one address."""
    forget_token_requests()
    yield
    forget_token_requests()


@pytest.fixture(scope="module")
def parent() -> Iterator[WarmParent]:
    """Start a warm parent of runners that are not root, all of one user."""
    with open_folder() as folder, parent_of_others(folder) as started_parent:
        yield started_parent


@pytest.fixture
def runs(parent: WarmParent, tmp_path: Path) -> Runs:
    """Return runs of that user."""
    return Runs(parent, tmp_path)
