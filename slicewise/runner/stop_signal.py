"""The request of a worker to stop a run: SIGTERM, as an exception in the function of the run.

Only a run with a tear-down is asked to stop; other runs are killed.
"""

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from slicewise.running.steps import RunStopped


class StopSignal:
    """SIGTERM in a runner: ends the process, raises an exception, or is only noted.

    Before `raising` the signal ends the process, since no step of the run has begun. Inside the
    block the signal raises `RunStopped` in the main thread. After the block the signal is noted.
    ``on_stop`` is called in a thread at the first signal.
    """

    def __init__(self, on_stop: Callable[[], None]) -> None:
        self._on_stop = on_stop
        self.is_asked = False
        self._is_raising = self._is_due = False
        self._holds = 0

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise `RunStopped` in the block, and after a block that has caught the exception."""
        signal.signal(signal.SIGTERM, self._handle)
        os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_forget)
        self._is_raising = True
        try:
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
            self._raise()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if not self.is_asked:
            self.is_asked = self._is_due = True
            # Not by `threading`: the main thread may hold one of its locks.
            _thread.start_new_thread(self._on_stop, ())
            self._raise()

    def _raise(self) -> None:
        if self._is_raising and not self._holds:
            self._is_due = False
            raise RunStopped


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
    _let_go()
