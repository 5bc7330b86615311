"""A web server of a test's own, run by the command that production runs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from slicewise_server.stack import ports
from slicewise_server.stack.commands import WEB

PROJECT = Path(__file__).resolve().parents[2]


@contextmanager
def web_server(
    env: Mapping[str, str] | None = None,
    application: str = WEB[-1],
    folder: Path = PROJECT,
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Start a web server; yield its port and its process once it accepts connections."""
    (port,) = ports.pick(1)
    # The command has the file of Granian's log relative to the project.
    options = [str(PROJECT / word) if word.endswith(".json") else word for word in WEB[1:-1]]
    where = {"GRANIAN_HOST": "127.0.0.1", "GRANIAN_PORT": str(port), "PYTHONPATH": str(PROJECT)}
    process = subprocess.Popen(
        [sys.executable, *options, application],
        env={**os.environ, **where, **(env or {})},
        cwd=folder,
    )
    try:
        _await(port, process)
        yield port, process
    finally:
        process.terminate()
        process.wait(60)


def exchange(port: int, *chunks: bytes, pause: float = 0, timeout: float = 60) -> bytes:
    """Send the chunks, with pauses between them, and return the whole answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        for number, chunk in enumerate(chunks):
            time.sleep(pause if number else 0)
            connection.sendall(chunk)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def request(first: str, *headers: str, body: bytes = b"") -> bytes:
    """Return the bytes of a request to localhost after which the connection is to be closed."""
    lines = [f"{first} HTTP/1.1", "Host: localhost", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the web server did not start")
