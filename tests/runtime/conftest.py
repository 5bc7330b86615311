"""A warm parent, and runs asked of it as a worker would."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from slicewise.runner.client import WarmParent
from tests.runtime.runs import Runs

_START_SECONDS = 90


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
