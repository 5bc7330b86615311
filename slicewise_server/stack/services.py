"""PostgreSQL, Redis and Spark: embedded servers, or servers that the environment names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from slicewise_server.stack import ports
from slicewise_server.stack.code_account import chosen_account
from slicewise_server.stack.errors import StackError
from slicewise_server.stack.folder import DataFolder
from slicewise_server.stack.postgresql import PostgreSQL
from slicewise_server.stack.process import Process
from slicewise_server.stack.redis_server import RedisServer
from slicewise_server.stack.spark_server import SparkServer
from slicewise_server.stack.supervision import Supervisor, wait_for

START_SECONDS = 240  # some 10 s on an idle machine; a busy one must not fail
GROUP = "services"
SHARED_UMASK = 0o002


class Server(Protocol):
    """An embedded server: PostgreSQL, Redis or Spark."""

    @property
    def name(self) -> str: ...
    @property
    def url(self) -> str: ...
    def prepare(self) -> None: ...
    def process(self) -> Process: ...
    def is_ready(self) -> bool: ...
    def settle(self) -> None: ...


class Services:
    """The servers that our own processes need, below one data folder.

    `env` names servers to use instead (DATABASE_URL, REDIS_URL, SPARK_REMOTE); by default `env` is
    this process's environment. URLs are known before any server is started. `database_options` are
    further settings of the embedded PostgreSQL.
    """

    def __init__(
        self,
        data: Path,
        env: Mapping[str, str] | None = None,
        database_options: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = DataFolder(data)
        self.env = dict(os.environ if env is None else env)
        self.supervisor = Supervisor(self.folder)
        self._database_options = database_options
        self._servers: dict[str, Server] = {}
        self._settled: set[str] = set()
        self._urls: dict[str, str] = {}

    def reserve(self) -> None:
        """Claim the data folder and choose ports; start no server yet."""
        if self._urls:
            return
        self.folder.take()
        database, broker, spark, spark_ui = ports.pick(4)
        embedded: dict[str, Server] = {
            "DATABASE_URL": PostgreSQL(self.folder, database, self._database_options),
            "REDIS_URL": RedisServer(self.folder, broker),
            "SPARK_REMOTE": self._spark_server(spark, spark_ui),
        }
        for setting, server in embedded.items():
            if not self.env.get(setting):
                self._servers[server.name] = server
            self._urls[setting] = self.env.get(setting) or server.url

    def start(
        self,
        names: Iterable[str] | None = None,
        wait: bool = True,
        others: Mapping[str, Sequence[Process]] | None = None,
    ) -> None:
        """Start the embedded servers of `names`, by default all.

        `others` are groups of processes for the same supervisor, which are not launched yet.
        """
        self.reserve()
        chosen = [n for n in self._servers if names is None or n in set(names)]
        for name in chosen:
            self._servers[name].prepare()
        if not self.supervisor.is_alive():
            own = [server.process() for server in self._servers.values()]
            self.supervisor.start({GROUP: own, **(others or {})})
        for name in chosen:
            if name not in self._settled:
                self.supervisor.launch(name)
        if wait:
            self.wait(chosen)

    def wait(self, names: Iterable[str] | None = None) -> None:
        """Wait until the embedded servers of `names` can be used."""
        for name, server in self._servers.items():
            if name in self._settled or (names is not None and name not in set(names)):
                continue
            wait_for(
                server.is_ready,
                name,
                seconds=START_SECONDS,
                broken=lambda name=name: self.supervisor.complaint(name),  # type: ignore[misc]
            )
            server.settle()
            self._settled.add(name)

    def stop(self) -> None:
        """End the started servers and release the data folder."""
        self.supervisor.stop()
        self._settled.clear()
        self._servers.clear()
        self._urls.clear()
        self.folder.release()

    def passed(self) -> dict[str, str]:
        """Return the variables of SLICEWISE_RUNNER_ENV, which user code may see."""
        names = [name.strip() for name in self.env.get("SLICEWISE_RUNNER_ENV", "").split(",")]
        return {name: self.env[name] for name in names if name in self.env}

    def _spark_server(self, port: int, ui_port: int) -> SparkServer:
        """Describe a Spark of the user of code, whose files Spark writes beside the runs."""
        # Where each run has a user, the runs and Spark share files by their group.
        umask = SHARED_UMASK if self.env.get("SLICEWISE_RUNNER_USERS") else None
        account = chosen_account(self.env)
        return SparkServer(self.folder, port, ui_port, self.passed(), account, umask)

    def environment(self) -> dict[str, str]:
        """Return the settings with the addresses of these servers."""
        if not self._urls:
            raise StackError("The stack is not running.")
        spark = self._servers.get(SparkServer.name)
        ui = {"SPARK_UI_URL": spark.ui_url} if isinstance(spark, SparkServer) else {}
        return {
            **self._urls,
            **ui,
            "SECRET_KEY": self.env.get("SECRET_KEY") or self.folder.credentials().secret_key,
            "SLICEWISE_DATA": str(self.folder.path),
        }

    def pid_of(self, name: str) -> int:
        """Return the process id of a server ("postgresql", "redis" or "spark")."""
        return self.supervisor.pid_of(name)
