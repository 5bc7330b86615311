"""The session by which events are posted: the same requests as those of `requests` itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests
from openlineage.client.transport.http import HttpConfig, HttpTransport

from slicewise_server.lineage import event_client
from slicewise_server.lineage.event_session import EventSession
from tests.alerts.conftest import Receiver

_RETRY_AFTER = '{"respect_retry_after_header": true}'
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


def test_cookies_of_the_receiver_are_sent_again(receiver: Receiver, reads: list[str]) -> None:
    session = EventSession()
    post(session, receiver, "{}")
    session.cookies.set("node", "7", domain="127.0.0.1")
    post(session, receiver, "{}")
    session.cookies.clear()
    post(session, receiver, "{}")
    cookies = [headers.get("cookie") for headers, _ in receiver.requests]
    assert cookies == [None, "node=7", None]
    assert reads == ["get_netrc_auth", "get_environ_proxies"]


class SigningTransport(HttpTransport):
    """A transport with a session of its own, as for signatures."""

    def __init__(self, config: HttpConfig) -> None:
        super().__init__(config)
        self.session = requests.Session()
        self.session.auth = ("user", "word")


def test_a_transport_of_another_class_keeps_its_session(
    lineage: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{SigningTransport.__module__}.{SigningTransport.__qualname__}"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", name)
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__URL", lineage.address)
    transport = event_client.client().transport
    assert isinstance(transport, SigningTransport)
    assert transport.session.auth == ("user", "word")


@pytest.mark.parametrize(("retry", "expected"), [("{}", False), (_RETRY_AFTER, True)])
def test_the_receiver_names_a_pause_only_if_the_settings_ask(
    lineage: Receiver, monkeypatch: pytest.MonkeyPatch, retry: str, expected: bool
) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "http")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__URL", lineage.address)
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__RETRY", retry)
    transport = event_client.client().transport
    assert isinstance(transport, HttpTransport)
    adapter = transport.session.get_adapter(lineage.address)
    assert isinstance(adapter, requests.adapters.HTTPAdapter)
    assert adapter.max_retries.respect_retry_after_header is expected


def test_an_event_that_is_sent_while_the_time_ends_is_no_failure(
    lineage: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work_and_time_out(seconds: float, key: int, work: Callable[[], None]) -> None:
        work()
        raise TimeoutError

    monkeypatch.setattr(event_client, "result_within", work_and_time_out)
    monkeypatch.setattr(event_client.client(), "emit", lambda event: None)
    assert event_client.emit([object()]) == (1, None)  # type: ignore[list-item]
