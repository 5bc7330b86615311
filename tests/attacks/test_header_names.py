"""What the web server makes of header names that differ in hyphens and underscores."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.stack import ports
from config.stack.commands import WEB

PROJECT = Path(__file__).resolve().parents[2]
GUIDE = PROJECT / "docs" / "guides" / "accounts.md"
APPLICATION = """
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ.get("HTTP_X_FORWARDED_FOR", "none").encode()]
"""
BY_PROXY, BY_CLIENT = "X-Forwarded-For: 203.0.113.9", "192.0.2.1"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of our web server with an application that answers with the header."""
    folder = tmp_path_factory.mktemp("echo")
    (folder / "echo.py").write_text(APPLICATION)
    (port,) = ports.pick(1)
    where = {"GRANIAN_HOST": "127.0.0.1", "GRANIAN_PORT": str(port)}
    command = [sys.executable, *WEB[1:-1], "echo:application"]
    process = subprocess.Popen(command, env={**os.environ, **where}, cwd=folder)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def answer(port: int, *headers: str) -> str:
    """Return what the application gets for a request with these headers in this order."""
    lines = ["GET / HTTP/1.1", "Host: localhost", "Connection: close", *headers, "", ""]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall("\r\n".join(lines).encode())
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    return received.decode().rpartition("\r\n\r\n")[2]


def test_the_header_of_the_proxy_arrives(web: int) -> None:
    assert answer(web, BY_PROXY) == "203.0.113.9"
    assert answer(web) == "none"


@pytest.mark.parametrize("name", ["X_Forwarded_For", "X-Forwarded_For", "X_Forwarded-For"])
def test_the_guide_tells_of_names_that_the_web_server_takes_for_the_header(
    web: int, name: str
) -> None:
    """Where this fails because the web server drops such names, the guide has nothing to tell."""
    assert answer(web, BY_PROXY, f"{name}: {BY_CLIENT}") == BY_CLIENT
    told = GUIDE.read_text().partition("### Headers with underscores")[2]
    assert f"`{name}`" in told
