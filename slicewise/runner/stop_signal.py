"""The request of a worker to stop a run: SIGTERM, as an exception in the function of the run.

Only a run with a tear-down is asked to stop; other runs are killed.
"""

import _thread
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from traceback import walk_stack
from types import FrameType
from typing import NoReturn

from slicewise.runner import unheard_signals
from slicewise.running.steps import RunStopped

# Functions that take a lock, or let a lock go, in any package.
_LOCKING_NAMES = frozenset(
    {"__enter__", "__exit__", "acquire", "release", "_acquire_restore", "_release_save"}
    | {"_acquireLock", "_releaseLock"}
)
_WAITS = frozenset(
    wait.__code__
    for wait in (
        threading.Condition.wait,
        threading.Condition.wait_for,
        threading.Event.wait,
        threading.Thread.join,
        # By this function `join` waits until Python 3.12.
        getattr(threading.Thread, "_wait_for_tstate_lock", threading.Thread.join),
    )
)
# Some calls of gRPC wait in C code, which takes no lock: after this time the exception comes there.
_PATIENCE_SECONDS = 1.5
_REPEATED_SECONDS = 0.002


class _StoppedInEventLoop(RunStopped, KeyboardInterrupt):
    """A stop in a task: an event loop of asyncio keeps other exceptions of tasks to itself."""


class StopSignal:
    """SIGTERM in a runner: ends the process, raises an exception, or is only noted.

    Before `raising` the signal ends the process, since no step of the run has begun. Inside the
    block the signal raises `RunStopped` in the main thread, as soon as the main thread is not about
    to take or to let go of a lock, as far as the names of functions tell. After the block the
    signal is noted. ``on_stop`` is called in a thread at the first signal.
    """

    def __init__(self, on_stop: Callable[[], None]) -> None:
        self._on_stop = on_stop
        self.is_asked = False
        self.asked_at = math.inf
        self._is_raising = self._is_due = self._is_repeating = False
        self._holds = 0
        self._main_thread = 0

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise `RunStopped` in the block, and after a block that has caught the exception."""
        signal.signal(signal.SIGTERM, self._handle)
        os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_forget)
        self._main_thread = threading.get_ident()
        self._is_raising = True
        try:
            if self._is_due:  # asked before the block
                self._raise_in(None)
            with unheard_signals.woken_until_heard(signal.SIGTERM, self._is_heard):
                yield
        finally:
            self._is_raising = False
        if self.is_asked:
            raise RunStopped

    @contextmanager
    def held(self) -> Iterator[None]:
        """Put the exception off to the end of the block."""
        is_main = threading.current_thread() is threading.main_thread()
        self._holds += is_main
        try:
            yield
        finally:
            self._holds -= is_main
            if is_main and self._is_due:
                self._raise_in(sys._getframe())

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self.is_asked:
            # In this order: another request may come between two of these lines.
            self.asked_at = min(self.asked_at, time.monotonic())
            _starts_thread(self._on_stop)
            self.is_asked = self._is_due = True
        if self._is_due:
            self._raise_in(frame)

    def _is_heard(self) -> bool:
        return self.is_asked or not self._is_raising or not self._is_handler()

    def _is_handler(self) -> bool:
        # A handler of the function is called for the signals of others alone.
        return signal.getsignal(signal.SIGTERM) == self._handle

    def _raise_in(self, frame: FrameType | None) -> None:
        if not self._is_raising or self._holds:
            return
        is_over = time.monotonic() >= self.asked_at + _PATIENCE_SECONDS
        if _may_be_dropped(frame) or (_may_hold_lock(frame) and not is_over):
            if not self._is_repeating:
                self._is_repeating = _starts_thread(self._repeat)
            return
        self._is_due = False
        raise _StoppedInEventLoop if _is_in_event_loop(frame) else RunStopped

    def _repeat(self) -> None:
        """Send the signal again until it has raised the exception."""
        while True:
            time.sleep(_REPEATED_SECONDS)
            if not (self._is_due and self._is_raising):
                return
            if self._is_handler():
                signal.pthread_kill(self._main_thread, signal.SIGTERM)


def _starts_thread(call: Callable[[], None]) -> bool:
    """Call in a thread; return False if the run may have no further thread."""
    # Not by `threading`: the main thread may hold one of its locks.
    with suppress(RuntimeError):
        _thread.start_new_thread(call, ())
        return True
    return False


def _may_be_dropped(frame: FrameType | None) -> bool:
    """Return whether Python prints an exception of the frame, and goes on."""
    return any(
        caller.f_code.co_name == "__del__" or caller.f_code in (_hold.__code__, _let_go.__code__)
        for caller in _callers(frame)
    )


def _is_in_event_loop(frame: FrameType | None) -> bool:
    """Return whether an event loop of asyncio calls a task or a callback."""
    return any(
        caller.f_code.co_name == "_run" and _module(caller) == "asyncio.events"
        for caller in _callers(frame)
    )


def _may_hold_lock(frame: FrameType | None) -> bool:
    """Return whether an exception in a frame may leave a lock held for ever, a channel of gRPC in
    a wrong state, or an event loop with a task that never has its turn.

    Python handles signals also between the line that takes a lock, such as the one of
    `Condition.__enter__`, and the block that would let the lock go. All calls of a channel share
    one lock: the tear-down would wait for the lock. A wait lets its lock go.
    """
    if frame is None or frame.f_code in _WAITS:
        return False
    if frame.f_code.co_name in _LOCKING_NAMES or _module(frame) == "importlib._bootstrap":
        return True
    if _module(frame).startswith("asyncio."):
        return True
    return any(_module(caller).startswith("grpc.") for caller in _callers(frame))


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frame and its callers; nothing where no frame is known."""
    if frame is not None:
        yield from (caller for caller, _ in walk_stack(frame))


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def end_stopped() -> NoReturn:
    """End the process as the signal would have ended it, for the worker to see."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)
    os._exit(1)


# A process that the function forks, such as one of `multiprocessing`, is ended by SIGTERM as ever.
# Python forgets a signal that comes between the fork and the first line of a child's own.


def _hold() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _let_go() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _forget() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    unheard_signals.forget()
    _let_go()
