"""A warm parent, and runs asked of it as a worker would."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from slicewise.runner.client import WarmParent
from slicewise_server.stack import Services
from slicewise_server.stack.machine import jdbc_jars
from tests.runtime.cluster import Cluster, running_cluster, submission
from tests.runtime.runs import Runs
from tests.runtime.shop import Shop


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


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Spark standalone cluster of a master and two workers."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def submitted_runs(warm_parent: WarmParent, tmp_path: Path, cluster: Cluster) -> Runs:
    """Runs that have a Spark application each, on a core of the cluster."""
    return Runs(
        warm_parent, tmp_path, submit=submission(cluster.master, **{"spark.cores.max": "1"})
    )


@pytest.fixture
def engine_runs(request: pytest.FixtureRequest, warm_parent: WarmParent, tmp_path: Path) -> Runs:
    """Runs by an engine, the parameter: on the shared server, in one process, on a cluster."""
    if request.param == "connect":
        return Runs(warm_parent, tmp_path, remote=request.getfixturevalue("spark_remote"))
    if request.param == "local":
        return Runs(warm_parent, tmp_path, submit=submission("local[2]"))
    cluster: Cluster = request.getfixturevalue("cluster")
    return Runs(warm_parent, tmp_path, submit=submission(cluster.master))


@pytest.fixture
def shop(services: Services) -> Iterator[Shop]:
    """A schema of its own on a real PostgreSQL."""
    open_shop = Shop(services.environment()["DATABASE_URL"])
    yield open_shop
    open_shop.database.execute("DROP SCHEMA shop CASCADE")
    open_shop.database.close()


@pytest.fixture
def jdbc_driver() -> None:
    """Spark's way to PostgreSQL; without it the test is left out."""
    if not jdbc_jars(os.environ):
        pytest.skip("no JDBC driver of PostgreSQL on this machine: see bin/ensure-jdbc")
