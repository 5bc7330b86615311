"""PostgreSQL and Redis under the supervisor: rights to connect, and restarts after a kill."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from slicewise_server.stack import ports
from slicewise_server.stack.errors import StackError
from slicewise_server.stack.pytest_plugin import DATABASE_SERVERS
from slicewise_server.stack.services import Services
from slicewise_server.stack.supervision import wait_for
from tests.processes import are_gone, descendants, is_alive

ONCE = Retry(NoBackoff(), retries=0)


@pytest.fixture
def fresh_services(folder: Path) -> Services:
    return Services(folder, env={})


def test_postgresql_lets_nobody_in_without_the_password(services: Services) -> None:
    address = urlsplit(services.environment()["DATABASE_URL"])
    for user in ("slicewise", "postgres"):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(host=address.hostname, port=address.port, user=user, dbname="slicewise")


def test_our_database_role_is_no_superuser(services: Services) -> None:
    with psycopg.connect(services.environment()["DATABASE_URL"]) as connection:
        row = connection.execute("SELECT current_setting('is_superuser'), version()").fetchone()
    assert row is not None
    assert row[0] == "off"
    assert "PostgreSQL" in row[1]


def test_redis_lets_nobody_in_without_the_password(services: Services) -> None:
    url = services.environment()["REDIS_URL"]
    assert redis.Redis.from_url(url).ping()
    address = urlsplit(url)
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(host=str(address.hostname), port=int(address.port or 0), retry=ONCE).ping()


def test_servers_find_no_secret_of_others_in_their_environment(services: Services) -> None:
    assert {"SECRET_KEY", "DATABASE_URL"} <= os.environ.keys()
    for name in DATABASE_SERVERS:
        # Not from /proc: Redis writes its title over its environment.
        environment = services._servers[name].process().env
        assert environment
        assert not {"SECRET_KEY", "DATABASE_URL"} & environment.keys()


def test_secrets_are_readable_by_their_owner_alone(services: Services) -> None:
    files = [path for path in services.folder.processes.iterdir() if path.is_file()]
    files.append(services.folder.path / "credentials.json")
    assert len(files) > 3
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)


def test_a_second_start_on_the_same_folder_is_refused(services: Services) -> None:
    with pytest.raises(StackError, match="already running"):
        Services(services.folder.path, env={}).start()


def test_a_killed_server_comes_back(fresh_services: Services) -> None:
    fresh_services.start(["redis"])
    client = redis.Redis.from_url(fresh_services.environment()["REDIS_URL"], retry=ONCE)
    try:
        first = fresh_services.pid_of("redis")
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: _pings(client), "redis", seconds=120)
        assert fresh_services.pid_of("redis") not in (0, first)
    finally:
        fresh_services.stop()


def test_stopping_leaves_no_process(fresh_services: Services) -> None:
    fresh_services.start(DATABASE_SERVERS)
    supervisor = fresh_services.supervisor.pid
    processes = descendants(supervisor) | {supervisor}
    assert len(processes) > 5
    fresh_services.stop()
    assert are_gone(processes)


def test_a_killed_supervisor_leaves_no_process_and_the_next_start_works(
    fresh_services: Services,
) -> None:
    fresh_services.start(DATABASE_SERVERS)
    supervisor = fresh_services.supervisor.pid
    processes = descendants(supervisor)
    os.kill(supervisor, signal.SIGKILL)
    assert are_gone(processes)
    fresh_services.stop()
    fresh_services.start(DATABASE_SERVERS)
    fresh_services.stop()


def test_a_killed_postgresql_comes_back_with_its_data(fresh_services: Services) -> None:
    fresh_services.start(["postgresql"])
    url = fresh_services.environment()["DATABASE_URL"]
    try:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
        os.kill(fresh_services.pid_of("postgresql"), signal.SIGKILL)
        wait_for(lambda: _reads(url), "postgresql", seconds=120)
    finally:
        fresh_services.stop()


def test_the_pid_file_of_a_server_long_gone_does_not_prevent_a_start(
    fresh_services: Services,
) -> None:
    fresh_services.start(["postgresql"])
    fresh_services.stop()
    # After a power cut the number in the file may belong to anybody, here to this test.
    cluster = fresh_services.folder.path / "postgresql" / "cluster"
    stale = cluster / "postmaster.pid"
    stale.write_text(f"{os.getpid()}\n{cluster}\n1\n5432\n\n127.0.0.1\n")
    os.chown(stale, cluster.stat().st_uid, cluster.stat().st_gid)
    fresh_services.start(["postgresql"])
    fresh_services.stop()


def test_a_database_that_the_environment_names_is_used_and_none_is_started(
    services: Services, folder: Path
) -> None:
    url = services.environment()["DATABASE_URL"]
    beside = Services(folder, env={"DATABASE_URL": url})
    try:
        beside.start(["redis", "postgresql"])
        assert beside.environment()["DATABASE_URL"] == url
        assert not (folder / "postgresql").exists()
        assert is_alive(beside.pid_of("redis"))
    finally:
        beside.stop()


def test_a_folder_that_the_servers_user_cannot_enter_is_refused_in_words(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives PostgreSQL to another user")
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    services = Services(closed / "data", env={})
    with pytest.raises(StackError, match="cannot enter"):
        services.start(["postgresql"])
    services.stop()


def test_ports_are_free_and_differ() -> None:
    picked = ports.pick(5)
    assert len(set(picked)) == 5
    assert all(ports.is_free(port) for port in picked)


def test_a_port_that_a_stack_has_claimed_is_no_other_stack_s() -> None:
    first = ports.claim()
    second = ports.claim(first.port)
    assert second.port != first.port
    first.give_up()
    third = ports.claim(first.port)
    assert third.port == first.port
    for claimed in (second, third):
        claimed.give_up()


def test_a_port_on_which_somebody_listens_is_not_claimed() -> None:
    with socket.create_server((ports.HOST, 0), reuse_port=True) as server:
        port = server.getsockname()[1]
        claimed = ports.claim(port)
        assert claimed.port != port
        claimed.give_up()
    again = ports.claim(port)
    assert again.port == port
    again.give_up()


def test_a_port_that_has_to_be_that_one_is_refused_where_it_is_taken() -> None:
    with socket.create_server((ports.HOST, 0), reuse_port=True) as server:
        port = server.getsockname()[1]
        with pytest.raises(StackError, match=f"Port {port} is taken"):
            ports.claim_exactly(port)
    claimed = ports.claim_exactly(port)
    with pytest.raises(StackError, match=f"Port {port} is taken"):
        ports.claim_exactly(port)
    claimed.give_up()


def _pings(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except (redis.ConnectionError, redis.TimeoutError):
        return False


def _reads(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            return connection.execute("SELECT one FROM kept").fetchone() == (1,)
    except psycopg.OperationalError:
        return False
