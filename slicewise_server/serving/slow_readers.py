"""Slow readers are cut off: the web server itself would wait without end.

The kernel counts the bytes that the reader has acknowledged. A connection with unsent bytes, of
which too few are acknowledged for too long, is reset, also if the rest of the answer lies only in
buffers of the web server or the kernel. The web server closes a connection 30 seconds after the
answer is written (http1_header_read_timeout of Granian); from then on only the kernel has the
connection, and resets the connection by the same time limit if nothing is acknowledged.
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
_ROUNDS = 6  # checks within the time after which a reader is cut off


@dataclass(frozen=True)
class AcknowledgedCount:
    """The count of acknowledged bytes at a time at which more bytes were waiting."""

    at: float
    count: int


async def watch(rate: int, seconds: float) -> None:
    """Cut off, without end, readers that receive less than `rate` bytes a second over `seconds`."""
    notes_before: dict[tuple[int, object], AcknowledgedCount] = {}
    while True:
        await asyncio.sleep(seconds / _ROUNDS)
        try:
            notes_before = cut_slow(notes_before, rate, seconds, time.monotonic())
        except Exception:  # the next round may succeed
            log.exception("connections of slow readers cannot be watched")


def cut_slow(
    known: dict[tuple[int, object], AcknowledgedCount], rate: int, seconds: float, now: float
) -> dict[tuple[int, object], AcknowledgedCount]:
    """Cut off readers that were too slow since the last note; return the present notes."""
    notes: dict[tuple[int, object], AcknowledgedCount] = {}
    for connection in _connections():
        with connection:
            try:
                _limit_probes(connection, seconds)
                count = _acknowledged(connection)
                key = (connection.fileno_seen, connection.getpeername())
                note_before = known.get(key)
                if not _unsent(connection):
                    continue
                if note_before is None or count - note_before.count >= rate * seconds:
                    notes[key] = AcknowledgedCount(now, count)
                elif now - note_before.at < seconds:
                    notes[key] = note_before
                else:
                    _cut_off(connection)
            except OSError:
                continue
    return notes


def _limit_probes(connection: socket.socket, seconds: float) -> None:
    """Let the kernel reset the connection if the reader has had no room for this long."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1000))


def _cut_off(connection: socket.socket) -> None:
    """Reset the connection; the kernel drops the buffered bytes, which a slow reader would hold.

    `shutdown` would leave these bytes to the reader, and `close` would leave the connection to its
    owner, the web server. Connecting to no address resets a connection, see connect(2).
    """
    if _LIBC.connect(connection.fileno(), _NO_ADDRESS, len(_NO_ADDRESS)) != 0:
        raise OSError(ctypes.get_errno(), "a slow reader's connection cannot be reset")


class _Connection(socket.socket):
    """A second descriptor of a connection, and the number of the first descriptor."""

    fileno_seen = -1


def _connections() -> Iterator[_Connection]:
    """Yield the connections that this process has accepted; the caller closes each connection."""
    sockets = list(_sockets())
    ports = {candidate.getsockname()[1] for candidate in sockets if _is_listening(candidate)}
    for candidate in sockets:
        try:
            is_ours = not _is_listening(candidate) and candidate.getsockname()[1] in ports
        except OSError:
            is_ours = False
        if is_ours:
            yield candidate
        else:
            candidate.close()


def _sockets() -> Iterator[_Connection]:
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            connection = _Connection(fileno=os.dup(int(name)))
        except OSError:  # closed meanwhile
            continue
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.fileno_seen = int(name)
            yield connection
        else:
            connection.close()


def _is_listening(candidate: socket.socket) -> bool:
    return bool(candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _acknowledged(connection: socket.socket) -> int:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_SIZE)
    (count,) = _ACKNOWLEDGED.unpack_from(info, _ACKNOWLEDGED_AT)
    return int(count)


def _unsent(connection: socket.socket) -> int:
    (count,) = _UNSENT.unpack(fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(_UNSENT.size)))
    return int(count)
