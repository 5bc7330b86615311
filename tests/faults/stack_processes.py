"""The processes of a real stack, which tests kill, stop and double; and waits for the results."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import redis

from bench.processes import children, is_warm_parent
from slicewise_server.stack import machine, ports
from slicewise_server.stack.commands import COMMANDS, worker
from slicewise_server.stack.process import Process
from slicewise_server.stack.stack import EMBEDDED, Stack, runnable
from slicewise_server.stack.supervision import EXEC_BOUND_TO_PARENT
from tests.processes import is_alive

# A shorter one than by default: what is waited for is the same, and there are many moments.
SHORT_LEASE = {"LEASE_SECONDS": "9"}
NOBODY = "nobody"

PROJECT = Path(__file__).resolve().parents[2]
SERVERS = ("postgresql", "redis", "spark")
_READY_SECONDS = 240.0

_HELD_BY_ENDED = """
SELECT partition.id, run.id, run.state FROM assets_app_assetpartition AS partition
JOIN assets_app_run AS run ON run.id = partition.held_by_id
WHERE run.state IN ('succeeded', 'failed', 'canceled', 'skipped')
"""
# Without time there is no bucket, and what is null equals nothing.
_MISCOUNTED = """
SELECT * FROM (
    SELECT asset_id, identity, coalesce(bucket, '-infinity') AS bucket, segment, state,
           count(*) AS count
    FROM assets_app_assetpartition WHERE state <> 'missing' GROUP BY 1, 2, 3, 4, 5
) AS counted
FULL JOIN (
    SELECT asset_id, identity, coalesce(bucket, '-infinity') AS bucket, segment, state, count
    FROM assets_app_partitioncount WHERE count <> 0
) AS kept USING (asset_id, identity, bucket, segment, state)
WHERE counted.count IS DISTINCT FROM kept.count
"""

_WORKING = """
SELECT process_id FROM assets_app_gateway WHERE name LIKE %s AND NOT draining
AND last_seen > now() - interval '3 s' AND (%s::int IS NULL OR process_id = %s)
"""

Row = tuple[Any, ...]


def until(
    look: Callable[[], Any], event: str, *, seconds: float = 240.0, every: float = 0.1
) -> Any:
    """Return the result of `look` once the result is true; fail with `event` after the seconds.

    While the database is away, `look` has no result.
    """
    deadline = time.monotonic() + seconds
    while True:
        with suppress(psycopg.OperationalError):
            if result := look():
                return result
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {event}"
        time.sleep(every)


class Crew:
    """The processes of a stack by name ("web", "beat", "worker-scheduled", "spark" …), and further
    processes of the same kinds. `restore` mends the damage of a test.
    """

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._hired: dict[str, subprocess.Popen[bytes]] = {}
        self._halted: set[str] = set()
        self._frozen: set[int] = set()
        self._connection: psycopg.Connection | None = None

    # ------------------------------------------------------------ processes of the stack

    def pid(self, name: str) -> int:
        """Wait for a process of the stack or a hired process, and return the process id."""
        if name in self._hired:
            return self._hired[name].pid
        pid: int = until(lambda: self.stack.pid_of(name), f"{name} runs")
        return pid

    def warm_parent(self, name: str) -> int:
        """Return the process from which a worker's runners are forked."""

        def look() -> list[int]:
            return [pid for pid in children(self.pid(name)) if is_warm_parent(pid)]

        parent: int = until(look, f"{name} has a warm parent")[0]
        return parent

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send kill -9, or a milder signal, and return the process id. A second later the
        supervisor starts a process of the stack again.
        """
        pid = self.pid(name)
        os.kill(pid, number)
        until(lambda: not is_alive(pid), f"{name} has ended", every=0.01)
        return pid

    def freeze(self, pid: int) -> None:
        """Send SIGSTOP to a process."""
        os.kill(pid, signal.SIGSTOP)
        self._frozen.add(pid)

    def thaw(self, pid: int) -> None:
        """Send SIGCONT to a process that stopped by itself or by `freeze`."""
        self._frozen.discard(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    def halt(self, name: str) -> None:
        """End a process of the stack in good order; the process stays away until `launch`."""
        self._halted.add(name)
        self.stack.services.supervisor.halt(name)

    def launch(self, name: str) -> None:
        """Start a halted process; `ready` waits for the process."""
        self._halted.discard(name)
        self.stack.services.supervisor.launch(name)

    # ------------------------------------------------------------ more of the same kind

    def env(self) -> dict[str, str]:
        """Return the environment of the stack's own processes."""
        return {**self.stack.services.env, **self.stack.environment(), **EMBEDDED}

    def hire(
        self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        """Start one more process, by a command of `stack.commands`; no supervisor restarts the
        process.

        The process ends with the tests, in any case. Its output is in the stack's logs, without the
        output of an earlier process of the same name.
        """
        folder = self.stack.services.folder
        process = Process(
            name=name, argv=runnable(list(command)), env={**self.env(), **(env or {})}, cwd=PROJECT
        )
        description = folder.processes / f"{name}.json"
        process.describe(description)
        with (folder.logs / f"{name}.log").open("wb") as log:
            self._hired[name] = subprocess.Popen(
                [machine.python(), "-I", "-S", str(EXEC_BOUND_TO_PARENT), str(description)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self._hired[name]

    def hire_gateway(
        self, name: str, queue: str = "scheduled", env: Mapping[str, str] | None = None
    ) -> int:
        """Start one more worker of a queue of runs, under a name of its own; return its process
        once the worker works.
        """
        self.hire(name, worker(queue, "-n", f"{name}@%h"), env)
        return self.await_gateway(name)

    def hire_frail(
        self,
        name: str,
        folder: Path,
        queue: str,
        *more: str,
        env: Mapping[str, str] | None = None,
    ) -> "subprocess.Popen[bytes]":
        """Start one more worker, which falls at the moments that a folder names (`fall`)."""
        command = worker(queue, "-n", f"{name}@%h", *more)
        return self.hire(name, frail(folder, command), env)

    def await_gateway(self, name: str, *, pid: int | None = None) -> int:
        """Return the process of the gateway of this name (before the @), once the process works, as
        `pid` if given.
        """

        def look() -> list[int]:
            processes = self.rows(_WORKING, f"{name}@%", pid, pid)
            # One of its name that was killed just now may still seem to work.
            return [int(process) for (process,) in processes if is_alive(process)]

        processes: list[int] = until(look, f"the gateway {name} works")
        return processes[0]

    def dismiss(self, name: str) -> None:
        """Kill -9 for a hired process."""
        process = self._hired.pop(name)
        self.thaw(process.pid)
        process.kill()
        process.wait()

    def log(self, name: str) -> str:
        """Return the output of a process."""
        return (self.stack.services.folder.logs / f"{name}.log").read_text(errors="replace")

    # ------------------------------------------------------------ whole again

    def restore(self) -> None:
        """Mend all damage and wait until the whole stack can be used."""
        for pid in list(self._frozen):
            self.thaw(pid)
        for name in list(self._hired):
            self.dismiss(name)
        for name in sorted(self._halted, key=[*SERVERS, *COMMANDS].index):
            self.launch(name)
        self.ready()

    def ready(self) -> None:
        """Wait until servers answer, all processes of the stack run, and workers are alive."""
        until(self._servers_answer, "servers answer", seconds=_READY_SECONDS)
        self.stack.wait()
        for queue in ("scheduled", "backfill"):
            self.await_gateway(queue, pid=self.pid(f"worker-{queue}"))

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.close()

    def _servers_answer(self) -> bool:
        env = self.stack.environment()
        try:
            with redis.Redis.from_url(env["REDIS_URL"], socket_timeout=10) as client:
                client.ping()
        except redis.RedisError:
            return False
        self.rows("SELECT 1")
        return ports.accepts(urlsplit(env["SPARK_REMOTE"]).port or 0)

    # ------------------------------------------------------------ what the database says

    def rows(self, statement: str, *values: Any) -> list[Row]:
        """Return rows of the stack's database; raise psycopg.OperationalError while the database is
        away.
        """
        if self._connection is None or self._connection.closed or self._connection.broken:
            url = self.stack.environment()["DATABASE_URL"]
            self._connection = psycopg.connect(url, autocommit=True, connect_timeout=30)
        cursor = self._connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def value(self, statement: str, *values: Any) -> Any:
        """Return the only value of the only row."""
        ((value,),) = self.rows(statement, *values)
        return value

    def run_state(self, run: int) -> str:
        """Return the state of a run."""
        return str(self.value("SELECT state FROM assets_app_run WHERE id = %s", run))

    def await_run(self, run: int, *states: str, seconds: float = 240.0) -> str:
        """Return the state of a run once the run is in one of these states; by default, in a final
        state.
        """
        wanted = states or ("succeeded", "failed", "canceled", "skipped")

        def look() -> str | None:
            state = self.run_state(run)
            return state if state in wanted else None

        last_state: str = until(look, f"run {run} is {' or '.join(wanted)}", seconds=seconds)
        return last_state

    def materializations(self, asset: str) -> dict[str, tuple[int, int]]:
        """Return the version and the number of materializations of each partition of an asset that
        was ever made.
        """
        return {
            key: (version, count)
            for key, version, count in self.rows(
                "SELECT partition.key, partition.version, count(materialization.id)"
                " FROM assets_app_assetpartition AS partition"
                " JOIN assets_app_asset AS asset ON asset.id = partition.asset_id"
                " JOIN assets_app_materialization AS materialization"
                " ON materialization.partition_id = partition.id"
                " WHERE asset.name = %s GROUP BY 1, 2 ORDER BY 1",
                asset,
            )
        }

    def assert_sound(self) -> None:
        """Require that no partition belongs to an ended run, and that stored counts agree with the
        partitions.
        """
        assert self.rows(_HELD_BY_ENDED) == []
        assert self.rows(_MISCOUNTED) == []

    def attempts(self, run: int) -> list[tuple[int, str, str]]:
        """Return number, outcome and error of each attempt at a run."""
        return [
            (number, outcome, error)
            for number, outcome, error in self.rows(
                "SELECT number, outcome, error FROM assets_app_runattempt WHERE run_id = %s"
                " ORDER BY number",
                run,
            )
        ]


def frail(folder: Path, command: Sequence[str]) -> list[str]:
    """Return a command of Celery whose process falls at the moments that a folder names."""
    python, _, *rest = command
    return [python, "-m", "tests.faults.crash_points", str(folder), *rest]
