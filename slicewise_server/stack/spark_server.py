"""A Spark Connect server of the pyspark wheel: loopback only, with a token, knowing no secret."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

from slicewise.process import ForeignFolderError, ensure_folder
from slicewise.process.python_start import python_path
from slicewise_server.stack import machine, ports
from slicewise_server.stack.errors import StackError
from slicewise_server.stack.folder import DataFolder
from slicewise_server.stack.java import java_home
from slicewise_server.stack.process import Account, Process, scrubbed, write_private

SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


class SparkServer:
    """One local Spark, in a process of its own, that runs reach by Spark Connect."""

    name = "spark"

    def __init__(
        self,
        folder: DataFolder,
        port: int,
        ui_port: int,
        passed: Mapping[str, str],
        account: Account | None = None,
        umask: int | None = None,
    ) -> None:
        """Describe a server that runs as `account`, or as this process's user without one.

        `passed` are the variables that user code may see; UDFs get these variables.
        """
        self.folder = folder.path / "spark"
        self.port = port
        self.ui_port = ui_port
        self._token = folder.credentials().spark_token
        self._passed = passed
        self._account = account
        self._umask = umask

    @property
    def url(self) -> str:
        """The value of SPARK_REMOTE; a token without TLS needs the host name `localhost`."""
        return f"sc://localhost:{self.port}/;token={self._token}"

    @property
    def ui_url(self) -> str:
        """The address of Spark's own pages."""
        return f"http://{ports.HOST}:{self.ui_port}"

    @property
    def _work(self) -> Path:
        """The folder that Spark writes to: a folder of the account below the stack's."""
        return self.folder / self._account.name if self._account else self.folder

    def prepare(self) -> None:
        """Write the configuration, and remove files of an earlier server."""
        self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        if self._account is not None:
            self.folder.chmod(0o755)  # the account reads the configuration here, and a Java
            user = self._account.uid, self._account.gid
            try:
                ensure_folder(self._work, user=user, mode=0o700)
            except ForeignFolderError as error:
                raise StackError(str(error)) from error
        for earlier in {self.folder, self._work}:
            shutil.rmtree(earlier / "scratch", ignore_errors=True)
        if self._account is None:
            (self._work / "scratch").mkdir(mode=0o700)
        lines = [f"{name} {value}" for name, value in self._properties().items()]
        properties = self.folder / "spark.properties"
        write_private(properties, "\n".join(lines) + "\n")
        if self._account is not None:
            properties.chmod(0o644)  # the token is not in this file

    def process(self) -> Process:
        """Return the description of the server's process: spark-submit ends in `exec java`."""
        home = machine.find_spark()
        if home is None:
            raise StackError("The package pyspark is not installed; set SPARK_REMOTE to a server.")
        return Process(
            name=self.name,
            argv=[
                *["/bin/bash", str(home / "bin" / "spark-submit"), "--class", SERVER_CLASS],
                *["--properties-file", str(self.folder / "spark.properties"), "spark-internal"],
            ],
            env={
                **scrubbed(os.environ),
                **({"HOME": str(self._work)} if self._account else {}),
                **self._passed,
                "JAVA_HOME": str(java_home(self.folder, os.environ)),
                "SPARK_HOME": str(home),
                "SPARK_LOCAL_IP": ports.HOST,
                "SPARK_CONNECT_AUTHENTICATE_TOKEN": self._token,
                "PYSPARK_PYTHON": machine.python(),
                # The Python workers of Spark run user code.
                "PYTHONPATH": python_path(self._passed.get("PYTHONPATH", "")),
                "OPENBLAS_NUM_THREADS": "1",
                "TZ": "UTC",
            },
            cwd=self._work,
            account=self._account,
            umask=self._umask,
            death_signal=signal.SIGKILL,
        )

    def is_ready(self) -> bool:
        """Return whether the server accepts connections: Spark listens only when ready to serve."""
        return ports.accepts(self.port)

    def settle(self) -> None:
        """Do nothing: Spark needs no preparation."""

    def _properties(self) -> dict[str, str]:
        cores = os.cpu_count() or 1
        memory = min(4096, machine.memory_bytes() // (4 * 1024 * 1024))
        # Hadoop's file system sets modes by a umask of its own, not by the umask of the process.
        umask = "" if self._umask is None else f"{self._umask:03o}"
        return {
            **({"spark.hadoop.fs.permissions.umask-mode": umask} if umask else {}),
            "spark.app.name": "Slicewise",
            "spark.master": "local[*]",
            "spark.driver.bindAddress": ports.HOST,
            "spark.driver.host": ports.HOST,
            "spark.driver.memory": f"{memory}m",
            "spark.connect.grpc.binding.address": ports.HOST,
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.local.dir": str(self._work / "scratch"),
            "spark.sql.warehouse.dir": str(self._work / "warehouse"),
            "spark.sql.session.timeZone": "UTC",
            # Small data on one machine: hundreds of tiny tasks would take longer than the work.
            "spark.sql.shuffle.partitions": str(max(2 * cores, 4)),
            "spark.scheduler.mode": "FAIR",
            "spark.ui.port": str(self.ui_port),
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "WARN",
            **({"spark.jars": ",".join(jars)} if (jars := machine.jdbc_jars(os.environ)) else {}),
        }
