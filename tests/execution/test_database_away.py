"""A run of hours and a database that is away for moments: a restart, a failover, a connection that
something in between has dropped.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending, leases
from assets_app.execution.database import check_pool
from assets_app.execution.gateway import conclusion, supervision, worker
from assets_app.execution.gateway.concurrent_runs import ConcurrentRuns
from assets_app.execution.gateway.worker import GatewayWorker, Watched
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Gateway, Run, RunAttempt, RunLog, RunState
from assets_app.queries.clock import database_now
from slicewise import storage
from slicewise.storage.layout import marker_name
from tests.factories import DAILY_2013, asset, person
from tests.supervised_runs import request_day

pytestmark = pytest.mark.django_db(transaction=True)

Message = dict[str, Any]
IDLE, FINISHED, ENDED = (
    {"type": "idle"},
    {"type": "finished"},
    {"type": "exited", "status": 0, "signal": None},
)


def cut_all_connections() -> None:
    """Cut all connections, as a restart of the server does."""
    with psycopg.connect(**own_parameters(), autocommit=True) as admin:
        admin.execute(
            # Until it has ended: it may answer one more statement otherwise.
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            # The server's own processes are nobody's connection, and only a superuser may end them.
            " AND backend_type = 'client backend'"
        )


def own_parameters() -> dict[str, Any]:
    facts = connection.settings_dict
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST"}
    return {to: facts[name] for to, name in names.items()} | {"port": facts["PORT"]}


class Runner:
    """A runner that sends the scripted messages; a function of the script is called in its turn."""

    def __init__(self, script: list[Message | Callable[[], None]]) -> None:
        self._script = script

    def messages(self, timeout: float) -> Iterator[Message]:
        for step in self._script:
            if callable(step):
                step()
            else:
                yield step

    def kill(self) -> None:
        """Do nothing: the runner has ended already."""


class Worker:
    def __init__(self, gateway: Gateway) -> None:
        self.gateway, self.parent = gateway, self
        self.going_down, self.spark_away = threading.Event(), threading.Event()
        self.concurrent_runs = ConcurrentRuns(gateway.slots, suspect_after=2)
        self.script: list[Message | Callable[[], None]] = []
        self.launched = 0

    def start(self) -> None:
        """Do nothing: the warm parent is ready."""

    @contextmanager
    def watching(self, attempt: RunAttempt) -> Iterator[Watched]:
        yield Watched(attempt)

    def launch(self, request: Message) -> Runner:
        self.launched += 1
        return Runner(self.script)


@pytest.fixture
def played(gateway: Gateway, settings: Any, tmp_path: Path) -> Iterator[Worker]:
    settings.DATA_FOLDER = tmp_path
    acting = Worker(gateway)
    with patch.object(supervision, "current", lambda: acting):
        yield acting


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


@pytest.fixture
def run(lake: Path, played: Worker) -> Run:
    run = request_day(lake, person("alice", is_superuser=True))
    dispatch()
    return run


PARTITION = {"key": "2013-01-01", "path": "partition=2013-01-01", "rows": 1, "bytes": 4}


def write(run: Run, lake: Path, message: Message) -> None:
    """Write the data of the run, as its code would, and report the staging folder."""
    attempt = RunAttempt.objects.get()
    home = storage.staging_path(lake, run.pk, attempt.name_on_disk, attempt.fence, partitioned=True)
    folder = home / "partition=2013-01-01"
    folder.mkdir(parents=True)
    (folder / "part.parquet").write_text("rows")
    (folder / marker_name(run.pk, attempt.name_on_disk)).touch()
    message["staging"] = str(home)


def first_time(action: Callable[[], None], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return the real function with an act before its first call."""
    rest = iter([action])

    def call(*args: Any, **named: Any) -> Any:
        next(rest, lambda: None)()
        return real(*args, **named)

    return call


def assert_made(run: Run, played: Worker, lake: Path) -> None:
    run.refresh_from_db()
    assert (run.state, run.error) == (RunState.SUCCEEDED, "")
    assert (run.attempt_count, run.platform_failures, played.launched) == (1, 0, 1)
    assert (lake / "partition=2013-01-01" / "part.parquet").read_text() == "rows"
    assert not list(lake.glob("_slicewise*"))


def make(run: Run, played: Worker, lake: Path, *between: Message | Callable[[], None]) -> None:
    staged: Message = {"type": "staged", "root": "", "staging": "", "partitions": [PARTITION]}
    played.script = [lambda: write(run, lake, staged), *between, staged, FINISHED, ENDED]
    supervision.execute(run.pk)


def test_a_quiet_run_outlives_its_connection(run: Run, played: Worker, lake: Path) -> None:
    make(run, played, lake, IDLE, cut_all_connections, IDLE)
    assert_made(run, played, lake)


def test_a_run_that_prints_outlives_its_connection_and_no_line_is_lost(
    run: Run, played: Worker, lake: Path
) -> None:
    lines: list[Message | Callable[[], None]] = []
    for number in range(6):
        text = f"line {number}\n" + "." * 70_000 + "\n"
        lines += [{"type": "log", "text": text}]
    make(run, played, lake, *lines[:3], cut_all_connections, *lines[3:])
    assert_made(run, played, lake)
    text = "".join(RunLog.objects.order_by("sequence").values_list("text", flat=True))
    assert [line for line in text.splitlines() if line.startswith("line")] == [
        f"line {number}" for number in range(6)
    ]


def test_a_line_that_cannot_be_stored_ends_no_run(run: Run, played: Worker, lake: Path) -> None:
    create = first_time(cut_all_connections, RunLog.objects.bulk_create)
    with patch.object(RunLog.objects, "bulk_create", create):
        make(run, played, lake, {"type": "log", "text": "hello\n"}, IDLE)
    assert_made(run, played, lake)
    assert RunLog.objects.get().text == "hello\n"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (attempts, "still_held"),
        (attempts, "store_outlets"),
        (ending, "still_held"),
        (ending, "record_success"),
        (conclusion, "publish"),
    ],
)
def test_a_connection_that_ends_at_a_step_of_the_conclusion_costs_nothing(
    run: Run, played: Worker, lake: Path, module: Any, name: str
) -> None:
    with patch.object(module, name, first_time(cut_all_connections, getattr(module, name))):
        make(run, played, lake, IDLE)
    assert_made(run, played, lake)


@pytest.mark.parametrize("name", ["intend_to_publish", "succeed"])
def test_a_commit_that_nobody_heard_of_is_found_out(
    run: Run, played: Worker, lake: Path, name: str
) -> None:
    module = attempts if name == "intend_to_publish" else ending
    real, rest = getattr(module, name), [1]

    def committed_unheard(*args: Any, **named: Any) -> Any:
        outcome = real(*args, **named)
        if rest:
            rest.pop()
            raise OperationalError("server closed the connection unexpectedly")
        return outcome

    with patch.object(module, name, committed_unheard):
        make(run, played, lake, IDLE)
    assert_made(run, played, lake)


def test_a_connection_that_ends_before_there_is_a_runner_costs_nothing(
    run: Run, played: Worker, lake: Path
) -> None:
    for module, name in ((attempts, "take_inputs"), (leases, "renew")):
        cut = first_time(cut_all_connections, getattr(module, name))
        patch.object(module, name, cut).start()
    try:
        make(run, played, lake, IDLE)
    finally:
        patch.stopall()
    assert_made(run, played, lake)


def test_the_result_of_a_run_waits_for_a_database_that_is_away_for_long(
    run: Run, played: Worker, lake: Path
) -> None:
    back_at = [float("inf")]

    def connect(self: BaseDatabaseWrapper) -> None:
        if time.monotonic() < back_at[0]:
            raise OperationalError("connection refused")
        real(self)

    def go_away() -> None:
        back_at[0] = time.monotonic() + 3
        connections.close_all()

    real = BaseDatabaseWrapper.connect
    with patch.object(BaseDatabaseWrapper, "connect", connect):
        back_at[0] = 0
        make(run, played, lake, {"type": "log", "text": "a\n"}, IDLE, go_away, IDLE)
    assert_made(run, played, lake)


def test_who_lost_the_run_meanwhile_concludes_nothing(run: Run, played: Worker, lake: Path) -> None:
    def lose() -> None:
        attempt = RunAttempt.objects.get()
        assert ending.requeue_lost(attempt, "lost", counts=True)
        cut_all_connections()

    make(run, played, lake, IDLE, lose)
    run.refresh_from_db()
    assert run.state == RunState.QUEUED
    assert not (lake / "partition=2013-01-01").exists()


# ---------------------------------------------------------------- slots and connections


def test_twenty_quiet_runs_of_one_worker_need_no_connection_each(
    gateway: Gateway, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DATA_FOLDER = tmp_path
    let_threads_wait_for_connections(monkeypatch)
    assert connection.settings_dict["OPTIONS"]["pool"]["max_size"] < 20
    Gateway.objects.update(slots=20)
    flights = asset("raw_flights", DAILY_2013)
    request = MaterializeRequest(asset=flights, selection="2013-01-01..2013-01-20")
    user: User = person("alice", is_superuser=True)
    run_ids = list(materialize(request, user=user).runs.values_list("pk", flat=True))
    assert len(run_ids) == 20
    dispatch()
    together = threading.Barrier(20)
    acting = Worker(gateway)
    acting.script = [IDLE, lambda: void(together.wait(120)), IDLE, FINISHED, ENDED]

    def execute(run_id: int) -> None:
        try:
            supervision.execute(run_id)
        finally:
            connections.close_all()

    with patch.object(supervision, "current", lambda: acting), ThreadPoolExecutor(20) as threads:
        list(threads.map(execute, run_ids))
    assert set(Run.objects.values_list("state", "attempt_count")) == {(RunState.SUCCEEDED, 1)}


def void(_: object) -> None:
    """Return None: this function replaces functions without a result."""


def let_threads_wait_for_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let threads wait for a connection of the pool as long as a slow machine takes to give all."""
    pool = connection.pool  # type: ignore[attr-defined]  # of PostgreSQL alone
    monkeypatch.setattr(pool, "timeout", 120.0)


@pytest.fixture
def heart() -> Iterator[Callable[[], GatewayWorker]]:
    workers: list[GatewayWorker] = []
    live = GatewayWorker._live

    def live_and_close(self: GatewayWorker) -> None:
        with suppress(SystemExit):
            live(self)
        connections.close_all()

    def start() -> GatewayWorker:
        workers.append(GatewayWorker("scheduled@test", "scheduled", 20))
        return workers[0]

    with (
        patch.object(worker, "WarmParent", Mock()),
        patch.object(worker, "_HEARTBEAT_SECONDS", 0.1),
        patch.object(GatewayWorker, "_live", live_and_close),
    ):
        yield start
        for started in workers:
            started.close()
            started._heart.join(120)


def is_heard(seconds: float = 120) -> bool:
    """Return whether the gateway sends a heartbeat from now on."""
    before, deadline = Gateway.objects.get().last_seen, time.monotonic() + seconds
    while time.monotonic() < deadline:
        if Gateway.objects.get().last_seen > before:
            return True
        time.sleep(0.05)
    return False


def test_the_heart_beats_while_all_connections_of_the_pool_are_taken(
    heart: Callable[[], GatewayWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A new pool: the event loop of a browser of an earlier test keeps a connection of the old one.
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # of PostgreSQL alone
    let_threads_wait_for_connections(monkeypatch)
    heart()
    size = connection.settings_dict["OPTIONS"]["pool"]["max_size"]
    everyone, enough = threading.Barrier(size), threading.Event()

    def take() -> None:
        connection.ensure_connection()
        everyone.wait(120)
        enough.wait(120)
        connections.close_all()

    takers = [threading.Thread(target=take) for _ in range(size - 1)]
    for taker in takers:
        taker.start()
    try:
        connection.ensure_connection()
        everyone.wait(120)
        assert is_heard()
    finally:
        enough.set()
        for taker in takers:
            taker.join()


def test_the_heart_goes_on_beating_whatever_goes_wrong(
    heart: Callable[[], GatewayWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    heart()
    for error in (RuntimeError("can't start new thread"), OperationalError("away")):
        fail = Mock(side_effect=error)
        with monkeypatch.context() as broken:
            broken.setattr(worker, "database_now", fail)
            deadline = time.monotonic() + 120
            while fail.call_count < 2 and time.monotonic() < deadline:
                time.sleep(0.02)
        assert is_heard()
    cut_all_connections()
    connections.close_all()
    assert is_heard()


def test_a_worker_whose_heart_stops_ends(heart: Callable[[], GatewayWorker]) -> None:
    ended = threading.Event()
    with (
        patch("os._exit", lambda status: ended.set()),
        patch.object(worker, "database_now", Mock(side_effect=[database_now(), SystemExit])),
    ):
        heart()
        assert ended.wait(120)


def test_a_worker_with_more_slots_than_connections_does_not_start() -> None:
    pool = SimpleNamespace(settings={"default": {"OPTIONS": {"pool": {"max_size": 16}}}})
    with patch("assets_app.execution.database.connections", pool):
        check_pool(12)
        with pytest.raises(ImproperlyConfigured, match="20 slots needs at least 24"):
            check_pool(20)


def test_a_statement_on_its_way_to_a_server_that_is_gone_is_given_up_soon(db: None) -> None:
    connection.ensure_connection()
    with socket.fromfd(
        connection.connection.fileno(), socket.AF_INET, socket.SOCK_STREAM
    ) as to_server:
        patience = to_server.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert 0 < patience <= 60_000
