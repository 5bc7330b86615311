"""What tests of backfills share: nothing is sent, and runs are brought to their end by hand."""

from datetime import timedelta

import pytest

from assets_app.models import Gateway
from backfills_app.services.advance import advancing
from tests.execution.conftest import alice, gateway, make_gateway, sent

__all__ = ["alice", "gateway", "sent"]


@pytest.fixture
def worker(db: None) -> Gateway:
    """Has room for all runs of a backfill."""
    return make_gateway("backfill", slots=100)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round ends with the last backfill, however slow the machine is; that it ends before has
    tests.
    """
    monkeypatch.setattr(advancing, "ROUND_SECONDS", 600.0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot go on is given up at once."""
    monkeypatch.setattr(advancing, "PATIENCE", timedelta())
