"""A Spark Connect server, a warm parent, and runs asked of it as a worker would."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from slicewise.runner.client import WarmParent
from tests.runtime.runs import Runs

_START_SECONDS = 90


@pytest.fixture(scope="session")
def spark_remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server: SPARK_REMOTE, or one of the tests' own."""
    given = os.environ.get("SPARK_REMOTE")
    if given:
        yield given
        return
    token, port = secrets.token_hex(16), _free_port()
    process = _start_server(tmp_path_factory.mktemp("spark"), token, port)
    try:
        _wait_for(port, process)
        yield f"sc://localhost:{port}/;token={token}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="session")
def warm_parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmParent]:
    """A warm parent whose environment is an allow-list of three names."""
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "LAKE": "/lake"}
    parent = WarmParent(env=env, cache=tmp_path_factory.mktemp("cache"))
    parent.start()
    yield parent
    parent.close()


@pytest.fixture
def runs(warm_parent: WarmParent, tmp_path: Path) -> Runs:
    """Runs without Spark, of bundles that the test writes."""
    return Runs(warm_parent, tmp_path, remote=None)


@pytest.fixture
def spark_runs(warm_parent: WarmParent, tmp_path: Path, spark_remote: str) -> Runs:
    """Runs with Spark, of bundles that the test writes."""
    return Runs(warm_parent, tmp_path, remote=spark_remote)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start_server(folder: Path, token: str, port: int) -> "subprocess.Popen[bytes]":
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.authenticate.token": token,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "2g"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    return subprocess.Popen(
        [*command, "spark-internal"],
        env={**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        stdout=(folder / "log").open("wb"),
        stderr=subprocess.STDOUT,
        cwd=folder,
        start_new_session=True,
    )


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the Spark Connect server ended with {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise RuntimeError(f"the Spark Connect server did not listen within {_START_SECONDS} s")
