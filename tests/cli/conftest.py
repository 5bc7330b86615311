import pytest

from accounts_app.models import User
from accounts_app.policy import Role
from assets_app.models import Asset
from tests import factories


@pytest.fixture
def ada(db: None) -> User:
    """Create the first superuser, the person that a command acts as by default."""
    return factories.person("ada", is_superuser=True)


@pytest.fixture
def vera(db: None) -> User:
    return factories.person("vera", Role.VIEWER)


@pytest.fixture
def raw_flights(db: None) -> Asset:
    return factories.asset("raw_flights", factories.DAILY_2013)


@pytest.fixture
def carriers(db: None) -> Asset:
    return factories.asset("carriers")
