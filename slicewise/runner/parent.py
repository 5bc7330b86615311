"""The warm parent: one thread, pyspark imported, no channel open; forks a runner per request."""

import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from slicewise.garbage import freeze_what_is_loaded
from slicewise.runner.processes import adopt_orphans, children, kill_group
from slicewise.runner.wire import LineBuffer, Message, WireError, encode, receive_header

DEFAULT_WATCHDOG_SECONDS = 10.0
_LONGEST_SLEEP_SECONDS = 1.0
_DESCRIPTORS_PER_REQUEST = 3

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


class WarmParentLoop:
    """Forks, watches and reaps runners until the control socket is closed."""

    def __init__(self, control: socket.socket, child_main: ChildMain) -> None:
        self._control = control
        self._child_main = child_main
        self._selector = selectors.DefaultSelector()
        self._runners: dict[int, _Runner] = {}

    def serve(self) -> None:
        """Returns in the parent when the worker has gone; never returns in a forked child."""
        adopt_orphans()
        freeze_what_is_loaded()
        self._selector.register(self._control, selectors.EVENT_READ, None)
        while True:
            events = self._selector.select(_LONGEST_SLEEP_SECONDS)
            # Before anything is read: after a stop of worker and parent together, pings that lie
            # in the sockets must not make up for the time in which nobody watched.
            self._kill_unwatched()
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
        self._fork(header, channel, log, socket.socket(fileno=status))
        os.close(channel)
        os.close(log)
        return True

    def _fork(self, header: Message, channel: int, log: int, status: socket.socket) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            exited = {"type": "exited", "status": 1, "signal": None, "error": f"fork: {error}"}
            _tell(status, exited)
            status.close()
            return
        if pid == 0:
            _run_child(self._child_main, parent, str(header["op"]), channel, log)
        _try_setpgid(pid)
        watchdog = float(header.get("watchdog") or DEFAULT_WATCHDOG_SECONDS)
        runner = _Runner(
            pid, os.pidfd_open(pid), status, watchdog, time.monotonic(), LineBuffer(4096)
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

    def _reap(self, runner: _Runner) -> None:
        # The group is killed while its leader is a zombie: its number cannot be another's yet.
        kill_group(runner.pid)
        _, wait_status = os.waitpid(runner.pid, 0)
        del self._runners[runner.pid]
        self._selector.unregister(runner.pidfd)
        os.close(runner.pidfd)
        self._end_orphans()
        if runner.status in self._selector.get_map():
            self._selector.unregister(runner.status)
        code = os.waitstatus_to_exitcode(wait_status)
        _tell(
            runner.status,
            {"type": "exited", "status": code, "signal": -code if code < 0 else None},
        )
        runner.status.close()

    def _end_orphans(self) -> None:
        """Kills what ended runners left behind in process groups of its own, generation by one.

        Runners adopt what their run leaves behind while they live, so that no child here that is
        not a runner belongs to a run that goes on.
        """
        while orphans := [pid for pid in children() if pid not in self._runners]:
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _run_child(main: ChildMain, parent: int, operation: str, channel: int, log: int) -> None:
    """In the forked process: becomes the runner, and never returns."""
    status = 1
    try:
        from slicewise.runner.child import become_runner

        channel, log = become_runner(parent, channel, log)
        status = main(operation, channel, log)
    finally:
        os._exit(status)


def _try_setpgid(pid: int) -> None:
    """Done on both sides of the fork, so that it has happened whichever is first."""
    try:
        os.setpgid(pid, pid)
    except (ProcessLookupError, PermissionError):
        return  # it has ended already


def _tell(status: socket.socket, message: Message) -> None:
    try:
        status.send(encode(message))
    except (BlockingIOError, BrokenPipeError, ConnectionError):
        return  # the worker has gone, and with it whoever wanted to know
