"""Slow clients keep no other client waiting: each costs a connection, and no thread."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from slicewise_server.stack.services import Services
from tests.attacks.slow_clients import HEALTH, KINDS, crowd, times
from tests.attacks.web_server import exchange, request, web_server

# `make faults` measures a minute of 500. Here the machine may be busy with other tests: with a
# thread each these clients would stop the pages for as long as they are there, and each occupies a
# thread for 20 s or more until it is cut off.
CLIENTS, SECONDS = 200, 8
LONGEST_SECONDS, MEDIAN_SECONDS, MOST_TIMES = 30.0, 5.0, 4


@pytest.fixture(scope="module")
def web(services: Services) -> Iterator[int]:
    """Start a web server, and return its port."""
    with web_server() as (port, _):
        exchange(port, request("GET /sign-in/"))
        yield port


@pytest.mark.parametrize("kind", KINDS)
def test_pages_and_health_answer_while_clients_are_slow(web: int, kind: str) -> None:
    before = times(web, SECONDS / 4, timeout=LONGEST_SECONDS)
    with crowd(web, CLIENTS, (kind,)):
        during = times(web, SECONDS / 2, timeout=LONGEST_SECONDS)
    for alone, beside in ((before.page, during.page), (before.health, during.health)):
        # A machine that is busy with other work answers late without any slow client.
        limit = max(MEDIAN_SECONDS, MOST_TIMES * median(alone))
        assert max(beside) < LONGEST_SECONDS, f"before: {before}; beside: {during}"
        assert median(beside) < limit, f"before: {before}; beside: {during}"


def test_a_body_that_stops_is_refused(web: int) -> None:
    first = request("POST /api/v1/tokens/", "Content-Length: 100", "Content-Type: application/json")
    began = time.monotonic()
    answer = exchange(web, first + b"{")
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"application/problem+json" in answer
    assert 9 < time.monotonic() - began < 40


def test_readers_who_take_too_little_are_cut_off(web: int) -> None:
    with socket.socket() as idle, socket.socket() as slow:
        for reader in (idle, slow):
            begin_reading(reader, web)
        # One reader takes nothing, and the other 200 bytes a second, until both are cut off.
        is_cut_off = False
        for _ in range(120):
            time.sleep(1)
            is_cut_off = is_cut_off or not takes(slow, 200)
            if is_cut_off and is_given_up(idle, web):
                break
        assert is_cut_off
        with pytest.raises(ConnectionResetError):
            read_to_end(idle)


def begin_reading(reader: socket.socket, port: int) -> None:
    """Ask for a large file, and read the first byte."""
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    reader.connect(("127.0.0.1", port))
    path = "/static/vendor/tabler/tabler.min.css"
    reader.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    reader.settimeout(60)
    assert reader.recv(1)


def read_to_end(reader: socket.socket) -> None:
    """Read all bytes that are left."""
    while reader.recv(65536):
        pass


def is_given_up(reader: socket.socket, port: int) -> bool:
    """Return whether the kernel has no connection of the server to the reader any more.

    A reader that takes nothing learns of the end with the next byte that the reader takes.
    """
    ends = f"0100007F:{port:04X} 0100007F:{reader.getsockname()[1]:04X} "
    return ends not in Path("/proc/net/tcp").read_text()


def takes(reader: socket.socket, size: int) -> bool:
    """Read so many bytes; return False if the server has cut the connection off."""
    try:
        assert reader.recv(size), "the server has ended the answer in good order"
    except ConnectionResetError:
        return False
    return True


def test_a_client_who_leaves_is_forgotten(web: int) -> None:
    first = request("POST /api/v1/tokens/", "Content-Length: 100")
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", web), timeout=60) as connection:
            connection.sendall(first)
    assert exchange(web, request(f"GET {HEALTH}")).startswith(b"HTTP/1.1 200")
