"""The warm parent: one thread, pyspark imported, no channel open; forks a runner per request."""

import math
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from slicewise.process.gc_tuning import freeze_loaded_objects
from slicewise.runner.forked_child import (
    TOO_LATE,
    end_unstarted,
    enter_group,
    run_child,
    try_setpgid,
)
from slicewise.runner.parent_answers import answer, end_of, refuse, refuse_all
from slicewise.runner.processes import (
    MemoryScore,
    adopt_orphans,
    children,
    end_all_of,
    has_processes,
    kill_group,
)
from slicewise.runner.run_groups import GroupEntry
from slicewise.runner.run_limits import RunLimits
from slicewise.runner.wire import LineBuffer, Message, WireError, receive_header

DEFAULT_WATCHDOG_SECONDS = 10.0
_LONGEST_SLEEP_SECONDS = 1.0
# A run can take some gigabytes a second if memory is free.
_MEMORY_CHECK_SECONDS = 0.1
# Time for killed processes to end; a process that hangs in the kernel may take for ever.
_ORPHAN_SECONDS, _ORPHAN_PAUSE_SECONDS = 1.0, 0.005
# Status, channel, log, and two of the run's control group.
_DESCRIPTORS_PER_REQUEST = 5

ChildMain = Callable[[str, int, int], int]
"""Performs the operation (first argument), given channel and log; returns an exit status."""


@dataclass
class _Runner:
    pid: int
    pidfd: int
    status: socket.socket
    watchdog: float
    last_ping: float
    lines: LineBuffer
    limits: RunLimits
    group: GroupEntry
    own_user: tuple[int, int] | None = None
    """The runner's user, if no other run has that user."""
    excess: str | None = None
    """The sentence about the exceeded limit, once the runner was killed for it."""
    is_unwatched: bool = False
    """Whether the runner was killed because its worker sent no ping for ``watchdog`` seconds."""


class WarmParentLoop:
    """The loop that forks, watches and reaps runners until the control socket is closed."""

    def __init__(
        self, control: socket.socket, child_main: ChildMain, score: MemoryScore | None = None
    ) -> None:
        self._control = control
        self._child_main = child_main
        self._score = score or MemoryScore()
        self._selector = selectors.DefaultSelector()
        self._runners: dict[int, _Runner] = {}
        # Killed, and not ended yet.
        self._lingering: set[int] = set()
        # Whether orphans were given up for now; there may be more than the lingering ones.
        self._are_orphans_left = False
        self._next_check = 0.0

    def serve(self) -> None:
        """Serve requests; return in the parent when the worker has gone, and never
        return in a forked child.
        """
        adopt_orphans()
        freeze_loaded_objects()
        self._selector.register(self._control, selectors.EVENT_READ, None)
        while True:
            events = self._selector.select(self._pause())
            # Before anything is read: after a stop of worker and parent together, pings in the
            # sockets must not count for the time without a watch.
            self._kill_unwatched()
            self._kill_greedy()
            self._reap_lingering()
            for key, _ in events:
                if key.data is None:
                    if not self._accept():
                        return
                elif key.fileobj is key.data.status:
                    self._hear(key.data)
                else:
                    self._reap(key.data)

    def _accept(self) -> bool:
        received = receive_header(self._control, _DESCRIPTORS_PER_REQUEST)
        if received is None:
            return False
        header, descriptors, is_whole = received
        if not is_whole:
            # Without the last descriptors the run would begin outside of its control group.
            refuse_all(descriptors)
            return True
        status, channel, log, *entry = descriptors
        if header["op"] == "end":
            self._end_for(tuple(header["user"]), socket.socket(fileno=status))
        else:
            group = GroupEntry(entry)
            if not self._fork(header, channel, log, socket.socket(fileno=status), group):
                group.close()
        os.close(channel)
        os.close(log)
        return True

    def _fork(
        self,
        header: Message,
        channel: int,
        log: int,
        status: socket.socket,
        group: GroupEntry = GroupEntry(),  # noqa: B008 - without descriptors nothing changes
    ) -> bool:
        """Fork a runner, or tell the worker why not; return whether there is a runner."""
        parent = os.getpid()
        watchdog = float(header.get("watchdog") or DEFAULT_WATCHDOG_SECONDS)
        # The lease that the worker had at its request holds until then. Another attempt may be
        # active if all processes were stopped in between.
        not_after = float(header.get("not_after") or math.inf)
        if time.monotonic() > not_after:
            refuse(status, TOO_LATE)
            return False
        user: tuple[int, int] | None = tuple(header["user"]) if header.get("user") else None
        try:
            with self._score.highest():
                pid = os.fork()
        except OSError as error:
            refuse(status, f"fork: {error}")
            return False
        if pid == 0:
            if time.monotonic() > not_after:
                end_unstarted(channel, TOO_LATE)
            enter_group(group, channel)
            run_child(partial(self._child_main, str(header["op"])), parent, channel, log, user)
        try_setpgid(pid)
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as error:  # no room for another descriptor
            kill_group(pid)
            group.end()
            os.waitpid(pid, 0)
            refuse(status, f"pidfd_open: {error}")
            return False
        last_ping = min(time.monotonic(), not_after - watchdog)
        runner = _Runner(
            pid,
            pidfd,
            status,
            watchdog,
            last_ping,
            LineBuffer(4096),
            RunLimits.of(header.get("limits")),
            group,
            user if header.get("is_own_user") else None,
        )
        self._runners[pid] = runner
        status.setblocking(False)
        self._selector.register(status, selectors.EVENT_READ, runner)
        self._selector.register(runner.pidfd, selectors.EVENT_READ, runner)
        answer(status, {"type": "started", "pid": pid})
        return True

    def _hear(self, runner: _Runner) -> None:
        """Read pings of the worker; kill the runner when the worker has closed the socket."""
        if runner.status.fileno() < 0:
            return  # reaped in the same round
        try:
            data = runner.status.recv(4096)
            pings = list(runner.lines.feed(data))
        except BlockingIOError:
            return
        except (ConnectionError, WireError):
            data, pings = b"", []
        if pings:
            runner.last_ping = time.monotonic()
        if not data:
            self._selector.unregister(runner.status)
            kill_group(runner.pid)

    def _kill_unwatched(self) -> None:
        now = time.monotonic()
        for runner in self._runners.values():
            if now - runner.last_ping > runner.watchdog:
                runner.is_unwatched = True
                kill_group(runner.pid)

    def _pause(self) -> float:
        checks_memory = any(runner.limits.needs_memory_checks for runner in self._runners.values())
        return _MEMORY_CHECK_SECONDS if checks_memory else _LONGEST_SLEEP_SECONDS

    def _kill_greedy(self) -> None:
        """Kill runs that exceed their limits."""
        now = time.monotonic()
        if not self._runners or now < self._next_check:
            return
        self._next_check = now + self._pause()
        # A process that is no longer adopted by its run would be counted for no run.
        self._end_orphans()
        for runner in self._runners.values():
            if runner.excess is None:
                runner.excess = runner.limits.excess(runner.pid)
            if runner.excess is not None:
                kill_group(runner.pid)

    def _reap(self, runner: _Runner) -> None:
        # The group is killed while its leader is a zombie: no other group can have its number yet.
        kill_group(runner.pid)
        runner.group.end()
        runner.group.close()
        _, wait_status, usage = os.wait4(runner.pid, 0)
        del self._runners[runner.pid]
        self._selector.unregister(runner.pidfd)
        os.close(runner.pidfd)
        if runner.status in self._selector.get_map():
            self._selector.unregister(runner.status)
        code = os.waitstatus_to_exitcode(wait_status)
        exit_message = end_of(code, usage)
        if runner.excess is not None:
            exit_message["excess"] = runner.excess
        elif runner.is_unwatched and code == -signal.SIGKILL:
            exit_message["no_renewal"] = runner.watchdog
        if runner.own_user is None:
            self._end_orphans()
        else:
            # All processes of a user at once: one that forks for ever outruns a loop over orphans.
            exit_message["is_user_gone"] = self._end_user(runner.own_user)
        answer(runner.status, exit_message)
        runner.status.close()

    def _end_for(self, user: tuple[int, int], status: socket.socket) -> None:
        """Answer whether all processes of a user that no run has are gone."""
        is_gone = self._end_user(user)
        answer(status, {"type": "exited", "status": 0, "signal": None, "is_user_gone": is_gone})
        status.close()

    def _end_user(self, user: tuple[int, int]) -> bool:
        """Kill all processes of a user, even detached ones; return whether none is left."""
        patience = time.monotonic() + _ORPHAN_SECONDS
        while not end_all_of(user) or has_processes(user[0]):
            self._end_orphans()
            if time.monotonic() > patience:
                return False
            time.sleep(_ORPHAN_PAUSE_SECONDS)
        self._end_orphans()
        return True

    def _end_orphans(self) -> None:
        """Kill processes that ended runners left behind in other process groups,
        generation by generation.

        Runners adopt the orphans of their run while they live, so that each child of this process
        that is no runner belongs to a run that has ended.
        """
        patience = time.monotonic() + _ORPHAN_SECONDS
        self._are_orphans_left = False
        while orphans := set(children()) - self._runners.keys() - self._lingering:
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
            ended_pids = {pid for pid in orphans if _has_ended(pid)}
            if time.monotonic() > patience:
                # An orphan waits in the kernel, as for a lost file server, or is always followed by
                # others: no other work may wait for that.
                self._lingering |= orphans - ended_pids
                self._are_orphans_left = True
                return
            if not ended_pids:
                time.sleep(_ORPHAN_PAUSE_SECONDS)

    def _reap_lingering(self) -> None:
        """Reap lingering processes that have ended, and end the orphans left behind."""
        ended_pids = {pid for pid in self._lingering if _has_ended(pid)}
        if ended_pids or self._are_orphans_left:
            self._lingering -= ended_pids
            self._end_orphans()


def _has_ended(pid: int) -> bool:
    """Return whether a child has ended; an ended child is reaped."""
    return os.waitpid(pid, os.WNOHANG)[0] == pid
