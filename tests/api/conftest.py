from collections.abc import Iterator

import pytest
from django.core.cache import cache
from rest_framework.test import APIClient

from accounts_app.models import User
from accounts_app.policy import Role
from assets_app.models import Asset
from tests import factories


@pytest.fixture(autouse=True)
def forget_token_requests() -> Iterator[None]:
    """Other tests have asked for tokens from the same address."""
    cache.delete("throttle-tokens-127.0.0.1")
    yield
    cache.delete("throttle-tokens-127.0.0.1")


@pytest.fixture
def olga(db: None) -> User:
    """An operator."""
    return factories.person("olga", Role.OPERATOR)


@pytest.fixture
def vera(db: None) -> User:
    """A viewer."""
    return factories.person("vera", Role.VIEWER)


@pytest.fixture
def api(olga: User) -> APIClient:
    """Signed in as the operator; an error of the server is an answer here, not a traceback."""
    client = APIClient(raise_request_exception=False)
    client.force_login(olga)
    return client


@pytest.fixture
def viewer_api(vera: User) -> APIClient:
    client = APIClient(raise_request_exception=False)
    client.force_login(vera)
    return client


@pytest.fixture
def stranger_api(db: None) -> APIClient:
    return APIClient(raise_request_exception=False)


@pytest.fixture
def raw_flights(db: None) -> Asset:
    """Daily, all of 2013."""
    return factories.asset(
        "raw_flights", factories.DAILY_2013, params={"limit": 10}, group="flights"
    )


@pytest.fixture
def weather(db: None) -> Asset:
    """Day by airport, all of 2013."""
    return factories.asset("weather", factories.DAY_BY_AIRPORT, tags=["hourly"], owners=["ada"])


@pytest.fixture
def carriers(db: None) -> Asset:
    """Not partitioned."""
    return factories.asset("carriers", uri="postgres://bob:secret@host:5432/db/schema/table")
