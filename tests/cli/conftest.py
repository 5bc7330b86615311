import pytest

from accounts_app.models import User
from accounts_app.policy import Role
from assets_app.models import Asset
from tests import cast


@pytest.fixture
def ada(db: None) -> User:
    """The first superuser: whoever a command acts as unless told."""
    return cast.person("ada", is_superuser=True)


@pytest.fixture
def vera(db: None) -> User:
    return cast.person("vera", Role.VIEWER)


@pytest.fixture
def raw_flights(db: None) -> Asset:
    return cast.asset("raw_flights", cast.DAILY_2013)


@pytest.fixture
def carriers(db: None) -> Asset:
    return cast.asset("carriers")
