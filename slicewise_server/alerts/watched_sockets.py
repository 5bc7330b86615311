"""Requests whose sockets are shut down after a time: no receiver holds a thread for long."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection


@contextmanager
def ending_after(seconds: float, session: requests.Session) -> Iterator[None]:
    """End the connections of a session after so many seconds, and raise TimeoutError then.

    Headers that end with the connection count as whole headers, so that a status may have come.
    """
    adapter = _Watched()
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    timer = Timer(seconds, adapter.shut_down)
    timer.daemon = True
    timer.start()
    try:
        yield
    except OSError as error:
        if adapter.is_shut_down:
            raise TimeoutError from error
        raise
    finally:
        timer.cancel()
    if adapter.is_shut_down:
        raise TimeoutError


class _Watched(HTTPAdapter):
    """Knows the sockets of all connections."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self.is_shut_down = False
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make pools whose connections note each socket."""
        super().init_poolmanager(*args, **options)
        note = self._note

        class Plain(HTTPConnection):
            def connect(self) -> None:
                super().connect()
                note(self.sock)

        class Secure(HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                note(self.sock)

        class PlainPool(HTTPConnectionPool):
            ConnectionCls = Plain

        class SecurePool(HTTPSConnectionPool):
            ConnectionCls = Secure

        self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

    def shut_down(self) -> None:
        """End all reads and writes."""
        self.is_shut_down = True
        for opened in self._sockets:
            _shut_down(opened)

    def _note(self, opened: socket.socket) -> None:
        """Note a new socket; shut it down at once where the time is over: the name of a host may
        take that long.
        """
        self._sockets.append(opened)
        if self.is_shut_down:
            _shut_down(opened)


def _shut_down(opened: socket.socket) -> None:
    with suppress(OSError):
        # The method of TLS sockets changes state that the reading thread uses.
        socket.socket.shutdown(opened, socket.SHUT_RDWR)
