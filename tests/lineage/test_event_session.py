"""The session by which events are posted: the same requests as those of `requests` itself."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from slicewise_server.lineage.event_session import EventSession
from tests.alerts.conftest import Receiver

HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer first"}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions of `requests` that have read the environment and files."""
    calls: list[str] = []
    for name in ("get_environ_proxies", "get_netrc_auth"):

        def read(*arguments: Any, _name: str = name, **options: Any) -> Any:
            calls.append(_name)
            return getattr(requests.utils, _name)(*arguments, **options)

        monkeypatch.setattr(requests.sessions, name, read)
    return calls


def post(session: requests.Session, receiver: Receiver, body: str, **headers: str) -> None:
    answer = session.post(
        url=receiver.address, data=body, headers={**HEADERS, **headers}, timeout=5.0, verify=True
    )
    answer.raise_for_status()


def test_requests_are_those_of_requests(receiver: Receiver, reads: list[str]) -> None:
    bodies = ["{}", '{"name": "caf\u00e9 caf\xe9"}', "[" + "1, " * 50_000 + "1]"]
    for session in (requests.Session(), EventSession()):
        for body in bodies:
            post(session, receiver, body)
    ours = receiver.requests[len(bodies) :]
    assert ours == receiver.requests[: len(bodies)]
    assert [body.decode() for _, body in ours] == bodies
    # The environment is read once more for all bodies.
    assert reads == ["get_netrc_auth", "get_environ_proxies"] * (len(bodies) + 1)


def test_another_login_is_sent_with_the_next_request(receiver: Receiver) -> None:
    session = EventSession()
    post(session, receiver, "{}")
    post(session, receiver, "{}", Authorization="Bearer second")
    logins = [headers["authorization"] for headers, _ in receiver.requests]
    assert logins == ["Bearer first", "Bearer second"]


def test_proxies_and_certificates_of_the_environment_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/etc/ssl/own.pem")
    session, plain = EventSession(), requests.Session()
    for url in ("https://lineage.example/a", "https://lineage.example/a", "http://other.example/"):
        for verify in (True, False):
            arguments: Any = (url, {}, None, verify, None)
            ours = session.merge_environment_settings(*arguments)
            assert ours == plain.merge_environment_settings(*arguments)


def test_cookies_of_the_receiver_are_sent_again(receiver: Receiver) -> None:
    session = EventSession()
    post(session, receiver, "{}")
    session.cookies.set("node", "7", domain="127.0.0.1")
    post(session, receiver, "{}")
    assert [headers.get("cookie") for headers, _ in receiver.requests] == [None, "node=7"]
