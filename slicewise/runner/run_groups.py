"""A control group for each run, by which the kernel limits the run and ends all of the processes.

Each worker has a group of its own below the folder that all workers share, and makes the groups of
runs in there. The worker holds a lock on that group; the kernel frees the lock with the worker, and
the next worker ends and removes groups without a lock. Other programs may have groups in that
folder: a worker removes a group only if name and content are those of a worker's group.
"""

import fcntl
import logging
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from uuid import uuid4

from slicewise.process.cgroups import KILL, PROCESSES, Cgroup
from slicewise.runner.group_folder import CONTROLLERS
from slicewise.runner.group_names import (
    groups_around_this_process,
    has_runs_alone,
    identity_of,
    is_worker_group,
)
from slicewise.runner.run_limits import RunLimits

log = logging.getLogger(__name__)

_READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ATTEMPTS = 10
_TRIAL_LIMITS = RunLimits(memory=64 * 1024**2, processes=16)


class RunGroups:
    """The groups of one worker's runs; safe to use from several threads.

    ``folder`` is the group that all workers share. Without ``controllers`` the groups limit
    nothing, and serve to end processes.
    """

    def __init__(self, folder: Path, controllers: Sequence[str] = CONTROLLERS) -> None:
        self._folder = Cgroup(folder)
        self._controllers = controllers
        self._own: Cgroup | None = None
        self._lock: int | None = None
        self._numbers = count(1)
        self._remains: list[Cgroup] = []
        self._remains_lock = threading.Lock()

    @property
    def limits_runs(self) -> bool:
        """Whether the kernel counts memory and processes of each group."""
        return bool(self._controllers)

    def start(self) -> None:
        """Remove the groups of dead workers, create this worker's group, and put a process into a
        group for trial. Raises OSError.
        """
        self._folder.enable(self._controllers)
        self._remove_dead_workers()
        try:
            self._create_own()
            self._try()
        except BaseException:
            self.close()
            raise

    def create(self, name: str, limits: RunLimits) -> "RunGroup":
        """Create a group for a run, with the limits of the run. Raises OSError.

        ``name`` is a mark for people, and may come twice.
        """
        if self._own is None:
            raise FileNotFoundError("the worker has no control group")
        self._remove_remains()
        group = Cgroup(self._own.path / f"run-{name}-{next(self._numbers)}")
        group.path.mkdir()
        try:
            group.path.chmod(0o755)  # whichever umask the worker has
            if self._controllers:
                _impose(group, limits)
            return RunGroup(group, limits, self._remains.append)
        except BaseException:
            group.remove()
            raise

    def close(self) -> None:
        """End all runs and remove the groups."""
        if self._own is not None and not self._own.remove():
            log.warning("control group not removed", extra={"group": str(self._own.path)})
        self._own = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _remove_dead_workers(self) -> None:
        around_this_process = groups_around_this_process()
        for path in self._folder.path.iterdir():
            if not is_worker_group(path) or identity_of(path) in around_this_process:
                continue
            lock = _locked(path)
            if lock is not None:
                if has_runs_alone(path) and not Cgroup(path).remove():
                    log.warning("control group not removed", extra={"group": str(path)})
                os.close(lock)

    def _create_own(self) -> None:
        for _ in range(_ATTEMPTS):
            path = self._folder.path / f"run-worker.{os.getpid()}.{uuid4().hex[:8]}"
            path.mkdir(mode=0o700)
            lock = _locked(path)
            if lock is not None and path.exists():
                break
            if lock is not None:
                os.close(lock)  # another worker took the group for that of a dead worker
        else:
            raise BlockingIOError("the control group of the worker cannot be locked")
        self._own, self._lock = Cgroup(path), lock
        # Runs pass through to read the groups in there. Only the owner can open the folder: a run
        # that locked the folder would keep the remains of a dead worker.
        path.chmod(0o711)
        self._own.enable(self._controllers)

    def _try(self) -> None:
        group = self.create("trial", _TRIAL_LIMITS)
        with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
            try:
                with group.entry() as descriptors:
                    os.write(descriptors[0], str(process.pid).encode())
            finally:
                process.kill()
                group.remove()

    def _remove_remains(self) -> None:
        """Remove groups whose processes had not ended in time."""
        with self._remains_lock:
            for group in list(self._remains):
                with suppress(OSError):
                    group.path.rmdir()
                if not group.path.exists():
                    self._remains.remove(group)


class RunGroup:
    """The control group of one run."""

    def __init__(self, group: Cgroup, limits: RunLimits, keep: Callable[[Cgroup], None]) -> None:
        self._group, self._limits, self._keep = group, limits, keep
        self._excess: str | None = None
        self.events: int | None = None
        """A descriptor with a priority event when the kernel has refused the run a process."""
        with suppress(FileNotFoundError):
            self.events = os.open(group.path / "pids.events", os.O_RDONLY | os.O_CLOEXEC)
            self._await_events()

    @contextmanager
    def entry(self) -> Iterator[list[int]]:
        """Open the files by which a process enters the group and by which the group is ended.

        The second file is missing before Linux 5.14.
        """
        descriptors = [os.open(self._group.path / PROCESSES, os.O_WRONLY | os.O_CLOEXEC)]
        try:
            with suppress(FileNotFoundError):
                descriptors.append(os.open(self._group.path / KILL, os.O_WRONLY | os.O_CLOEXEC))
            yield descriptors
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def end_excessive(self) -> None:
        """End the run if the run has reached its limit of processes: called at each event."""
        self._await_events()
        if self.excess() is not None:
            self._group.end()

    def excess(self) -> str | None:
        """Return a sentence about the limit that the run has reached; None if the run has not
        reached a limit.
        """
        self._excess = self._excess or self._excess_now()
        return self._excess

    def end(self) -> None:
        """Kill all processes of the run."""
        self._group.end()

    def remove(self) -> None:
        """Kill all processes of the run, and remove the group."""
        self._close_events()
        if not self._group.remove():
            # A process waits in the kernel, as for a lost file server.
            log.warning("control group not removed", extra={"group": str(self._group.path)})
            self._keep(self._group)

    def _excess_now(self) -> str | None:
        memory = self._group.counts("memory.events")
        # `oom` counts where the limit was reached. `oom_kill` alone: a group above, or the host,
        # has no memory left, which is no fault of the run.
        if memory.get("oom") and memory.get("oom_kill"):
            return self._limits.out_of_memory()
        most = self._limits.processes
        if most is not None and self._group.counts("pids.events").get("max"):
            # Before Linux 6.11 the event counts too if a group above has reached its own limit.
            threads = max(self._group.number("pids.current"), self._group.number("pids.peak"))
            if threads >= most:
                return self._limits.out_of_processes(threads)
        return None

    def _await_events(self) -> None:
        if self.events is None:
            return
        try:
            os.pread(self.events, 4096, 0)  # an event is what came after the last read
        except OSError:
            self._close_events()  # somebody has removed the group, which is an event for ever

    def _close_events(self) -> None:
        if self.events is not None:
            os.close(self.events)
            self.events = None


class GroupEntry:
    """The way into the group of a run, for the process that forks the run.

    ``descriptors`` come from `RunGroup.entry`; none for a run without a group.
    """

    def __init__(self, descriptors: Sequence[int] = ()) -> None:
        self._descriptors = descriptors

    def enter(self) -> None:
        """Put this process into the group. Raises OSError."""
        if self._descriptors:
            os.write(self._descriptors[0], b"0")

    def end(self) -> None:
        """Kill all processes of the group, where the kernel does that in one step."""
        with suppress(OSError):
            for kill in self._descriptors[1:]:
                os.write(kill, b"1")

    def close(self) -> None:
        """Close the descriptors."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = ()


def _impose(group: Cgroup, limits: RunLimits) -> None:
    # A run of which the kernel has ended a part would go on without that part.
    group.set("memory.oom.group", 1)
    if limits.memory is not None:
        group.set("memory.max", limits.memory)
        with suppress(FileNotFoundError):  # a kernel without swap
            group.set("memory.swap.max", 0)
    if limits.processes is not None:
        group.set("pids.max", limits.processes)


def _locked(path: Path) -> int | None:
    """Return a descriptor that holds the lock of a worker's group; None if another process has the
    lock, or the group is not this user's, or gone.
    """
    try:
        lock = os.open(path, _READ_FOLDER)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
