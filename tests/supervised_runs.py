"""A worker whose runner and Spark are played, and fixtures of a run that the worker executes."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings

from accounts_app.models import User
from assets_app.execution.gateway import recovery, supervision
from assets_app.execution.gateway.concurrent_runs import ConcurrentRuns
from assets_app.execution.gateway.worker import Watched
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Gateway, ProducerVersion, Run, RunAttempt
from slicewise.runner.parent_client import WarmParentError
from tests.factories import DAILY_2013, asset

Message = dict[str, Any]
SPARK = [
    {"type": "spark", "application_id": None, "ui": None},
    {"type": "spark", "application_id": "local-1", "ui": None},
]
FAILED = {"type": "failed", "error": "no", "traceback": "", "partition": None}
BY_PLATFORM, BY_CODE = {**FAILED, "kind": "platform"}, {**FAILED, "kind": "code"}
ENDED = {"type": "exited", "status": 1, "signal": None}
KILLED = {"type": "exited", "status": -9, "signal": 9}
# The end of a runner whose worker could not renew the lease.
UNRENEWED = {**KILLED, "no_renewal": 80.0}


class Runner:
    """A runner that sends the given messages."""

    def __init__(self, messages: list[Message], then: Callable[[], None]) -> None:
        self._said, self._then = messages, then

    def messages(self, timeout: float) -> Iterator[Message]:
        yield from self._said[:-1]
        self._then()
        yield self._said[-1]

    def kill(self) -> None:
        """Do nothing: the runner has ended already."""


class Worker:
    """A gateway's worker: its warm parent forks nothing, and remembers the requests."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.going_down, self.spark_away = threading.Event(), threading.Event()
        self.concurrent_runs = ConcurrentRuns(gateway.slots, settings.SUSPECT_AFTER_LOSSES)
        self.parent = self
        self.interrupted: list[str] = []
        self.launched: list[Message] = []
        self.silent = False
        self.said: list[Message] = [ENDED]
        self.meanwhile: Callable[[], None] = lambda: None
        self.while_interrupted: Callable[[], None] = lambda: None
        self.watched: Watched | None = None

    def start(self) -> None:
        """Do nothing: the warm parent is ready."""

    @contextmanager
    def watching(self, attempt: RunAttempt) -> Iterator[Watched]:
        self.watched = Watched(attempt)
        yield self.watched
        self.watched = None

    def launch(self, request: Message) -> Runner:
        self.launched.append(request)
        return Runner(self.said, self.meanwhile)

    def interrupt(self, remote: str, session_id: str) -> None:
        self.interrupted.append(session_id)
        self.while_interrupted()
        if self.silent:
            raise WarmParentError("it did not end")


@contextmanager
def played_spark() -> Iterator[socket.socket]:
    """Open a port as a Spark server does; a check for Spark looks at the port alone.

    A second socket keeps the port from other programs after the server is closed. Nobody accepts
    the connections of checks, so that the server needs room for all of them.
    """
    with (
        socket.create_server(("127.0.0.1", 0), backlog=4096, reuse_port=True) as server,
        socket.socket() as holder,
    ):
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(server.getsockname())
        yield server


@pytest.fixture
def spark(settings: Any) -> Iterator[socket.socket]:
    with played_spark() as server:
        settings.SPARK_REMOTE = f"sc://localhost:{server.getsockname()[1]}/;token=x"
        yield server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


@pytest.fixture
def worker(gateway: Gateway, spark: None, settings: Any, tmp_path: Path) -> Iterator[Worker]:
    settings.DATA_FOLDER = tmp_path
    played = Worker(gateway)
    with (
        patch.object(supervision, "current", lambda: played),
        patch.object(recovery, "current", lambda: played),
    ):
        yield played


def request_day(root: Path, user: User) -> Run:
    """Request one day of an asset whose data is kept in a folder."""
    flights = asset("raw_flights", DAILY_2013)
    version = ProducerVersion.objects.get()
    version.definition["outlets"] = [{"name": "raw_flights", "uri": f"file:{root}"}]
    version.save()
    request = MaterializeRequest(asset=flights, selection="2013-01-01")
    return materialize(request, user=user).runs.get()


@pytest.fixture
def run(alice: User, root: Path, worker: Worker) -> Run:
    return request_day(root, alice)


def change_options(**options: Any) -> None:
    """Change options of the only producer, as if a sync had done so."""
    version = ProducerVersion.objects.get()
    version.definition |= options
    version.save()


def execute(run: Run) -> Run:
    """Execute the next attempt at the run to its end, and return the run as it is then."""
    Run.objects.update(not_before=None)
    dispatch()
    supervision.execute(run.pk)
    run.refresh_from_db()
    return run
