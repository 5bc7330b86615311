"""What tests of backfills share: nothing is sent, and runs are brought to their end by hand."""

import pytest

from assets_app.models import Gateway
from tests.execution.conftest import alice, gateway, make_gateway, sent

__all__ = ["alice", "gateway", "sent"]


@pytest.fixture
def worker(db: None) -> Gateway:
    """Has room for all runs of a backfill."""
    return make_gateway("backfill", slots=100)
