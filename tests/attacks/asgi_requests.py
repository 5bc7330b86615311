"""Requests to the ASGI application in front of Django, and the messages of the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from slicewise_server.serving import Application, Limits

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Exchange:
    """One request, and the messages sent for the request."""

    def __init__(self, path: str = "/", method: str = "GET", body: list[bytes] | None = None):
        self.sent: list[dict[str, Any]] = []
        self._body = list(body or [])
        self.scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "http_version": "1.1",
            "scheme": "http",
            "client": ("192.0.2.7", 1),
            "server": ("127.0.0.1", 80),
            "headers": [(b"transfer-encoding", b"chunked")] if body is not None else [],
        }

    async def receive(self) -> dict[str, Any]:
        """Return the next piece of the body; after the last one, wait."""
        if not self._body:
            await asyncio.sleep(3600)
        chunk = self._body.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": chunk != b""}

    async def send(self, message: dict[str, Any]) -> None:
        """Take a part of the answer."""
        self.sent.append(message)

    @property
    def status(self) -> int:
        """The status of the answer."""
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        """The headers of the answer."""
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        """The body of the answer, which has to be complete."""
        assert not self.sent[-1].get("more_body", False)
        return b"".join(message["body"] for message in self.sent[1:])


def ask(application: Wsgi, *exchanges: Exchange, **limits: Any) -> None:
    """Send the requests at once, and wait for all answers."""

    async def all_of_them() -> None:
        served = Application(application, Limits(**limits))
        calls = (served(exchange.scope, exchange.receive, exchange.send) for exchange in exchanges)
        await asyncio.gather(*calls)

    asyncio.run(all_of_them())
