"""The runner's end of the channel to a worker: messages, and questions with answers."""

import os
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from threading import Lock

from slicewise.platform_failures import PlatformError
from slicewise.runner.wire import MESSAGE_LIMIT_BYTES, Message, encode, read_message


class WorkerGoneError(PlatformError):
    """The worker that should answer is gone. Not the fault of the asset's code."""


class Channel:
    """The channel to the worker; safe to use from all threads of the runner's process. Each
    question waits for an answer.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = Lock()
        self._pid = os.getpid()
        self.uninterrupted: Callable[[], AbstractContextManager[None]] = nullcontext
        """Returns a block in which no exception of a signal may cut a message in two."""

    def hand_over(self, taker: socket.socket) -> None:
        """Send the channel to the process behind a socket, which calls `receive_channel`."""
        socket.send_fds(taker, [b"\n"], [self._connection.fileno()])

    def say(self, message: Message) -> None:
        """Send a message to the worker."""
        with self.uninterrupted(), self._lock:
            self._connection.sendall(encode(message))

    def ask(self, question: str, **facts: object) -> Message:
        """Ask the worker a question and return the answer.

        Raises WorkerGoneError if no answer comes, ValueError for a question that the worker
        refuses, and RuntimeError in a process that the run has forked: the answer would go to
        either of the two.
        """
        return self.confirm({"type": "ask", "question": question, **facts})

    def confirm(self, message: Message) -> Message:
        """Send a message and return the answer. Raises the errors of `ask`."""
        if os.getpid() != self._pid:
            raise RuntimeError(
                "only the process of the run can ask the worker, not a forked process"
            )
        with self.uninterrupted(), self._lock:
            try:
                self._connection.sendall(encode(message))
                answer = read_message(self._connection, MESSAGE_LIMIT_BYTES)
            except ConnectionError as error:
                raise WorkerGoneError(f"the worker of this run has ended: {error}") from error
        if answer is None:
            raise WorkerGoneError("the worker of this run has ended")
        if "error" in answer:
            raise ValueError(f"the worker refuses the question: {answer['error']}")
        return answer


def receive_channel(giver: socket.socket) -> Channel:
    """Receive the channel that another process sends. Raises WorkerGoneError if none comes."""
    data, descriptors, _, _ = socket.recv_fds(giver, 1, 1)
    if not data or not descriptors:
        raise WorkerGoneError("the runner of this run has ended")
    os.set_inheritable(descriptors[0], False)
    return Channel(socket.socket(fileno=descriptors[0]))
