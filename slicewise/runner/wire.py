"""Messages as JSON lines of limited length, and headers that carry descriptors."""

import array
import json
import math
import os
import socket
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

REQUEST_LIMIT_BYTES = 64 * 1024 * 1024
MESSAGE_LIMIT_BYTES = 1024 * 1024
HEADER_LIMIT_BYTES = 4096

Message = dict[str, Any]


class Received(NamedTuple):
    """A header with the descriptors that came with it."""

    header: Message
    descriptors: list[int]
    is_whole: bool
    """Whether all descriptors that were sent have come: a process may have no room for more."""


class WireError(Exception):
    """Received bytes are no message: too long, not JSON, not an object, or with a number that JSON
    does not have.
    """


def encode(message: Message) -> bytes:
    """Return a message as one line."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode(line: bytes) -> Message:
    """Return the message of one line. Raises WireError.

    Each returned message can be encoded: Python alone reads NaN, Infinity and 1e999.
    """
    try:
        message = json.loads(line.decode(), parse_float=_finite, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {line[:80]!r}") from error
    if not isinstance(message, dict):
        raise WireError(f"not an object: {line[:80]!r}")
    return message


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:80]} is too large")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


class LineBuffer:
    """A buffer that cuts a stream of bytes into lines, and lines into messages."""

    def __init__(self, limit: int = MESSAGE_LIMIT_BYTES) -> None:
        self._limit = limit
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that ``data`` completes. Raises WireError."""
        return map(decode, self.lines(data))

    def lines(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that ``data`` completes, without their ends. Raises WireError."""
        self._pending += data
        while (end := self._pending.find(b"\n")) >= 0:
            line = bytes(self._pending[:end])
            del self._pending[: end + 1]
            self._refuse_long(line)
            yield line
        self._refuse_long(self._pending)

    def _refuse_long(self, line: bytes | bytearray) -> None:
        if len(line) > self._limit:
            raise WireError(f"a message of more than {self._limit} bytes")


def read_message(source: socket.socket, limit: int) -> Message | None:
    """Wait for and return one whole message; None at the end of the stream. Raises WireError."""
    data = bytearray()
    while not data.endswith(b"\n"):
        chunk = source.recv(65536)
        if not chunk:
            return None
        data += chunk
        if len(data) > limit:
            raise WireError(f"a message of more than {limit} bytes")
    return decode(bytes(data))


def send_header(control: socket.socket, header: Message, descriptors: Sequence[int]) -> None:
    """Send a header and descriptors in one datagram of the control socket."""
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
    control.sendmsg([encode({**header, "descriptors": len(descriptors)})], [rights])


def receive_header(control: socket.socket, most: int) -> Received | None:
    """Return the next header and its descriptors, with no descriptor inheritable; None at the end
    of the stream.
    """
    data, descriptors, flags, _ = socket.recv_fds(control, HEADER_LIMIT_BYTES, most)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    if not data:
        return None
    header = decode(data)
    is_whole = not flags & socket.MSG_CTRUNC and len(descriptors) == header.get("descriptors")
    return Received(header, list(descriptors), is_whole)
