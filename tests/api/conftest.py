from collections.abc import Iterator

import pytest
from rest_framework.test import APIClient

from accounts_app.models import User
from accounts_app.policy import Role
from assets_app.models import Asset
from tests import factories
from tests.clients import api_client_of, forget_token_requests
from tests.described_answers import DescribedClient
from tests.kept_counts import no_kept_counts

__all__ = ["no_kept_counts"]


@pytest.fixture(autouse=True)
def no_token_requests() -> Iterator[None]:
    """Forget requests for tokens before and after the test: all clients have one address."""
    forget_token_requests()
    yield
    forget_token_requests()


@pytest.fixture
def olga(db: None) -> User:
    """Create an operator."""
    return factories.person("olga", Role.OPERATOR)


@pytest.fixture
def vera(db: None) -> User:
    """Create a viewer."""
    return factories.person("vera", Role.VIEWER)


@pytest.fixture
def api(olga: User) -> APIClient:
    """Return the operator's program; an error of the server is an answer, not a traceback."""
    return api_client_of(olga)


@pytest.fixture
def viewer_api(vera: User) -> APIClient:
    return api_client_of(vera)


@pytest.fixture
def stranger_api(db: None) -> APIClient:
    return DescribedClient(raise_request_exception=False)


@pytest.fixture
def raw_flights(db: None) -> Asset:
    """Create a daily asset, partitioned for all of 2013."""
    return factories.asset(
        "raw_flights", factories.DAILY_2013, params={"limit": 10}, group="flights"
    )


@pytest.fixture
def weather(db: None) -> Asset:
    """Create an asset by day and airport, for all of 2013."""
    return factories.asset("weather", factories.DAY_BY_AIRPORT, tags=["hourly"], owners=["ada"])


@pytest.fixture
def carriers(db: None) -> Asset:
    """Create an asset without partitions."""
    return factories.asset("carriers", uri="postgres://bob:secret@host:5432/db/schema/table")
