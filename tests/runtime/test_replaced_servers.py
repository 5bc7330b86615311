"""A Spark Connect server that is replaced or stopped while a session is in use.

Any error that the client makes of the event is a failure of the platform.
"""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pytest

from slicewise import spark
from slicewise.platform_failures import is_platform_failure
from slicewise_server.stack.folder import DataFolder
from slicewise_server.stack.process import scrubbed, write_private
from slicewise_server.stack.pytest_plugin import BRIEF
from slicewise_server.stack.services import Services
from tests.runtime.errors import raised_by
from tests.runtime.switched_address import Door

# Longer than a busy machine takes to replace the server; the session is interrupted afterwards.
_SLEEP = "reflect('java.lang.Thread', 'sleep', 60000L)"


@pytest.fixture(scope="module")
def other_server(tmp_path_factory: pytest.TempPathFactory, spark_remote: str) -> Iterator[Services]:
    """Start a second server, which takes the token of the first."""
    data = tmp_path_factory.mktemp("another")
    _, _, token = spark_remote.partition("token=")
    credentials = replace(DataFolder(data).credentials(), spark_token=token)
    write_private(data / "credentials.json", json.dumps(asdict(credentials)))
    services = Services(data, env={**scrubbed(os.environ), **BRIEF})
    services.start(["spark"])
    yield services
    services.stop()


def port_of(remote: str) -> int:
    port = urlsplit(remote).port
    assert port is not None
    return port


@pytest.fixture
def door(spark_remote: str) -> Iterator[Door]:
    open_door = Door(port_of(spark_remote))
    yield open_door
    open_door.close()


@pytest.fixture
def session(door: Door, spark_remote: str) -> Iterator[Any]:
    """Open a session on the first server, by an address that the server does not know."""
    session_id = str(uuid.uuid4())
    opened: Any = spark.open_session(
        spark_remote.replace(f":{port_of(spark_remote)}", f":{door.port}"), session_id
    )
    opened.range(1).count()
    yield opened
    opened.release_session_on_close = False
    spark.close_session(opened)
    spark.interrupt(spark_remote, session_id)


def a_job(session: Any) -> object:
    """Keep Spark busy until the session is interrupted, or for a minute."""
    return session.range(0, 1, 1, 1).selectExpr(_SLEEP).collect()


def test_a_server_that_is_replaced_during_a_job_is_the_platform(
    session: Any, door: Door, other_server: Services
) -> None:
    with ThreadPoolExecutor() as pool:
        working = pool.submit(a_job, session)
        time.sleep(1)
        assert working.running()
        door.lead_to(port_of(other_server.environment()["SPARK_REMOTE"]))
        assert is_platform_failure(raised_by(working.result))
    assert is_platform_failure(raised_by(session.range(1).count))


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.range(1).count(),
        lambda session: session.range(1).schema,
        lambda session: session.conf.get("spark.app.id"),
        lambda session: session.createDataFrame([(1,)], "n int").collect(),
    ],
    ids=["count", "schema", "conf", "rows of one's own"],
)
def test_a_server_that_was_replaced_between_two_calls_is_the_platform(
    session: Any, door: Door, other_server: Services, ask: Callable[[Any], object]
) -> None:
    door.lead_to(port_of(other_server.environment()["SPARK_REMOTE"]))
    assert is_platform_failure(raised_by(lambda: ask(session)))
    assert is_platform_failure(raised_by(lambda: ask(session)))


def many_jobs(session: Any) -> object:
    """Run jobs one after the other, without end."""
    return [session.range(10_000).selectExpr("sum(id)").collect() for _ in count()]


def test_a_server_that_is_stopped_in_good_order_is_the_platform(
    other_server: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "_MAX_RETRIES", 1)
    remote = other_server.environment()["SPARK_REMOTE"]
    sessions = [spark.open_session(remote, str(uuid.uuid4())) for _ in range(2)]
    with ThreadPoolExecutor() as pool:
        working = [pool.submit(many_jobs, session) for session in sessions]
        time.sleep(2)
        other_server.supervisor.halt("spark")
        for work in working:
            error = raised_by(work.result)
            assert is_platform_failure(error), repr(error)
    for session in sessions:
        session.release_session_on_close = False
        spark.close_session(session)


def test_an_error_of_the_query_is_the_codes(session: Any) -> None:
    assert not is_platform_failure(raised_by(session.sql("SELECT 1 / 0").collect))
    assert not is_platform_failure(raised_by(lambda: session.table("nowhere").collect()))
