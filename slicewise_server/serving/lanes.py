"""Threads that run Django, and the requests that wait for one of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


class Busy(Exception):
    """Every thread and every waiting place is taken."""


class Lane:
    """A pool of threads with a bounded number of waiting requests."""

    def __init__(self, name: str, threads: int, waiting: int, patience: float) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._places = threads + waiting
        self._taken = 0
        self._patience = patience

    def begin(self, work: Callable[[bool], None], then: Callable[[], None]) -> None:
        """Have a thread call `work` with whether the patience is over, and the loop call `then`.

        Raise Busy if no waiting place is free. Only the event loop calls this method.
        """
        if self._taken >= self._places:
            raise Busy
        loop, latest = asyncio.get_running_loop(), time.monotonic() + self._patience

        def in_thread() -> None:
            try:
                work(time.monotonic() > latest)
            finally:
                loop.call_soon_threadsafe(self._end, then)

        self._pool.submit(in_thread)
        self._taken += 1

    def _end(self, then: Callable[[], None]) -> None:
        self._taken -= 1
        then()
