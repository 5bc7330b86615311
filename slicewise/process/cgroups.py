"""Control groups of version 2: processes that the kernel counts, limits and ends together.

A group is a folder of the file system `cgroup2`, with files by which the kernel is asked and told.
"""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

PROCESSES = "cgroup.procs"
KILL = "cgroup.kill"
_SUBTREE = "cgroup.subtree_control"
_END_SECONDS, _PAUSE_SECONDS = 2.0, 0.005
_PIDFDS_AT_ONCE = 32


class Cgroup:
    """A control group, given by a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def controllers(self) -> frozenset[str]:
        """Return the names of the controllers that the groups below may have. Raises OSError."""
        return frozenset((self.path / "cgroup.controllers").read_text().split())

    def has_own_processes(self) -> bool:
        """Return whether a process is in this group itself; processes in groups below do not
        count. Raises OSError.
        """
        return bool((self.path / PROCESSES).read_text().split())

    def enable(self, controllers: Iterable[str]) -> None:
        """Give controllers to the groups below. Raises OSError."""
        missing = set(controllers) - set((self.path / _SUBTREE).read_text().split())
        if missing:
            self.set(_SUBTREE, " ".join(f"+{name}" for name in sorted(missing)))

    def set(self, name: str, value: object) -> None:
        """Write a value into a file of the kernel. Raises OSError."""
        # Not created where the kernel does not have the file.
        descriptor = os.open(self.path / name, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, str(value).encode())
        finally:
            os.close(descriptor)

    def number(self, name: str) -> int:
        """Return the number in a file; 0 where the kernel does not have the file, or the file has
        the word `max`.
        """
        try:
            text = (self.path / name).read_text().strip()
        except OSError:
            return 0
        return int(text) if text.isdecimal() else 0

    def counts(self, name: str) -> dict[str, int]:
        """Return the numbers of a file by name; empty where the kernel does not have the
        file.
        """
        try:
            lines = (self.path / name).read_text().splitlines()
        except OSError:
            return {}
        pairs = (line.split() for line in lines)
        return {name: int(count) for name, count in pairs}

    def end(self) -> None:
        """Kill all processes of the group and of the groups below."""
        try:
            self.set(KILL, 1)
        except OSError:
            self._end_one_by_one()  # Linux before 5.14, or the group is gone

    def remove(self) -> bool:
        """Kill all processes, and remove the group with the groups below; return whether the group
        is gone.

        The kernel removes no group that has a process, and a killed process may take a while.
        """
        patience = time.monotonic() + _END_SECONDS
        self.end()
        while not self._remove_folders():
            if time.monotonic() > patience:
                return False
            time.sleep(_PAUSE_SECONDS)
            self.end()
        return True

    def _remove_folders(self) -> bool:
        for folder, _, _ in os.walk(self.path, topdown=False):
            with suppress(OSError):
                os.rmdir(folder)
        return not self.path.exists()

    def _end_one_by_one(self) -> None:
        """Kill each process by number, until no process is left or the time is up."""
        patience = time.monotonic() + _END_SECONDS
        with suppress(OSError):
            self.set("pids.max", 0)  # a process that forks without end could outrun the loop
        while self.counts("cgroup.events").get("populated") and time.monotonic() < patience:
            for folder, _, _ in os.walk(self.path):
                _end_members(Path(folder, PROCESSES))
            time.sleep(_PAUSE_SECONDS)


def _end_members(processes: Path) -> None:
    """Kill the processes that a group's file lists, some at a time."""
    pids = sorted(_visible(processes))
    for start in range(0, len(pids), _PIDFDS_AT_ONCE):
        with ExitStack() as opened:
            pidfds = {}
            for pid in pids[start : start + _PIDFDS_AT_ONCE]:
                with suppress(OSError):  # ended meanwhile
                    pidfds[pid] = os.pidfd_open(pid)
                    opened.callback(os.close, pidfds[pid])
            # A process may have ended since the first look, and another may have its number.
            for pid in _visible(processes) & pidfds.keys():
                with suppress(OSError):
                    signal.pidfd_send_signal(pidfds[pid], signal.SIGKILL)


def _visible(processes: Path) -> set[int]:
    """Return the ids in a group's file, without the zeros by which the kernel lists processes of
    other PID namespaces: a signal to 0 would end this process and its neighbours.
    """
    try:
        pids = {int(text) for text in processes.read_text().split()}
    except OSError:
        return set()  # the group is gone
    return {pid for pid in pids if pid > 0}
