"""Real receivers: a web server that answers as told, and a mail server."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from accounts_app.models import User
from accounts_app.policy import Role
from slicewise_server.stack import ports
from tests.api.conftest import api, olga, stranger_api, vera, viewer_api
from tests.backfills.conftest import worker
from tests.catalogue.conftest import bundle
from tests.execution.conftest import alice, gateway, sent
from tests.factories import person

__all__ = [
    "alice",
    "api",
    "bundle",
    "gateway",
    "olga",
    "sent",
    "stranger_api",
    "vera",
    "viewer_api",
    "worker",
]


@dataclass
class Receiver:
    """A web server: its requests, and the statuses of its answers, the last one for good.

    With status 0 the server closes the connection without an answer; ``location`` is the header of
    that name.
    """

    statuses: list[int] = field(default_factory=lambda: [200])
    location: str = ""
    pause_seconds: float = 0.0
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    address: str = ""

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the requests, in order."""
        return [json.loads(body) for _, body in self.requests]


@pytest.fixture(autouse=True)
def _local_receivers(settings: Any) -> None:
    """Let messages reach this host, where the receivers of tests are."""
    settings.ALERT_ALLOWED_NETWORKS = (ip_network("127.0.0.0/8"), ip_network("::1"))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.requests.append((headers, body))
            time.sleep(state.pause_seconds)
            status = state.statuses.pop(0) if len(state.statuses) > 1 else state.statuses[0]
            if not status:
                self.close_connection = True
                return
            self.send_response(status)
            if state.location:
                self.send_header("Location", state.location)
            self.send_header("Content-Length", "5")
            with suppress(OSError):  # a client that waits no longer
                self.end_headers()
                self.wfile.write(b"heard")

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the output of the tests clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_port}/hooks/s3cret-path"
    yield state
    server.shutdown()
    server.server_close()


class Mailbox:
    """The mails that a real SMTP server received."""

    def __init__(self) -> None:
        self.mails: list[tuple[str, str]] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        """Keep subject and text of a mail."""
        mail = message_from_bytes(envelope.content)
        part = next(part for part in mail.walk() if part.get_content_type() == "text/plain")
        text = part.get_payload(decode=True)
        assert isinstance(text, bytes)
        self.mails.append((str(mail["Subject"]), text.decode()))
        return "250 OK"


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, str]]:
    """A mailbox, and Apprise's address for mails to it."""
    box = Mailbox()
    # No port of the range from which the kernel gives ports to connections of other tests.
    (port,) = ports.pick(1)
    controller = Controller(box, hostname="127.0.0.1", port=port, ready_timeout=60.0)
    controller.start()
    yield box, f"mailto://127.0.0.1:{port}?from=slicewise@example.com&to=oncall@example.com"
    controller.stop()


@pytest.fixture
def admin(db: None) -> User:
    """An administrator."""
    return person("ada", Role.ADMIN)
