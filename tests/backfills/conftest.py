"""Fixtures of tests of backfills: no message is sent, and the tests bring runs to their end."""

from datetime import timedelta

import pytest

from assets_app.models import Gateway
from backfills_app.services.advance import advancing
from tests.execution.conftest import alice, gateway, make_gateway, sent
from tests.midnight import same_day

__all__ = ["alice", "gateway", "same_day", "sent"]


@pytest.fixture
def worker(db: None) -> Gateway:
    """Return a gateway with room for all runs of a backfill."""
    return make_gateway("backfill", slots=100)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a round end with the last backfill, on any machine.

    Other tests show that a round ends before, when its time is over.
    """
    monkeypatch.setattr(advancing, "ROUND_SECONDS", 600.0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up at once on partitions that cannot go on."""
    monkeypatch.setattr(advancing, "PATIENCE", timedelta())
