"""Free ports on loopback."""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass
from itertools import islice

from slicewise_server.stack.errors import StackError

HOST = "127.0.0.1"
_BELOW_CONNECTIONS = range(15_000, 32_000)
_TRIED = 20


def is_free(port: int) -> bool:
    """Return whether a server could listen on `port` of loopback now."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
        return True


def pick(count: int) -> list[int]:
    """Return different ports on which no program listens.

    The ports are below the ports that the kernel gives to connections: a server may listen on a
    port only a minute later, and a connection on the port would prevent the server from listening.
    """
    numbers = list(_BELOW_CONNECTIONS)
    random.shuffle(numbers)
    free = list(islice(filter(is_free, numbers), count))
    if len(free) < count:
        raise StackError(f"There are no {count} free ports below {_BELOW_CONNECTIONS.stop}.")
    return free


@dataclass(frozen=True, slots=True)
class Claim:
    """A port that no other stack can claim until the release or the end of this process."""

    port: int
    _holder: socket.socket

    def give_up(self) -> None:
        """Release the claim."""
        self._holder.close()


def claim(preferred: int | None = None) -> Claim:
    """Claim a port without a listener: `preferred`, if free and not claimed, else another port.

    Raises StackError where none can be claimed.
    """
    for port in [*([] if preferred is None else [preferred]), *pick(_TRIED)]:
        if (claimed := _claim_one(port)) is not None:
            return claimed
    raise StackError("No port can be claimed: sockets with abstract names are refused here.")


def claim_exactly(port: int) -> Claim:
    """Claim the port. Raises StackError if a program or another stack has the port."""
    claimed = _claim_one(port)
    if claimed is None:
        raise StackError(
            f"Port {port} is taken: end the program that listens on it, name another port by"
            " --port, or leave --port out for any free one."
        )
    return claimed


def _claim_one(port: int) -> Claim | None:
    """Claim a port, or return None if the port is taken.

    Granian listens a minute after its port was chosen, also beside another listener: both
    would get a part of the requests, without an error.
    """
    # A name in the machine's memory, which the kernel frees when the process ends, in any way.
    holder = socket.socket(socket.AF_UNIX)
    try:
        holder.bind(f"\0slicewise-port-{port}")
    except OSError:
        holder.close()
        return None
    if is_free(port):
        return Claim(port, holder)
    holder.close()
    return None


def accepts(port: int) -> bool:
    """Return whether a program listens on `port`."""
    with socket.socket() as caller:
        caller.settimeout(1)
        return caller.connect_ex((HOST, port)) == 0
