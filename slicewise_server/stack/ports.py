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
    """Whether a server could listen on `port` of loopback now."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
        return True


def pick(count: int) -> list[int]:
    """Pick ports that nobody listens on, all different.

    Below those that the kernel gives to connections: a server listens on its port up to a minute
    later, and a connection that had the port by then would keep the server from it.
    """
    numbers = list(_BELOW_CONNECTIONS)
    random.shuffle(numbers)
    free = list(islice(filter(is_free, numbers), count))
    if len(free) < count:
        raise StackError(f"There are no {count} free ports below {_BELOW_CONNECTIONS.stop}.")
    return free


@dataclass(frozen=True, slots=True)
class Claim:
    """A port that is kept from other stacks until the claim is given up, or its process ends."""

    port: int
    _holder: socket.socket

    def give_up(self) -> None:
        """Let others have the port."""
        self._holder.close()


def claim(wanted: int | None = None) -> Claim:
    """Claim a port that nobody listens on: `wanted`, if it is free and not claimed, or another.

    Raises StackError where none can be claimed.
    """
    for port in [*([] if wanted is None else [wanted]), *pick(_TRIED)]:
        if (claimed := _claim_one(port)) is not None:
            return claimed
    raise StackError("No port can be claimed: sockets with abstract names are refused here.")


def claim_exactly(port: int) -> Claim:
    """Claim that port; raises StackError where a program or another stack has it."""
    claimed = _claim_one(port)
    if claimed is None:
        raise StackError(
            f"Port {port} is taken: end the program that listens on it, name another port by"
            " --port, or leave --port out for any free one."
        )
    return claimed


def _claim_one(port: int) -> Claim | None:
    """Claim a port, or return None where it is not to be had.

    Granian listens a minute after its port was chosen, beside any other that listens there: both
    would get a part of the requests, and neither an error.
    """
    # A name in the machine's memory: whoever ends, however, has it no more.
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
    """Whether somebody listens on `port`."""
    with socket.socket() as caller:
        caller.settimeout(1)
        return caller.connect_ex((HOST, port)) == 0
