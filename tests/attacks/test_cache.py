"""A person who can write into Redis gets no code into Slicewise's processes, and no cache among the
messages.
"""

import os
import pickle
import time
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured
from rest_framework.test import APIClient

from assets_app.catalogue.services import sync_bundles
from slicewise_server.redis_urls import cache_url, databases_named, with_database
from slicewise_server.stack import doctor, redis_cache
from slicewise_server.stack.services import Services

THROTTLE = "throttle-tokens-127.0.0.1"
WRONG = {"username": "nobody", "password": "wrong"}


class Trap:
    """An object that writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.write_text, (self.path, "ran")


@pytest.fixture
def cache_server(services: Services) -> redis.Redis:
    """Connect to the server, at the database of the cache."""
    return redis.Redis.from_url(settings.CACHES["default"]["LOCATION"])


@pytest.fixture(autouse=True)
def empty_cache(services: Services) -> None:
    cache.clear()


@pytest.mark.django_db
def test_a_pickle_in_the_cache_runs_nothing(cache_server: redis.Redis, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    cache_server.set(cache.make_key(THROTTLE), pickle.dumps(Trap(trap)))
    answer = APIClient().post("/api/v1/tokens/", WRONG, format="json")
    assert answer.status_code == 401
    assert not trap.exists()
    # It counted as absent, so that counting began anew.
    assert len(cache.get(THROTTLE)) == 1


@pytest.mark.parametrize("stored", [b"", b"\x80\x05K\x05.", b"\xff\xfe", b"[1,", b"[" * 100_000])
def test_an_entry_that_cannot_be_read_counts_as_absent(
    cache_server: redis.Redis, stored: bytes
) -> None:
    cache_server.set(cache.make_key("entry"), stored)
    assert cache.get("entry", "absent") == "absent"
    assert cache.get_many(["entry"]) == {}


@pytest.mark.parametrize("value", [[1763820745.25, 1763820744.5], "a sentence: é", 7, None, True])
def test_an_entry_comes_back_as_it_was(value: object) -> None:
    cache.set("entry", value)
    assert cache.get("entry", "absent") == value


def test_a_number_is_counted_up(services: Services) -> None:
    cache.set("number", 1)
    assert cache.incr("number") == 2
    assert cache.get("number") == 2


def test_the_cache_is_cleared_without_the_messages(services: Services) -> None:
    broker = redis.Redis.from_url(settings.REDIS_URL)
    cache.set("entry", time.time())
    assert not [key for key in broker.scan_iter() if b"slicewise:" in key]
    broker.rpush("a queue of the test", "message")
    try:
        cache.clear()
        assert broker.llen("a queue of the test") == 1
    finally:
        broker.delete("a queue of the test")


@pytest.mark.parametrize(
    ("broker", "database", "cache_at"),
    [
        ("redis://:word@127.0.0.1:7001/0", None, "redis://:word@127.0.0.1:7001/1"),
        ("redis://:word@redis:6379/0", 3, "redis://:word@redis:6379/3"),
        ("rediss://redis", None, "rediss://redis/1"),
        ("redis://redis/1", None, "redis://redis/2"),
        ("redis://redis/?db=1&protocol=3", None, "redis://redis/2?protocol=3"),
        ("unix:///run/redis.sock?db=0", None, "unix:///run/redis.sock?db=1"),
    ],
)
def test_the_cache_has_a_database_of_its_own(
    broker: str, database: int | None, cache_at: str
) -> None:
    assert cache_url(broker, database) == cache_at
    connection = redis.ConnectionPool.from_url(cache_at).connection_kwargs
    assert connection["db"] not in databases_named(broker)


@pytest.mark.parametrize(
    ("broker", "database"), [("redis://redis/1", 1), ("redis://redis", 0), ("redis://redis", -1)]
)
def test_a_cache_among_the_messages_stops_the_start(broker: str, database: int) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"CACHE_REDIS_DB is {database}"):
        cache_url(broker, database)


def test_the_cache_may_lie_on_another_server() -> None:
    assert cache_url("redis://one/0", None, "redis://two/0") == "redis://two/0"
    assert cache_url("redis://one/0", None, "redis://one/5") == "redis://one/5"


@pytest.mark.parametrize(
    ("broker", "database", "named", "message"),
    [
        ("redis://one/0", None, "redis://one:6379", "holds the messages"),
        ("redis://one/0", 3, "redis://two/0", "not both"),
        ("redis://one/0", None, "memcached://two", "CACHE_URL starts with"),
        ("redis://one/0", None, "redis://one/zero", "CACHE_URL ends with"),
    ],
)
def test_a_url_of_the_cache_that_cannot_be_used_stops_the_start(
    broker: str, database: int | None, named: str, message: str
) -> None:
    with pytest.raises(ImproperlyConfigured, match=message):
        cache_url(broker, database, named)


def test_doctor_tells_of_a_server_without_a_database_for_the_cache(services: Services) -> None:
    env = dict(os.environ)
    assert redis_cache.problem_of_cache(env) == ""
    # The server has 16 databases, where others have one.
    finding = next(
        finding
        for finding in doctor.examine({**env, "CACHE_REDIS_DB": "16"})
        if finding.name == "Redis"
    )
    assert not finding.good
    assert "set CACHE_URL to another server" in finding.advice
    assert redis_cache.problem_of_cache({**env, "CACHE_URL": "redis://127.0.0.1:1/0"}).endswith(
        "Look at CACHE_URL."
    )


@pytest.mark.django_db
def test_definition_files_are_loaded_while_the_cache_is_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Away:
        def get(self, name: str) -> None:
            raise redis.ResponseError("DB index is out of range")

        def set(self, name: str, value: str, seconds: int) -> None:
            raise redis.ConnectionError

    monkeypatch.setattr("assets_app.catalogue.services.cache", Away())
    (tmp_path / "broken.py").write_text("raise ValueError('broken')")
    (report,) = sync_bundles({"away": tmp_path})
    assert "broken" in report.errors[0]["message"]


def test_the_database_of_a_url_is_replaced() -> None:
    assert with_database("redis://redis/4?db=5", 2) == "redis://redis/2"


@pytest.mark.parametrize("command", ["CONFIG GET dir", "MODULE LIST", "DEBUG SLEEP 0", "SAVE"])
def test_the_embedded_server_knows_no_command_that_writes_files_or_loads_code(
    services: Services, command: str
) -> None:
    server = redis.Redis.from_url(services.environment()["REDIS_URL"])
    with pytest.raises(redis.ResponseError, match="unknown command"):
        server.execute_command(*command.split())  # type: ignore[no-untyped-call]
