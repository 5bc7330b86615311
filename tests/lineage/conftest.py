"""A receiver of events, and the cast of other tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from slicewise_server.lineage import client_settings, event_client
from tests.alerts.conftest import Receiver, receiver
from tests.api.conftest import api, olga, stranger_api, vera, viewer_api
from tests.backfills.conftest import worker
from tests.execution.conftest import alice, gateway, no_doubt, sent

__all__ = [
    "alice",
    "api",
    "gateway",
    "no_doubt",
    "olga",
    "receiver",
    "sent",
    "stranger_api",
    "vera",
    "viewer_api",
    "worker",
]


@pytest.fixture
def lineage(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver to which events are sent, by OpenLineage's own variables."""
    with monkeypatch.context() as patch:
        # The client copies its variables into further variables.
        patch.setattr("os.environ", os.environ.copy())
        patch.setenv("OPENLINEAGE_URL", receiver.address)
        patch.setenv("OPENLINEAGE_API_KEY", "the-key-of-a-test")
        _forget_settings()
        yield receiver
    _forget_settings()


def one_try(monkeypatch: pytest.MonkeyPatch, lineage: Receiver) -> None:
    """Have the client try once: its own further tries take ten seconds."""
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "http")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__URL", lineage.address)
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__RETRY", '{"total": 0}')


def _forget_settings() -> None:
    client_settings.sends_events.cache_clear()
    event_client.client.cache_clear()
