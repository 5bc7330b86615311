"""A warm parent, and runs of that parent, requested as a worker does."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from slicewise.io import session_sql
from slicewise.runner.parent_client import WarmParent
from slicewise_server.stack.machine import jdbc_jars
from slicewise_server.stack.services import Services
from tests.runtime.cluster import Cluster, running_cluster, submission
from tests.runtime.postgres_schema import Shop
from tests.runtime.runs import Runs


@pytest.fixture(scope="session")
def warm_parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmParent]:
    """Start a warm parent whose environment is an allow-list of three names."""
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "LAKE": "/lake"}
    parent = WarmParent(env=env, cache=tmp_path_factory.mktemp("cache"))
    parent.start()
    yield parent
    parent.close()


@pytest.fixture
def runs(warm_parent: WarmParent, tmp_path: Path) -> Runs:
    """Return runs without Spark, of bundles that the test writes."""
    return Runs(warm_parent, tmp_path, remote=None)


@pytest.fixture
def spark_runs(warm_parent: WarmParent, tmp_path: Path, spark_remote: str) -> Runs:
    """Return runs with Spark, of bundles that the test writes."""
    return Runs(warm_parent, tmp_path, remote=spark_remote)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a Spark standalone cluster of a master and two workers."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def submitted_runs(warm_parent: WarmParent, tmp_path: Path, cluster: Cluster) -> Runs:
    """Return runs that have a Spark application each, on a core of the cluster."""
    return Runs(
        warm_parent, tmp_path, submit=submission(cluster.master, **{"spark.cores.max": "1"})
    )


@pytest.fixture
def engine_runs(request: pytest.FixtureRequest, warm_parent: WarmParent, tmp_path: Path) -> Runs:
    """Return runs by the engine of the parameter: a shared server, one process, or a cluster."""
    if request.param == "connect":
        return Runs(warm_parent, tmp_path, remote=request.getfixturevalue("spark_remote"))
    if request.param == "local":
        return Runs(warm_parent, tmp_path, submit=submission("local[2]"))
    cluster: Cluster = request.getfixturevalue("cluster")
    return Runs(warm_parent, tmp_path, submit=submission(cluster.master))


@pytest.fixture
def shop(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """Create a schema for the test on a real PostgreSQL.

    Publications of the test's own process wait for a lock, and for the server, longer than a busy
    machine takes.
    """
    monkeypatch.setattr(session_sql, "_PATIENCE", "60s")
    monkeypatch.setattr(session_sql, "_CONNECT_SECONDS", 60)
    open_shop = Shop(services.environment()["DATABASE_URL"])
    yield open_shop
    open_shop.database.execute("DROP SCHEMA shop CASCADE")
    open_shop.database.close()


@pytest.fixture
def jdbc_driver() -> None:
    """Skip the test where Spark has no driver for PostgreSQL."""
    if not jdbc_jars(os.environ):
        pytest.skip("no JDBC driver of PostgreSQL on this machine: see bin/ensure-jdbc")
