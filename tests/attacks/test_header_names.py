"""Header names that differ in hyphens and underscores, as the web server passes them on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.web_server import exchange, request, web_server

APPLICATION = """
from slicewise_server.serving import Application, Limits

def answer(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    names = ("X_FORWARDED_FOR", "X_FORWARDED_PROTO")
    return [" ".join(environ.get("HTTP_" + name, "none") for name in names).encode()]

application = Application(answer, Limits())
"""
BY_PROXY, BY_CLIENT = "X-Forwarded-For: 203.0.113.9", "192.0.2.1"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Start the web server with an application that answers with the header; return the port."""
    folder = tmp_path_factory.mktemp("echo")
    (folder / "echo.py").write_text(APPLICATION)
    with web_server(application="echo:application", folder=folder) as (port, _):
        yield port


def answer(port: int, *headers: str) -> str:
    """Return the header that the application gets for these headers in this order."""
    return exchange(port, request("GET /", *headers)).decode().rpartition("\r\n\r\n")[2]


def test_the_headers_of_the_proxy_arrive(web: int) -> None:
    assert answer(web, BY_PROXY, "x-forwarded-proto: https") == "203.0.113.9 https"
    assert answer(web) == "none none"
    assert answer(web, BY_PROXY, "X-Forwarded-For: 203.0.113.8") == "203.0.113.9,203.0.113.8 none"


@pytest.mark.parametrize("name", ["X_Forwarded_For", "X-Forwarded_For", "X_Forwarded-For"])
def test_a_header_with_an_underscore_never_stands_for_that_of_the_proxy(
    web: int, name: str
) -> None:
    assert answer(web, BY_PROXY, f"{name}: {BY_CLIENT}") == "203.0.113.9 none"
    assert answer(web, f"{name}: {BY_CLIENT}", BY_PROXY) == "203.0.113.9 none"
    assert answer(web, f"{name}: {BY_CLIENT}", "X_Forwarded_Proto: https") == "none none"
