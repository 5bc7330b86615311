"""Readers that take next to nothing are cut off: the web server itself would wait for good.

The kernel knows how much of what was sent has been taken. A connection with bytes to take, of which
too few were taken for too long, is reset, also where the answer lies in the web server's or the
kernel's buffers alone. The web server closes a connection itself 30 seconds after it has written
the answer (http1_header_read_timeout of Granian); from then on only the kernel knows the
connection, and resets it by the same time where nothing is taken.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import logging
import os
import socket
import struct
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass

log = logging.getLogger(__name__)

_ACKNOWLEDGED = struct.Struct("Q")
_ACKNOWLEDGED_AT = 120  # tcpi_bytes_acked in struct tcp_info
_INFO_SIZE = 192
_UNSENT = struct.Struct("i")
_NO_ADDRESS = struct.pack("H14x", socket.AF_UNSPEC)
_LIBC = ctypes.CDLL(None, use_errno=True)
_ROUNDS = 6  # within the time after which a reader is cut off


@dataclass(frozen=True)
class Taken:
    """What a reader had taken at a time at which there was more to take."""

    at: float
    count: int


async def watch(rate: int, seconds: float) -> None:
    """Cut off, for good, whoever takes less than `rate` bytes a second over `seconds`."""
    known: dict[tuple[int, object], Taken] = {}
    while True:
        await asyncio.sleep(seconds / _ROUNDS)
        try:
            known = cut_slow(known, rate, seconds, time.monotonic())
        except Exception:  # whatever it is, the next round may do better
            log.exception("slow readers are not watched")


def cut_slow(
    known: dict[tuple[int, object], Taken], rate: int, seconds: float, now: float
) -> dict[tuple[int, object], Taken]:
    """Cut off readers that were too slow since they were noted; return what is noted now."""
    noted: dict[tuple[int, object], Taken] = {}
    for connection in _connections():
        with connection:
            try:
                _limit_probes(connection, seconds)
                count = _acknowledged(connection)
                key = (connection.fileno_seen, connection.getpeername())
                before = known.get(key)
                if not _unsent(connection):
                    continue
                if before is None or count - before.count >= rate * seconds:
                    noted[key] = Taken(now, count)
                elif now - before.at < seconds:
                    noted[key] = before
                else:
                    _cut_off(connection)
            except OSError:
                continue
    return noted


def _limit_probes(connection: socket.socket, seconds: float) -> None:
    """Let the kernel reset it where the reader has had no room for anything for so long."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))


def _cut_off(connection: socket.socket) -> None:
    """Reset the connection; the kernel drops what is in its buffers, which the reader would hold.

    `shutdown` would leave these bytes to the reader, and `close` the connection to its owner, the
    web server. Connecting to no address resets it, see connect(2).
    """
    if _LIBC.connect(connection.fileno(), _NO_ADDRESS, len(_NO_ADDRESS)) != 0:
        raise OSError(ctypes.get_errno(), "a slow reader's connection cannot be reset")


class _Connection(socket.socket):
    """A second descriptor of a connection, and the number of the first."""

    fileno_seen = -1


def _connections() -> Iterator[_Connection]:
    """The connections that this process has accepted, each to be closed by the caller."""
    sockets = list(_sockets())
    ports = {one.getsockname()[1] for one in sockets if _is_listening(one)}
    for one in sockets:
        try:
            is_ours = not _is_listening(one) and one.getsockname()[1] in ports
        except OSError:
            is_ours = False
        if is_ours:
            yield one
        else:
            one.close()


def _sockets() -> Iterator[_Connection]:
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            found = _Connection(fileno=os.dup(int(name)))
        except OSError:  # closed by now
            continue
        if found.family in (socket.AF_INET, socket.AF_INET6):
            found.fileno_seen = int(name)
            yield found
        else:
            found.close()


def _is_listening(one: socket.socket) -> bool:
    return bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _acknowledged(connection: socket.socket) -> int:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_SIZE)
    (count,) = _ACKNOWLEDGED.unpack_from(info, _ACKNOWLEDGED_AT)
    return int(count)


def _unsent(connection: socket.socket) -> int:
    (count,) = _UNSENT.unpack(fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(_UNSENT.size)))
    return int(count)
