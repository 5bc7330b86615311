"""A Spark standalone cluster of a master and two workers, from the pyspark wheel."""

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from slicewise import spark
from slicewise.runner.processes import die_with_parent
from slicewise_server.stack import machine, ports
from slicewise_server.stack.machine import jdbc_jars
from slicewise_server.stack.process import scrubbed
from slicewise_server.stack.pytest_plugin import BRIEF_JAVA, SPARK_JAVA

_START_SECONDS = 240
_DEPLOY = "org.apache.spark.deploy"


def spark_home() -> Path:
    """Find the Spark of the wheel."""
    home = machine.find_spark()
    assert home is not None
    return home


def submission(master: str, **conf: str) -> dict[str, Any]:
    """Return the request that a worker sends to a runner of the engine ``submit``, without the
    facts of a run.
    """
    java = machine.find_java(os.environ)
    assert java is not None
    session = {name: str(value) for name, value in spark.SESSION_CONF.items()}
    brief = {
        "spark.log.level": "WARN",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": SPARK_JAVA,
        "spark.executor.extraJavaOptions": SPARK_JAVA,
        "spark.sql.shuffle.partitions": "2",
    }
    jars = {"spark.jars": os.environ["SLICEWISE_JDBC_JARS"]} if jdbc_jars(os.environ) else {}
    return {
        "engine": "submit",
        "spark_home": str(spark_home()),
        "master": master,
        "conf": {**brief, **session, **jars, **conf},
        "env": {
            "JAVA_HOME": str(java.home),
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": ports.HOST,
            "SPARK_LAUNCHER_OPTS": BRIEF_JAVA,
            "PYSPARK_PYTHON": machine.python(),
        },
    }


@dataclass(frozen=True)
class Cluster:
    """A running cluster."""

    master: str
    page: str

    def state(self) -> dict[str, Any]:
        """Return the master's account of workers and applications."""
        with urllib.request.urlopen(f"{self.page}/json/", timeout=60) as answer:
            state: dict[str, Any] = json.load(answer)
            return state

    def applications(self) -> set[str]:
        """Return the names of the running applications."""
        return {application["name"] for application in self.state()["activeapps"]}


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """Run a master and two workers of a core each, on the loopback address."""
    port, page, *pages = ports.pick(4)
    cluster = Cluster(f"spark://{ports.HOST}:{port}", f"http://{ports.HOST}:{page}")
    where = ["--host", ports.HOST, "--webui-port"]
    master = ["master.Master", *where, str(page), "--port", str(port)]
    size = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work")]
    workers = [
        ["worker.Worker", *where, str(page_port), *size, cluster.master] for page_port in pages
    ]
    processes = [_start(command, folder) for command in (master, *workers)]
    try:
        _wait_for_workers(cluster, len(workers))
        yield cluster
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def _start(command: list[str], folder: Path) -> "subprocess.Popen[bytes]":
    name, *arguments = command
    java = machine.find_java(os.environ)
    assert java is not None
    env = {
        **scrubbed(os.environ),
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": ports.HOST,
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        "SPARK_DAEMON_JAVA_OPTS": SPARK_JAVA,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LAUNCHER_OPTS": BRIEF_JAVA,
    }
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            ["/bin/bash", str(spark_home() / "bin/spark-class"), f"{_DEPLOY}.{name}", *arguments],
            env=env,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=partial(die_with_parent, os.getpid()),
        )


def _wait_for_workers(cluster: Cluster, count: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        try:
            if cluster.state()["aliveworkers"] == count:
                return
        except (OSError, ValueError):
            pass  # nobody listens, or the master answers with a page that is no JSON: not yet
        time.sleep(0.1)
    raise AssertionError(f"the cluster has not come up within {_START_SECONDS} s")
