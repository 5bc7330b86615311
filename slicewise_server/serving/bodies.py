"""Bodies of requests: bounded, complete and in time before a thread begins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from slicewise_server.serving.environ import Headers
from slicewise_server.serving.limits import Limits
from slicewise_server.serving.spool import Spool

Receive = Callable[[], Awaitable[dict[str, Any]]]


class ClientDisconnected(Exception):
    """The client disconnected before the body was complete."""


class BodyTimeout(Exception):
    """The body did not come in time."""


async def read(receive: Receive, headers: Headers, spool: Spool, limits: Limits) -> int:
    """Read the body into `spool`; return the size.

    Above the limit, return a size above the limit and read no further. Raise Slow, Gone or NoRoom.
    """
    header_values = dict(headers)
    if b"transfer-encoding" not in header_values:
        size = _number(header_values.get(b"content-length", b"0"))
        if size == 0 or size > limits.body:
            return size
    try:
        async with asyncio.timeout(limits.body_time):
            while True:
                async with asyncio.timeout(limits.body_pause):
                    message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnected
                chunk = message.get("body", b"")
                if spool.size + len(chunk) > limits.body:
                    return spool.size + len(chunk)
                spool.write(chunk)
                if not message.get("more_body", False):
                    return spool.size
    except TimeoutError:
        raise BodyTimeout from None


def _number(text: bytes) -> int:
    """Return the number in a header; the web server refuses other texts."""
    return int(text) if text.isdigit() else 0
