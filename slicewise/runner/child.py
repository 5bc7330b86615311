"""The first and last steps of a forked runner; the module `work` has the steps between."""

import fcntl
import logging
import os
import random
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from typing import TextIO

from slicewise import spark
from slicewise.process.hiding import hide_from_others
from slicewise.process.python_start import hide_from_started_pythons
from slicewise.runner import submit
from slicewise.runner.channel import Channel
from slicewise.runner.processes import (
    adopt_orphans,
    become,
    die_with_parent,
)
from slicewise.runner.run_limits import RunLimits
from slicewise.runner.session import is_submitted
from slicewise.runner.user_environment import take_environment
from slicewise.runner.wire import REQUEST_LIMIT_BYTES, Message, read_message

_CHANNEL = 3


def become_runner(
    parent: int, channel: int, log: int, user: tuple[int, int] | None = None
) -> tuple[int, int]:
    """Turn this process into a runner; return the numbers of channel and log.

    The runner has a process group of its own, ends with the parent, and has no descriptors but
    channel and log; it gets another user and group if ``user`` is given. The log stands behind
    stdout and stderr.
    """
    os.setpgid(0, 0)
    die_with_parent(parent)
    # Detached processes stay the run's until it ends: the warm parent could not tell their run.
    adopt_orphans()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    # As in any Python program: to write to a closed connection raises an error.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    # Moved out of the way first: either may have one of the numbers that are assigned below.
    channel, log = _lift(channel), _lift(log)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.dup2(channel, _CHANNEL, inheritable=False)
    os.closerange(_CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))
    if user is not None:
        become(user)
        die_with_parent(parent)
    hide_from_others()
    if user is not None:
        take_environment()
    hide_from_started_pythons()
    _replace_copied_state()
    return _CHANNEL, 1


Perform = Callable[[Message, Channel], int]
"""Performs one request and reports on it; returns the exit status."""


def main(performs: Mapping[str, Perform], operation: str, channel: int, log: int) -> int:
    """Read the request from the channel and perform the request; return the exit status.

    ``performs`` has the functions by operation. A run of a Spark application is submitted instead.
    """
    with socket.socket(fileno=channel) as connection:
        request = read_message(connection, REQUEST_LIMIT_BYTES)
        if request is None:
            return 1
        home = request.get("home")
        RunLimits.of(request.get("limits")).impose(is_only_user=home is not None)
        if home is not None:
            _set_home(home)
        os.environ |= request.get("environment", {})
        perform = _interrupt if operation == "interrupt" else performs[operation]
        if is_submitted(request):
            perform = submit.launch
        return answer_run(perform, request, Channel(connection))


def _set_home(home: str) -> None:
    """Prepare for a user that no other run has: set a home, a name, and a umask by which
    its group may change files.
    """
    # The host has no name for the user, and libraries ask for one.
    name = f"slicewise-{os.getuid()}"
    os.environ |= {"HOME": home, "TMPDIR": home, "USER": name, "LOGNAME": name}
    tempfile.tempdir = None  # the folder found before
    os.umask(0o002)


def answer_run(perform: Perform, request: Message, worker: Channel) -> int:
    """Perform a request, and report a failure of the platform; return the exit status."""
    try:
        status = perform(request, worker)
    except BaseException as error:
        worker.say(_platform_failure(error))
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def _interrupt(request: Message, worker: Channel) -> int:
    spark.interrupt(str(request["remote"]), str(request["session_id"]))
    return 0


def _platform_failure(error: BaseException) -> Message:
    return {
        "type": "failed",
        "kind": "platform",
        "error": f"{type(error).__name__}: {error}"[:1000],
        "traceback": "".join(traceback.format_exception(error))[-50_000:],
        "partition": None,
    }


def _lift(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 100)


def _text_stream(descriptor: int) -> TextIO:
    return open(
        descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )


def _replace_copied_state() -> None:
    """Replace the objects that a fork copies but each process must have for itself."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
    sys.stdout = _text_stream(1)
    sys.stderr = _text_stream(2)
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    os.chdir("/")
