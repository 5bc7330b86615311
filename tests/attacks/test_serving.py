"""Bodies, answers and crowds in the ASGI application in front of Django."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable, Iterator
from io import FileIO
from typing import Any

import pytest

from slicewise_server.serving.answers import Incomplete
from slicewise_server.serving.spool import NoRoom, Room, Spool
from tests.attacks.asgi_requests import Exchange, ask


class Reader(Exchange):
    """A client that takes an answer, and sets an event once so many messages are there."""

    def __init__(self, event: threading.Event, after: int):
        super().__init__()
        self._event, self._after = event, after

    async def send(self, message: dict[str, Any]) -> None:
        await super().send(message)
        if len(self.sent) >= self._after:
            self._event.set()


def echo(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
    """Answer with the body."""
    start("200 OK", [])
    return [environ["wsgi.input"].read(), environ.get("CONTENT_LENGTH", "none").encode()]


def test_a_body_without_a_length_arrives_with_one() -> None:
    exchange = Exchange(method="POST", body=[b"ab", b"cd", b""])
    ask(echo, exchange)
    assert (exchange.status, exchange.body) == (200, b"abcd4")
    assert exchange.headers[b"content-length"] == b"5"


def test_of_a_body_beyond_the_limit_django_hears_the_length_alone() -> None:
    exchange = Exchange(method="POST", body=[b"ab", b"cde", b""])
    ask(echo, exchange, body=4)
    assert exchange.body == b"ab5"


def test_a_body_that_stops_is_answered_without_a_thread() -> None:
    exchange = Exchange("/api/v1/tokens/", method="POST", body=[b"ab"])
    ask(lambda *_: [][0], exchange, body_pause=0.05)
    assert exchange.status == 408
    assert exchange.headers[b"content-type"] == b"application/problem+json"
    assert exchange.headers[b"connection"] == b"close"


def test_a_body_that_trickles_is_refused() -> None:
    class Trickle(Exchange):
        async def receive(self) -> dict[str, Any]:
            await asyncio.sleep(0.02)
            return {"type": "http.request", "body": b"x", "more_body": True}

    exchange = Trickle(method="POST", body=[])
    ask(echo, exchange, body_time=0.2)
    assert exchange.status == 408


def test_a_long_answer_begins_before_it_is_complete() -> None:
    goes_on = threading.Event()

    def long(environ: dict[str, Any], start: Callable[..., Any]) -> Iterator[bytes]:
        start("200 OK", [])
        yield b"x" * 100_000
        assert goes_on.wait(120)
        yield b"y"

    exchange = Reader(goes_on, after=3)
    ask(long, exchange)
    assert exchange.body == b"x" * 100_000 + b"y"
    assert goes_on.is_set()


def test_a_long_answer_that_breaks_has_no_last_piece() -> None:
    breaks = threading.Event()

    def long(environ: dict[str, Any], start: Callable[..., Any]) -> Iterator[bytes]:
        start("200 OK", [])
        yield b"x" * 100_000
        assert breaks.wait(120)
        raise RuntimeError("the database is away")

    exchange = Reader(breaks, after=1)
    with pytest.raises(Incomplete):
        ask(long, exchange)
    assert exchange.sent[-1]["more_body"]


def test_a_full_disk_is_answered_and_takes_no_room_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = Room(0, 1_000_000)

    def full(**_: Any) -> FileIO:
        return FileIO("/dev/full", "r+")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with Spool(room) as spool:
        with pytest.raises(NoRoom):
            spool.write(b"x" * 300_000)
        spool.empty()
        spool.write(b"no room")
        assert spool.whole().read() == b"no room"
    assert room.take("disk", 1_000_000)


def test_large_answers_go_to_disk_and_then_are_refused() -> None:
    def large(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        start("200 OK", [("Content-Length", "300000")])
        return [b"x" * 300_000]

    complete, refused = Exchange(), Exchange()
    ask(large, complete, answers_in_memory=0, answers_on_disk=300_000)
    ask(large, refused, answers_in_memory=0, answers_on_disk=100_000)
    assert complete.body == b"x" * 300_000
    assert (refused.status, refused.headers[b"retry-after"]) == (503, b"1")


def test_health_and_files_answer_while_every_place_is_taken() -> None:
    others_are_done = threading.Event()
    pages = [Exchange("/page/") for _ in range(6)]
    free = [Exchange("/api/v1/health/"), Exchange("/static/x.css")]

    def application(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        if environ["PATH_INFO"] == "/page/":
            assert others_are_done.wait(120)
        elif environ["PATH_INFO"].startswith("/static/"):
            others_are_done.set()
        start("200 OK", [])
        return [b"here"]

    ask(application, *pages, *free, threads=2, waiting=2)
    assert [page.status for page in pages] == [200] * 4 + [503] * 2
    assert [free_exchange.body for free_exchange in free] == [b"here"] * 2
    assert pages[-1].headers[b"retry-after"] == b"1"


def test_an_error_of_the_application_is_an_answer() -> None:
    exchange = Exchange("/api/v1/x/")
    ask(lambda *_: [][0], exchange)
    assert exchange.status == 500
    assert b"IndexError" not in exchange.body


def test_a_head_has_no_body() -> None:
    exchange = Exchange(method="HEAD")
    ask(echo, exchange)
    assert (exchange.status, exchange.body) == (200, b"")
    assert exchange.headers[b"content-length"] == b"4"
