"""Row 15: a firewall drops idle connections between a process and its servers, without a word or
with a reset for the next user of the connection.
"""

import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from pyarrow import parquet

from slicewise_server.stack import ports
from slicewise_server.stack.commands import COMMANDS, WEB
from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import ADMIN
from tests.faults.conftest import ROUNDS, Recovered
from tests.faults.firewall import Firewall, Manner, may_drop_packets
from tests.faults.marks import await_attempts
from tests.faults.runs import request_run
from tests.faults.stack_processes import Crew, until
from tests.threads import repeated

pytestmark = pytest.mark.fault(15)

PROCESSES = ("web", "control", "worker")
# The heartbeat uses its connection each second, the tick those of its pool five times a second.
IDLE_SECONDS = {"web": 1.5, "control": 0.1, "worker": 1.5}
_RUN_SECONDS = 12.0
_READERS = 8
_MAY_BE_SILENT = may_drop_packets()
# What is not acknowledged for five seconds is given up; the rest is the machine's. `make faults`
# measures. One round is run on any machine, beside other tests: whoever waits for a connection that
# was dropped waits for a quarter of an hour.
_ANSWERED_SECONDS = 15.0 if ROUNDS > 1 else 60.0


class Behind:
    """A web process, a control worker and a worker of runs that reach PostgreSQL and Redis through
    firewalls.
    """

    def __init__(self, crew: Crew, firewalls: dict[str, list[Firewall]]) -> None:
        self._crew, self._firewalls = crew, firewalls
        self.dropped = dict.fromkeys(PROCESSES, 0)
        (port,) = ports.pick(1)
        self._url = f"http://127.0.0.1:{port}"
        for name in ("worker-control", "worker-scheduled"):
            crew.halt(name)
        crew.hire("control-behind", COMMANDS["worker-control"], self._env("control"))
        crew.hire("web-behind", WEB, {**self._env("web"), "GRANIAN_PORT": str(port)})
        crew.hire_gateway("worker-behind", env=self._env("worker"))
        until(lambda: ports.accepts(port), "its pages are there")
        self.api = Client(self._url, ADMIN, crew.stack.admin_password)
        account = {"username": ADMIN, "password": crew.stack.admin_password}
        self._token = self.api.post("/tokens/", **account)["token"]

    def _env(self, process: str) -> dict[str, str]:
        database, broker = self._firewalls[process]
        return {"DATABASE_URL": database.url, "REDIS_URL": broker.url}

    @contextmanager
    def dropping(self, manner: Manner) -> Iterator[None]:
        """Drop all idle connections, again and again, within the block."""

        def drop() -> None:
            for process, firewalls in self._firewalls.items():
                idle = IDLE_SECONDS[process]
                for firewall in firewalls:
                    self.dropped[process] += firewall.forget(manner, idle=idle)

        with repeated(drop, every=0.25):
            yield

    def read_together(self) -> float:
        """Read several pages at once, so that many connections are used; the slowest's seconds."""
        with ThreadPoolExecutor(_READERS) as pool:
            return max(pool.map(lambda _: self._read("/api/v1/runs/"), range(_READERS)))

    def _read(self, path: str) -> float:
        """Return the seconds of an answer; require the page itself, not an excuse."""
        headers = {"Authorization": f"Bearer {self._token}"}
        request = urllib.request.Request(self._url + path, headers=headers)
        began = time.monotonic()
        with urllib.request.urlopen(request, timeout=90) as answer:
            assert answer.status == 200
        return time.monotonic() - began


@pytest.fixture
def behind(crew: Crew) -> Iterator[Behind]:
    env = crew.stack.environment()
    with ExitStack() as stack:
        firewalls = {
            process: [
                stack.enter_context(Firewall(env[name])) for name in ("DATABASE_URL", "REDIS_URL")
            ]
            for process in PROCESSES
        }
        yield Behind(crew, firewalls)


@pytest.mark.parametrize(
    "manner",
    [
        # Once as well where the other manner cannot be tried.
        pytest.param("reset", marks=[pytest.mark.rounds] if _MAY_BE_SILENT else []),
        pytest.param(
            "silent",
            marks=pytest.mark.skipif(
                not _MAY_BE_SILENT, reason="only root may have packets dropped here"
            ),
        ),
    ],
)
def test_a_run_outlives_that_all_idle_connections_are_dropped(
    manner: Manner,
    crew: Crew,
    behind: Behind,
    lake: Path,
    recovered: Recovered,
) -> None:
    day = "2024-02-20"
    run = request_run(behind.api, "steady", day, said=manner, seconds=_RUN_SECONDS)
    await_attempts(lake, run, 1)
    behind.read_together()
    with behind.dropping(manner):
        time.sleep(3)
        slowest = behind.read_together()
        time.sleep(3)
        slowest = max(slowest, behind.read_together())
        assert crew.await_run(run) == "succeeded"
    assert all(behind.dropped[process] > 1 for process in PROCESSES), behind.dropped
    recovered(f"idle connections dropped ({manner}): a page", slowest)
    assert slowest < _ANSWERED_SECONDS
    ((number, outcome, error),) = crew.attempts(run)
    assert (number, outcome, error) == (1, "succeeded", "")
    rows = parquet.read_table(lake / "faults" / "steady" / f"partition={day}").to_pylist()
    assert [row["said"] for row in rows] == [manner]
    crew.assert_sound()
