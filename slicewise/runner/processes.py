"""Means of Linux to end processes with the processes that need them, and to isolate processes."""

import ctypes
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SET_PDEATHSIG = 1
_DROP_BOUNDING = 24
_SET_CHILD_SUBREAPER = 36
_SET_NO_NEW_PRIVILEGES = 38
_KILL, _SETGID, _SETUID = 5, 6, 7
_HIGHEST_CAPABILITY = 63
# To become a user and to signal takes a millisecond, on a busy machine longer.
_END_ALL_SECONDS = 0.1
_CAPABILITY_VERSION = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when the thread that started it ends.

    Ends this process at once if that has happened already.
    """
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent ends, even of detached ones."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def renounce_privileges() -> None:
    """Forbid that programs which this process or its descendants start get another user's
    rights.
    """
    _prctl(_SET_NO_NEW_PRIVILEGES, 1)


def keep_only_rights_over_users() -> None:
    """Give up root's rights, except the rights to become another user and to
    end other users' processes.
    """
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    # Effective, permitted and inheritable ones: the lower halves, then the upper ones.
    sets = (ctypes.c_uint32 * 6)()
    _check(_libc.capget(header, sets), "capget")
    kept_rights = sets[1] & (1 << _KILL | 1 << _SETGID | 1 << _SETUID)
    for number in range(_HIGHEST_CAPABILITY + 1):
        if not kept_rights >> number & 1:
            # Fails without the right to do so: then no program started here gets more rights.
            _libc.prctl(_DROP_BOUNDING, ctypes.c_ulong(number), 0, 0, 0)
    _check(
        _libc.capset(header, (ctypes.c_uint32 * 6)(kept_rights, kept_rights, 0, 0, 0, 0)), "capset"
    )


def become(user: tuple[int, int]) -> None:
    """Change to this user and group, and to nothing else, for good.

    `die_with_parent` and `hide_from_others` have to be called again.
    """
    uid, gid = user
    if uid <= 0 or gid < 0:
        raise ValueError(f"user code does not run as the user {uid} of the group {gid}")
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if os.getresuid() != (uid, uid, uid):
        os._exit(1)


def end_all_of(user: tuple[int, int]) -> bool:
    """Kill all processes of a user; return whether that was done.

    Done in one step of the kernel, so that no process escapes by forking: a child becomes that
    user, and may then signal nothing but the user's processes. A process of the user may kill or
    stop the child first: the child is awaited no longer than the signal takes. The caller may try
    again.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            become(user)
            if _effective_capabilities() == 0:
                os.kill(-1, signal.SIGKILL)
                status = 0
        finally:
            os._exit(status)
    ended_with = _status_within(pid, _END_ALL_SECONDS)
    if ended_with is None:
        os.kill(pid, signal.SIGKILL)
        # A child that does not end even so stays a child of this process, as orphans do.
        _status_within(pid, _END_ALL_SECONDS)
    return ended_with == 0


def _status_within(pid: int, seconds: float) -> int | None:
    """Return the status of a child that ends in time, and reap the child; None for any
    other child.
    """
    descriptor = os.pidfd_open(pid)
    try:
        ends = select.poll()
        ends.register(descriptor, select.POLLIN)
        ends.poll(seconds * 1000)
    finally:
        os.close(descriptor)
    ended_pid, status = os.waitpid(pid, os.WNOHANG)
    return status if ended_pid else None


def has_processes(uid: int) -> bool:
    """Return whether a user has a process that has not ended."""
    with os.scandir("/proc") as entries:
        for entry in entries:
            with suppress(OSError):  # the process has ended meanwhile
                if entry.name.isdecimal() and entry.stat().st_uid == uid:
                    state = Path(entry.path, "stat").read_text().rpartition(")")[2].split()[0]
                    if state not in "ZX":
                        return True
    return False


def _effective_capabilities() -> int:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()
    _check(_libc.capget(header, sets), "capget")
    return int(sets[0]) | int(sets[3])


class MemoryScore:
    """The score by which the kernel selects a process to end when memory is short.

    Created before `hide_from_others`, after which a process may not set its score any more.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        with suppress(OSError):  # where the score may not be set, all processes are alike
            self._file = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
            self._own = os.read(self._file, 16)

    @contextmanager
    def highest(self) -> Iterator[None]:
        """Let processes that are forked within the block, and their descendants, end before the
        worker, on which others depend.
        """
        self._set(b"1000")
        try:
            yield
        finally:
            self._set(self._own if self._file is not None else b"")

    def _set(self, score: bytes) -> None:
        if self._file is not None:
            with suppress(OSError):
                os.pwrite(self._file, score, 0)


def children() -> list[int]:
    """Return the ids of the processes whose parent is this one."""
    pid = os.getpid()
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kill_group(pid: int) -> None:
    """Kill a process group and its leader; do nothing if both are gone."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # ended by itself, or not yet leader of a group of its own


def _prctl(option: int, value: int) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl({option})")


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
