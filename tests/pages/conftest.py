"""A person who is signed in."""

import pytest
from django.test import Client

from accounts_app.models import User
from accounts_app.policy import Role
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
