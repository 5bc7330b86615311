"""Slow clients: slow bodies, slow headers, slow reading, and no request at all."""

from __future__ import annotations

import selectors
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from statistics import median

from tests.threads import repeated

LARGE_FILE = "/static/vendor/tabler/tabler.min.css"
HEALTH = "/api/v1/health/"
PAGE = "/sign-in/"
_TICK_SECONDS = 1.0
_BEGINNINGS = {
    "body": b"POST /api/v1/tokens/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    b"Content-Type: application/json\r\n\r\n{",
    "reader": f"GET {LARGE_FILE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
    "headers": b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    "silent": b"",
}
KINDS = tuple(_BEGINNINGS)


@dataclass
class Crowd:
    """Slow clients of a server; each client comes back when its connection is closed."""

    port: int
    kinds: tuple[str, ...]
    connected: int = 0
    _clients: list[tuple[str, socket.socket]] = field(default_factory=list)

    def connect(self, kind: str) -> None:
        """Add a client."""
        client = socket.socket()
        # So little that the kernel cannot take the file for a reader who does not.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        client.settimeout(60)
        client.connect(("127.0.0.1", self.port))
        client.sendall(_BEGINNINGS[kind])
        client.setblocking(False)
        self._clients.append((kind, client))
        self.connected += 1

    def step(self) -> None:
        """Let each client send or read one byte."""
        clients, self._clients = self._clients, []
        for kind, client in clients:
            try:
                self._little(kind, client)
                self._clients.append((kind, client))
            except BlockingIOError:
                self._clients.append((kind, client))
            except OSError:
                client.close()
                self.connect(kind)

    def close(self) -> None:
        """Close all connections."""
        for _, client in self._clients:
            client.close()

    @staticmethod
    def _little(kind: str, client: socket.socket) -> None:
        if kind in ("body", "headers"):
            client.send(b" ")
        elif kind == "reader" and client.recv(1) == b"":
            raise ConnectionResetError
        elif kind == "silent":
            with selectors.DefaultSelector() as selector:
                selector.register(client, selectors.EVENT_READ)
                if selector.select(0):
                    raise ConnectionResetError


@contextmanager
def crowd(port: int, count: int, kinds: tuple[str, ...] = KINDS) -> Iterator[Crowd]:
    """Keep `count` slow clients, of all kinds in equal parts, within the block."""
    clients = Crowd(port, kinds)
    for _, kind in zip(range(count), cycle(kinds), strict=False):
        clients.connect(kind)
    try:
        with repeated(clients.step, every=_TICK_SECONDS):
            yield clients
    finally:
        clients.close()


@dataclass
class Times:
    """Seconds of the answers to a careful client, while others are slow."""

    page: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        return ", ".join(
            f"{name}: {len(times)} times, median {median(times):.3f} s, longest {max(times):.3f} s"
            for name, times in (("page", self.page), ("health", self.health))
        )


def times(port: int, seconds: float, timeout: float = 10) -> Times:
    """Ask for a page and for health, again and again."""
    measured = Times()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for path, durations in ((PAGE, measured.page), (HEALTH, measured.health)):
            began = time.monotonic()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=timeout) as got:
                assert got.status == 200
                got.read()
            durations.append(time.monotonic() - began)
        time.sleep(0.1)
    return measured
