"""Calls of a function in one thread of a process at a time, for any number of messages."""

import logging
from collections.abc import Callable
from functools import wraps
from threading import Lock
from time import monotonic
from typing import Any

log = logging.getLogger(__name__)


class Coalesced:
    """A function without a result that many messages ask for.

    While a thread calls the function, other threads store that one more call is needed, and go on
    with other work. So a backlog of messages costs one call or two, a call that hangs keeps one
    thread, and data that was committed before a message is seen by a call that begins after the
    message.

    Where ``relieved_after`` is given, and a call takes longer than these seconds, one other thread
    at a time calls the function beside it for each message, as long as the call goes on.
    """

    def __init__(
        self, function: Callable[..., object], *, relieved_after: float | None = None
    ) -> None:
        self._function = function
        self._relieved_after = relieved_after
        self._began = 0.0
        self._is_relieved = False
        self._lock = Lock()
        self._arguments: tuple[Any, ...] | None = None
        self._is_busy = False

    def request(self, *arguments: Any) -> None:
        """Call the function with the arguments of the last request, or let the calling thread do
        so.
        """
        with self._lock:
            self._arguments = arguments
            if self._is_busy:
                relieves = self._takes_long() and not self._is_relieved
                if not relieves:
                    return
                self._is_relieved = True
            else:
                relieves = False
                self._is_busy, self._began = True, monotonic()
        if relieves:
            self._relieve(arguments)
            return
        try:
            while (pending := self._next()) is not None:
                self._function(*pending)
        except BaseException:
            with self._lock:
                self._is_busy = False
            raise

    def _takes_long(self) -> bool:
        after = self._relieved_after
        return after is not None and monotonic() - self._began > after

    def _relieve(self, arguments: tuple[Any, ...]) -> None:
        try:
            self._function(*arguments)
        finally:
            with self._lock:
                self._is_relieved = False

    def _next(self) -> tuple[Any, ...] | None:
        """Return the arguments of the pending request; if there is none, mark the function
        as idle.
        """
        with self._lock:
            pending, self._arguments = self._arguments, None
            self._is_busy = pending is not None
            self._began = monotonic()
            return pending


def tick_step(function: Callable[..., object]) -> Coalesced:
    """Return the function as a step of a tick; an error in one step keeps no other from its
    turn.
    """

    @wraps(function)
    def logged(*arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception:
            log.exception("part of a tick failed", extra={"step": function.__name__})

    return Coalesced(logged)
