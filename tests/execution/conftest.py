"""Workers without a process: tests of services begin runs as workers do."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution.gateway import recovery
from assets_app.execution.queue import messages
from assets_app.models import Gateway, Lease, RunAttempt
from tests.factories import person


@pytest.fixture
def alice(db: None) -> User:
    return person("alice", is_superuser=True)


@pytest.fixture
def gateway(db: None) -> Gateway:
    """Return a gateway with room for three scheduled runs, whose heartbeat is recent."""
    return make_gateway("scheduled")


@pytest.fixture(autouse=True)
def sent() -> Iterator[list[tuple[str, tuple[int | str, ...], str]]]:
    """Record the messages to workers instead of sending: (task, arguments, queue)."""
    messages_sent: list[tuple[str, tuple[int | str, ...], str]] = []

    def keep(task: str, *args: int | str, queue: str) -> bool:
        messages_sent.append((task, args, queue))
        return True

    with patch.object(messages, "send", keep):
        yield messages_sent


@pytest.fixture(autouse=True)
def no_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Believe an expired lease at once; another test shows the delay."""
    monkeypatch.setattr(recovery, "DOUBT_SECONDS", 0.0)


def lose_the_worker() -> None:
    """Let the leases of all attempts under way expire, as if no worker renewed them."""
    Lease.objects.update(until=timezone.now() - timedelta(seconds=1))


def at_work(gateway: Gateway) -> SimpleNamespace:
    """Return as much of a gateway's worker as the end of a publication needs, with the watched
    attempts.
    """
    played = SimpleNamespace(gateway=gateway, watched=[])

    @contextmanager
    def watching(attempt: RunAttempt) -> Iterator[None]:
        played.watched.append(attempt)
        yield
        played.watched.remove(attempt)

    played.watching = watching
    return played


def make_gateway(queue: str, slots: int = 3, name: str = "") -> Gateway:
    now = timezone.now()
    return Gateway.objects.create(
        name=name or f"{queue}@test",
        host="test",
        process_id=1,
        queue=queue,
        slots=slots,
        started_at=now,
        last_seen=now,
    )
