"""A firewall between some processes and a server, which forgets connections that idle.

Neither end is told. Afterwards the firewall drops the packets of a forgotten connection without a
word, or answers the next packet with a reset, as firewalls and address translators do.
"""

import ctypes
import selectors
import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Self
from urllib.parse import urlsplit

Manner = Literal["silent", "reset"]

_SO_ATTACH_FILTER = 26  # Linux; the module `socket` does not name it
_CHUNK = 65_536
_TURN_SECONDS = 0.05


@dataclass(eq=False)
class _Connection:
    """A client's connection, and the connection to the server that belongs to it."""

    client: socket.socket
    server: socket.socket
    last_used: float = field(default_factory=time.monotonic)
    is_asked: bool = False  # and has not answered yet
    forgotten: Manner | None = None

    def forget(self, manner: Manner) -> None:
        self.forgotten = manner
        if manner == "silent":
            _drop_packets(self.client)

    def reset(self) -> None:
        self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        self.client.close()
        self.server.close()


class Firewall:
    """A firewall that forwards connections to the server of a URL within the block; `url` leads
    through the firewall.
    """

    def __init__(self, url: str) -> None:
        target_url = urlsplit(url)
        self._target = (target_url.hostname or "", target_url.port or 0)
        self._door = socket.create_server(("127.0.0.1", 0))
        port = self._door.getsockname()[1]
        self.url = url.replace(f"{target_url.hostname}:{target_url.port}", f"127.0.0.1:{port}")
        self._lock = threading.Lock()
        self._connections: list[_Connection] = []
        self._selector = selectors.DefaultSelector()
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._forward, daemon=True)

    def __enter__(self) -> Self:
        self._selector.register(self._door, selectors.EVENT_READ)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()
        self._door.close()
        for connection in self._connections:
            connection.reset()

    def forget(self, manner: Manner, *, idle: float) -> int:
        """Forget the connections that idled for so many seconds; return their number."""
        with self._lock:
            since = time.monotonic() - idle
            idle_connections = [
                connection
                for connection in self._connections
                if connection.forgotten is None
                and not connection.is_asked
                and connection.last_used < since
            ]
            for connection in idle_connections:
                connection.forget(manner)
                if manner == "silent":
                    self._unregister(connection)
        return len(idle_connections)

    def _forward(self) -> None:
        while not self._enough.is_set():
            for key, _ in self._selector.select(_TURN_SECONDS):
                with self._lock:
                    if key.fileobj is self._door:
                        self._accept()
                    else:
                        self._pass_on(key.data, key.fileobj)

    def _accept(self) -> None:
        client, _ = self._door.accept()
        try:
            server = socket.create_connection(self._target, timeout=5)
        except OSError:
            client.close()
            return
        connection = _Connection(client, server)
        self._connections.append(connection)
        for end in (client, server):
            # A server and a client on loopback take what they are sent.
            end.settimeout(30)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(end, selectors.EVENT_READ, connection)

    def _pass_on(self, connection: _Connection, source: object) -> None:
        """Pass on the bytes of one end; drop the bytes of a forgotten connection."""
        if connection not in self._connections or connection.forgotten == "silent":
            return  # it ended, or was forgotten, in this very turn
        origin, target = connection.client, connection.server
        if source is connection.server:
            origin, target = target, origin
        content = b""
        with suppress(OSError):
            content = origin.recv(_CHUNK)
            if content and connection.forgotten is None:
                connection.last_used = time.monotonic()
                connection.is_asked = origin is connection.client
                target.sendall(content)
                return
        self._unregister(connection)
        self._connections.remove(connection)
        if connection.forgotten is not None:
            connection.reset()
        else:
            connection.close()

    def _unregister(self, connection: _Connection) -> None:
        for end in (connection.client, connection.server):
            with suppress(KeyError):
                self._selector.unregister(end)


def _drop_packets(end: socket.socket) -> None:
    """Have the kernel drop all packets for a socket, before any acknowledgement."""
    code = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # return 0: nothing
    program = struct.pack("HL", 1, ctypes.addressof(code))
    end.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def may_drop_packets() -> bool:
    """Tell whether this kernel lets this user have packets dropped; some let root alone."""
    with socket.socket() as end:
        try:
            _drop_packets(end)
        except PermissionError:
            return False
    return True
