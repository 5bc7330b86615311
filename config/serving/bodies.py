"""Bodies of requests: bounded, complete, and in time, before a thread hears of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from config.serving.environ import Headers
from config.serving.limits import Limits
from config.serving.spool import Spool

Receive = Callable[[], Awaitable[dict[str, Any]]]


class Gone(Exception):
    """The client left before its body was complete."""


class Slow(Exception):
    """The body did not come in time."""


async def read(receive: Receive, headers: Headers, spool: Spool, limits: Limits) -> int:
    """Read the body into `spool`; return its size, or more than the limit where nothing more is
    read. Raises Slow, Gone, or NoRoom.
    """
    told = dict(headers)
    if b"transfer-encoding" not in told:
        size = _number(told.get(b"content-length", b"0"))
        if size == 0 or size > limits.body:
            return size
    try:
        async with asyncio.timeout(limits.body_time):
            while True:
                async with asyncio.timeout(limits.body_pause):
                    message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                piece = message.get("body", b"")
                if spool.size + len(piece) > limits.body:
                    return spool.size + len(piece)
                spool.write(piece)
                if not message.get("more_body", False):
                    return spool.size
    except TimeoutError:
        raise Slow from None


def _number(text: bytes) -> int:
    """The web server refuses whatever is no number."""
    return int(text) if text.isdigit() else 0
