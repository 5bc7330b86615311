"""Answers of the warm parent to a worker: about a runner, or a refused request."""

import os
import socket
from collections.abc import Sequence
from resource import struct_rusage

from slicewise.runner.wire import Message, encode


def refuse(status: socket.socket, reason: str) -> None:
    """Tell the worker that no runner was forked."""
    answer(status, {"type": "exited", "status": 1, "signal": None, "error": reason})
    status.close()


def refuse_all(descriptors: Sequence[int]) -> None:
    """Refuse a request of which descriptors are missing; if all are missing, the worker reads the
    end of the status.
    """
    for status in descriptors[:1]:
        reason = "the warm parent has no room for the descriptors of the request"
        refuse(socket.socket(fileno=status), reason)
    for descriptor in descriptors[1:]:
        os.close(descriptor)


def end_of(code: int, usage: struct_rusage) -> Message:
    """Return the message about a runner that has ended, with the runner's exit code: the number of
    a signal is negative. ``usage`` covers the runner and the child processes that it waited for.
    """
    return {
        "type": "exited",
        "status": code,
        "signal": -code if code < 0 else None,
        "usage": {
            "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 3),
            # Linux counts in kibibytes.
            "peak_memory": usage.ru_maxrss * 1024,
        },
    }


def answer(status: socket.socket, message: Message) -> None:
    try:
        status.send(encode(message))
    except (BlockingIOError, BrokenPipeError, ConnectionError):
        return  # the worker has gone, and the message has no receiver
