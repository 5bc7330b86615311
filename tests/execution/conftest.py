"""Workers without a process: tests of services begin runs as one would."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from django.utils import timezone

from accounts_app.models import User
from assets_app.execution import messages, recovery
from assets_app.models import Gateway, Lease, RunAttempt
from tests.factories import person


@pytest.fixture
def alice(db: None) -> User:
    return person("alice", is_superuser=True)


@pytest.fixture
def gateway(db: None) -> Gateway:
    """A gateway with room for three scheduled runs, heard of just now."""
    return make_gateway("scheduled")


@pytest.fixture(autouse=True)
def sent() -> Iterator[list[tuple[str, tuple[int | str, ...], str]]]:
    """The messages that would have gone to workers: (task, arguments, queue)."""
    messages_sent: list[tuple[str, tuple[int | str, ...], str]] = []

    def keep(task: str, *args: int | str, queue: str) -> bool:
        messages_sent.append((task, args, queue))
        return True

    with patch.object(messages, "send", keep):
        yield messages_sent


@pytest.fixture(autouse=True)
def no_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that has run out is believed at once; that it is doubted first has a test."""
    monkeypatch.setattr(recovery, "DOUBT_SECONDS", 0.0)


def lose_the_worker() -> None:
    """Nobody renews the leases of the attempts under way any more, and they have run out."""
    Lease.objects.update(until=timezone.now() - timedelta(seconds=1))


def at_work(gateway: Gateway) -> SimpleNamespace:
    """As much of a gateway's worker as finishing a publication takes; `watched` says of which."""
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
