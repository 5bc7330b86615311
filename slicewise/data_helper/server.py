"""The helper's side: one thread that forks a process for each request."""

import importlib
import os
import select
import signal
import socket
import threading
import warnings
from contextlib import suppress
from typing import NoReturn

from slicewise import plugins
from slicewise.data_helper.calls import answer_to, refusal
from slicewise.io.base import find_storage
from slicewise.process.gc_tuning import freeze_loaded_objects
from slicewise.runner.wire import encode, read_message, receive_header
from slicewise.storage import share_trials_with_forks

LONGEST_REQUEST_BYTES = 512 * 1024 * 1024
BEGUN = b"begun\n"
"""The first message of a forked process; a request is sent only after this message."""


def preload() -> None:
    """Load once the modules that processes for requests would take long to
    load, also packages' storages.
    """
    find_storage("file:///")
    share_trials_with_forks()
    with warnings.catch_warnings(action="ignore"):
        plugins.load(plugins.IO)
    with suppress(ImportError):
        importlib.import_module("pyarrow.fs")
    freeze_loaded_objects()


def serve(control: socket.socket) -> None:
    """Fork a process for each request, until the control socket is closed. Never
    returns in a forked process.

    A request that waits for a lost file server keeps no other request waiting.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended processes leave no zombies
    while (received := receive_header(control, 1)) is not None:
        if not received.descriptors:
            continue
        channel = socket.socket(fileno=received.descriptors[0])
        try:
            pid = os.fork()
        except OSError as error:
            with suppress(OSError):
                channel.send(encode(refusal(error)))
        else:
            if pid == 0:
                _run(control, channel)
        channel.close()


def _run(control: socket.socket, channel: socket.socket) -> NoReturn:
    """Answer the request in the forked process, and never return."""
    try:
        control.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        channel.sendall(BEGUN)
        request = read_message(channel, LONGEST_REQUEST_BYTES)
        if request is not None:
            threading.Thread(target=_end_with, args=[channel], daemon=True).start()
            channel.sendall(encode(answer_to(request)))
    finally:
        os._exit(0)


def _end_with(channel: socket.socket) -> None:
    """End this process, during any work, when the worker no longer waits for the answer.

    The worker has ended, or has given up: another process may get the same request.
    """
    poll = select.poll()
    poll.register(channel, select.POLLRDHUP | select.POLLHUP)
    poll.poll()
    os._exit(1)
