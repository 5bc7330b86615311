"""Answers that wait for news: Django asks for another call, and no thread waits meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

# A header of the WSGI application's answer, "SECONDS;POSITION": for so long the same request may be
# asked again, since there is no news up to this position. The header is not sent to the client.
ASK_AGAIN = "X-Slicewise-Ask-Again"
# The key in the environment of a repeated request that holds the position.
POSITION = "slicewise.poll_position"
PAUSE_SECONDS = 0.5
# The pause before an answer without news to a client that got no place.
NO_PLACE_SECONDS = 1.0
_NAME = ASK_AGAIN.lower().encode()


class Wait(NamedTuple):
    """The wait that an answer asks for; no wait if the seconds are 0."""

    seconds: float = 0.0
    position: str = ""


class Polls:
    """The requests that wait at this time; beyond the most, a request is answered without news."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting = 0

    def begin(self) -> bool:
        """Take a place; return False if all places are taken."""
        if self._waiting >= self._most:
            return False
        self._waiting += 1
        return True

    def end(self) -> None:
        """Give the place back."""
        self._waiting -= 1


class Client:
    """The client of a poll, who may go away while the poll waits."""

    def __init__(self, receive: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        self._receive = receive
        self._message: asyncio.Future[dict[str, Any]] | None = None

    async def goes_away_within(self, seconds: float) -> bool:
        """Wait; return whether the client has gone."""
        latest = time.monotonic() + seconds
        while (left := latest - time.monotonic()) > 0:
            if self._message is None:
                self._message = asyncio.ensure_future(self._receive())
            done, _ = await asyncio.wait({self._message}, timeout=left)
            if done:
                message, self._message = self._message.result(), None
                if message["type"] == "http.disconnect":
                    return True
        return False

    def close(self) -> None:
        """End the wait for a message."""
        if self._message is not None:
            self._message.cancel()


def take_wait(headers: list[tuple[bytes, bytes]]) -> Wait:
    """Remove the header from an answer; return the wait that it asks for."""
    for index, (name, value) in enumerate(headers):
        if name == _NAME:
            del headers[index]
            seconds, _, position = value.decode().partition(";")
            return Wait(float(seconds), position)
    return Wait()
