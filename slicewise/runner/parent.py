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
from typing import NoReturn

from slicewise.garbage import freeze_what_is_loaded
from slicewise.runner.processes import (
    MemoryScore,
    adopt_orphans,
    children,
    end_all_of,
    has_processes,
    kill_group,
)
from slicewise.runner.run_limits import RunLimits
from slicewise.runner.wire import LineBuffer, Message, WireError, encode, receive_header

DEFAULT_WATCHDOG_SECONDS = 10.0
_LONGEST_SLEEP_SECONDS = 1.0
# A run takes some gigabytes a second where memory is there to be had.
_MEMORY_LOOK_SECONDS = 0.1
# For killed processes to end in; one that hangs in the kernel may take for ever.
_ORPHAN_SECONDS, _ORPHAN_LOOK_SECONDS = 1.0, 0.005
_DESCRIPTORS_PER_REQUEST = 3
_TOO_LATE = "it was asked for too long ago"

ChildMain = Callable[[str, int, int], int]
"""Does what the operation (first argument) asks, given channel and log; returns an exit status."""


@dataclass
class _Runner:
    pid: int
    pidfd: int
    status: socket.socket
    watchdog: float
    last_ping: float
    lines: LineBuffer
    limits: RunLimits
    own_user: tuple[int, int] | None = None
    """Its user, if no other run has it."""
    excess: str | None = None
    """Of which of its limits it had more, once it was killed for that."""


class WarmParentLoop:
    """Forks, watches and reaps runners until the control socket is closed."""

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
        # Given up for the time being; beside what lingers there may be others.
        self._are_orphans_left = False
        self._next_look = 0.0

    def serve(self) -> None:
        """Returns in the parent when the worker has gone; never returns in a forked child."""
        adopt_orphans()
        freeze_what_is_loaded()
        self._selector.register(self._control, selectors.EVENT_READ, None)
        while True:
            events = self._selector.select(self._pause())
            # Before anything is read: after a stop of worker and parent together, pings that lie
            # in the sockets must not make up for the time in which nobody watched.
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
        header, (channel, log, status) = received
        if header["op"] == "end":
            self._end_for(tuple(header["user"]), socket.socket(fileno=status))
        else:
            self._fork(header, channel, log, socket.socket(fileno=status))
        os.close(channel)
        os.close(log)
        return True

    def _fork(self, header: Message, channel: int, log: int, status: socket.socket) -> None:
        parent = os.getpid()
        watchdog = float(header.get("watchdog") or DEFAULT_WATCHDOG_SECONDS)
        # Until then the lease holds that the worker had when it asked. Another attempt may be at
        # work where all of them were stopped in between.
        not_after = float(header.get("not_after") or math.inf)
        if time.monotonic() > not_after:
            _refuse(status, _TOO_LATE)
            return
        user: tuple[int, int] | None = tuple(header["user"]) if header.get("user") else None
        try:
            with self._score.highest():
                pid = os.fork()
        except OSError as error:
            _refuse(status, f"fork: {error}")
            return
        if pid == 0:
            if time.monotonic() > not_after:
                _end_too_late(channel)
            _run_child(partial(self._child_main, str(header["op"])), parent, channel, log, user)
        _try_setpgid(pid)
        last_ping = min(time.monotonic(), not_after - watchdog)
        runner = _Runner(
            pid,
            os.pidfd_open(pid),
            status,
            watchdog,
            last_ping,
            LineBuffer(4096),
            RunLimits.of(header.get("limits")),
            user if header.get("is_own_user") else None,
        )
        self._runners[pid] = runner
        status.setblocking(False)
        self._selector.register(status, selectors.EVENT_READ, runner)
        self._selector.register(runner.pidfd, selectors.EVENT_READ, runner)
        _tell(status, {"type": "started", "pid": pid})

    def _hear(self, runner: _Runner) -> None:
        """A ping, or the end of the worker's interest."""
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
                kill_group(runner.pid)

    def _pause(self) -> float:
        has_memory_limits = any(one.limits.memory is not None for one in self._runners.values())
        return _MEMORY_LOOK_SECONDS if has_memory_limits else _LONGEST_SLEEP_SECONDS

    def _kill_greedy(self) -> None:
        """Kill runs that have more than their limits allow."""
        now = time.monotonic()
        if not self._runners or now < self._next_look:
            return
        self._next_look = now + self._pause()
        # What gave up being adopted by its run would be counted with none.
        self._end_orphans()
        for runner in self._runners.values():
            if runner.excess is None:
                runner.excess = runner.limits.excess(runner.pid)
            if runner.excess is not None:
                kill_group(runner.pid)

    def _reap(self, runner: _Runner) -> None:
        # The group is killed while its leader is a zombie: its number cannot be another's yet.
        kill_group(runner.pid)
        _, wait_status = os.waitpid(runner.pid, 0)
        del self._runners[runner.pid]
        self._selector.unregister(runner.pidfd)
        os.close(runner.pidfd)
        if runner.status in self._selector.get_map():
            self._selector.unregister(runner.status)
        code = os.waitstatus_to_exitcode(wait_status)
        ended = {"type": "exited", "status": code, "signal": -code if code < 0 else None}
        if runner.excess is not None:
            ended["excess"] = runner.excess
        if runner.own_user is None:
            self._end_orphans()
        else:
            # All of a user at once: what forks for ever outruns what ends orphans one by one.
            ended["is_user_gone"] = self._end_user(runner.own_user)
        _tell(runner.status, ended)
        runner.status.close()

    def _end_for(self, user: tuple[int, int], status: socket.socket) -> None:
        """Answer whether all processes of a user that no run has are gone."""
        is_gone = self._end_user(user)
        _tell(status, {"type": "exited", "status": 0, "signal": None, "is_user_gone": is_gone})
        status.close()

    def _end_user(self, user: tuple[int, int]) -> bool:
        """Kill all processes of a user, wherever they detached themselves to; return whether none
        is left.
        """
        patience = time.monotonic() + _ORPHAN_SECONDS
        while not end_all_of(user) or has_processes(user[0]):
            self._end_orphans()
            if time.monotonic() > patience:
                return False
            time.sleep(_ORPHAN_LOOK_SECONDS)
        self._end_orphans()
        return True

    def _end_orphans(self) -> None:
        """Kills what ended runners left behind in process groups of its own, generation by one.

        Runners adopt what their run leaves behind while they live, so that no child here that is
        not a runner belongs to a run that goes on.
        """
        patience = time.monotonic() + _ORPHAN_SECONDS
        self._are_orphans_left = False
        while orphans := set(children()) - self._runners.keys() - self._lingering:
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
            ended = {pid for pid in orphans if _has_ended(pid)}
            if time.monotonic() > patience:
                # It waits in the kernel, as for a file server that is gone, or is always followed
                # by others: nothing else here may wait for that.
                self._lingering |= orphans - ended
                self._are_orphans_left = True
                return
            if not ended:
                time.sleep(_ORPHAN_LOOK_SECONDS)

    def _reap_lingering(self) -> None:
        """Reap what has ended since; with it goes what it has left behind itself."""
        ended = {pid for pid in self._lingering if _has_ended(pid)}
        if ended or self._are_orphans_left:
            self._lingering -= ended
            self._end_orphans()


def _has_ended(pid: int) -> bool:
    """Whether a child has ended; one that has is reaped."""
    return os.waitpid(pid, os.WNOHANG)[0] == pid


def _end_too_late(channel: int) -> NoReturn:
    """In the forked process, where it was stopped before it could begin: no fault of the code."""
    failed = {"type": "failed", "kind": "platform", "error": _TOO_LATE, "traceback": ""}
    try:
        os.write(channel, encode(failed | {"partition": None}))
    finally:
        os._exit(1)


def _run_child(
    main: Callable[[int, int], int],
    parent: int,
    channel: int,
    log: int,
    user: tuple[int, int] | None,
) -> NoReturn:
    """In the forked process: becomes the runner, and never returns."""
    status = 1
    try:
        from slicewise.runner.child import become_runner

        channel, log = become_runner(parent, channel, log, user)
        status = main(channel, log)
    finally:
        os._exit(status)


def _try_setpgid(pid: int) -> None:
    """Done on both sides of the fork, so that it has happened whichever is first."""
    try:
        os.setpgid(pid, pid)
    except (ProcessLookupError, PermissionError):
        return  # it has ended already


def _refuse(status: socket.socket, why: str) -> None:
    """Tell that no runner was forked."""
    _tell(status, {"type": "exited", "status": 1, "signal": None, "error": why})
    status.close()


def _tell(status: socket.socket, message: Message) -> None:
    try:
        status.send(encode(message))
    except (BlockingIOError, BrokenPipeError, ConnectionError):
        return  # the worker has gone, and with it whoever wanted to know
