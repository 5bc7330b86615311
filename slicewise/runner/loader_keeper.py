"""The keeper of one load: starts the loader, and ends all processes of the load with the loader.

Definition files may start processes that leave the group and the session of the loader. The keeper
adopts these processes, and kills all processes of the loader's user if no other load has this user.
The keeper is a process beside the server, whose threads and secrets a fork would copy.
"""

import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypedDict

from slicewise.runner.processes import (
    adopt_orphans,
    become,
    children,
    die_with_parent,
    end_all_of,
    has_processes,
    kill_group,
    renounce_privileges,
)

_MEMORY_LIMIT_BYTES = 4 * 1024**3
_FILE_LIMIT_BYTES = 64 * 1024**2
# Processes and threads of one load, if the load has a user of its own.
_PROCESS_LIMIT = 512
# Time for killed processes to end; a process that hangs in the kernel may take for ever.
_END_SECONDS, _PAUSE_SECONDS = 2.0, 0.005


class LoadOrder(TypedDict):
    """An order to the keeper, as JSON on standard input."""

    command: list[str]
    """The loader and its arguments; empty if processes are only to be ended."""
    env: dict[str, str]
    cwd: str
    report_fd: int
    keeps_output: bool
    """Whether standard output is kept beside standard error."""
    seconds: int
    user: tuple[int, int] | None
    """User and group that no other load has; None for the keeper's own user."""


class LoadEnd(TypedDict, total=False):
    """The answer of the keeper, as JSON on the descriptor that is its argument."""

    status: int | None
    """The status of the loader; None if the time ran out."""
    error: str
    """The reason why the loader was not started."""
    is_clean: bool
    """Whether no process of the load is left."""


def main() -> None:
    """Follow the order on standard input, and write the answer to the given descriptor."""
    answer_fd, starter = int(sys.argv[1]), int(sys.argv[2])
    die_with_parent(starter)
    os.set_inheritable(answer_fd, False)
    order: LoadOrder = json.load(sys.stdin)
    user = None if order["user"] is None else (order["user"][0], order["user"][1])
    adopt_orphans()
    renounce_privileges()
    end: LoadEnd = {"status": 0}
    if order["command"]:
        try:
            end = {"status": _load(order, user)}
        except (OSError, subprocess.SubprocessError) as error:
            end = {"error": str(error)}
    end["is_clean"] = _end_processes(user)
    with contextlib.suppress(BrokenPipeError):
        os.write(answer_fd, json.dumps(end).encode())


def _load(order: LoadOrder, user: tuple[int, int] | None) -> int | None:
    """Run the loader; return the status, or None if the time ran out. Raises OSError."""
    process = subprocess.Popen(
        order["command"],
        env=order["env"],
        cwd=order["cwd"],
        stdin=subprocess.DEVNULL,
        stdout=None if order["keeps_output"] else subprocess.DEVNULL,
        pass_fds=(order["report_fd"],),
        start_new_session=True,
        preexec_fn=_preparation(user),
    )
    watch = os.pidfd_open(process.pid)
    try:
        end = select.poll()
        end.register(watch, select.POLLIN)
        in_time = end.poll(order["seconds"] * 1000)
    finally:
        os.close(watch)
        # Killed before the wait: until then the number of the group cannot belong to another
        # process.
        kill_group(process.pid)
        status = process.wait()
    return status if in_time else None


def _preparation(user: tuple[int, int] | None) -> Callable[[], None]:
    keeper = os.getpid()

    def prepare() -> None:
        _lower(resource.RLIMIT_AS, _MEMORY_LIMIT_BYTES)
        _lower(resource.RLIMIT_FSIZE, _FILE_LIMIT_BYTES)
        _lower(resource.RLIMIT_CORE, 0)
        if user is not None:
            _lower(resource.RLIMIT_NPROC, _PROCESS_LIMIT)
            become(user)
        die_with_parent(keeper)

    return prepare


def _lower(kind: int, limit: int) -> None:
    """Set a limit, and never more than the server itself may have."""
    _, most = resource.getrlimit(kind)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(kind, (limit, limit))


def _end_processes(user: tuple[int, int] | None) -> bool:
    """Kill all processes of the load; return whether no process is left."""
    patience = time.monotonic() + _END_SECONDS
    while True:
        if user is not None:
            is_gone = end_all_of(user) and not has_processes(user[0])
            _reap()
        else:
            is_gone = _end_descendants()
        if is_gone or time.monotonic() > patience:
            return is_gone
        time.sleep(_PAUSE_SECONDS)


def _end_descendants() -> bool:
    """Kill the children of the keeper; return whether there were none.

    The children of a killed process become children of the keeper.
    """
    pids = children()
    for pid in pids:
        # A program with the rights of another user (`sudo`) was started by no code of the load.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    _reap()
    return not pids


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def read_end(text: bytes) -> LoadEnd:
    """Return the answer of a keeper; an unclean end if the keeper was killed."""
    try:
        end: LoadEnd = json.loads(text)
    except ValueError:
        return {"error": "the process that keeps the loader was killed", "is_clean": False}
    return end
