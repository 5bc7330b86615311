"""What Linux offers to keep processes from outliving the ones they work for."""

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36
_SET_NO_NEW_PRIVILEGES = 38

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent_pid: int) -> None:
    """Has the kernel kill this process when the thread that started it ends.

    Ends at once when that has happened already.
    """
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def adopt_orphans() -> None:
    """Makes this process the parent of descendants whose own parent ends, however they detached."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def renounce_privileges() -> None:
    """No program that this process or its descendants start gives them another user's rights."""
    _prctl(_SET_NO_NEW_PRIVILEGES, 1)


def end_first_where_memory_is_short() -> None:
    """The kernel ends this process and its descendants before the worker that others depend on."""
    with suppress(OSError):  # where it may not be said, all are alike
        Path("/proc/self/oom_score_adj").write_text("1000")


def children() -> list[int]:
    """The processes whose parent is this one."""
    pid = os.getpid()
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kill_group(pid: int) -> None:
    """Kills a process group and its leader; nothing happens if they are gone."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # ended by itself, or not yet leader of a group of its own


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")
