"""Answers that wait for news: Django asks for another call, and no thread waits meanwhile."""

from __future__ import annotations

import time

# A header of the WSGI application's answer: the whole seconds for which the same request may be
# asked again, since there is no news yet. The header is not sent to the client.
ASK_AGAIN = "X-Slicewise-Ask-Again"
PAUSE_SECONDS = 0.5
_NAME = ASK_AGAIN.lower().encode()


class Polls:
    """The requests that wait at this time; beyond the most, a request is answered at once."""

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


def take_wait(headers: list[tuple[bytes, bytes]]) -> float:
    """Remove the header from an answer; return its seconds, 0 without the header."""
    for index, (name, value) in enumerate(headers):
        if name == _NAME:
            del headers[index]
            return float(value)
    return 0.0


def is_over(began: float, seconds: float) -> bool:
    """Return whether so many seconds have passed since `began`, on the monotonic clock."""
    return time.monotonic() - began >= seconds
