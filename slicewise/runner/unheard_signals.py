"""Signals that Python has noted and does not handle, because the main thread waits in C code.

Python calls the handler of a signal between two steps of the main thread, or when a signal ends a
wait. A signal that comes just before the wait begins, or to another thread, ends no wait, and is
handled after the wait. The documentation of Python's module `signal` names the descriptor to which
the numbers of noted signals are written.
"""

import _thread
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType

# No library is known to use this one; SIGURG belongs to Go.
_WAKING = signal.SIGRTMAX - 3
_END = b"\0"
_PAUSE_SECONDS, _MOST_WAKES = 0.02, 50


@contextmanager
def woken_until_heard(number: int, is_heard: Callable[[], bool]) -> Iterator[None]:
    """Wake the main thread, which is the caller, from its waits until a noted signal is handled.

    ``is_heard`` returns whether the handler of the signal has been called, or is not to be called.
    The thread is woken by a signal that does nothing: the number may be of a signal to a process
    that was forked. Nobody is woken once other code has taken the descriptor for itself, such as an
    event loop with handlers of signals.
    """
    pipe = _pipe()
    if pipe is None:
        yield
        return
    reading, writing = pipe
    watch = partial(_watch, reading, number, is_heard, threading.get_ident())
    with suppress(RuntimeError):  # the run may have no further thread
        _thread.start_new_thread(watch, ())
    if signal.getsignal(_WAKING) is signal.SIG_DFL:
        signal.signal(_WAKING, _do_nothing)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield
    finally:
        # The function may have taken, or closed, any descriptor.
        with suppress(OSError, ValueError):
            if (current := signal.set_wakeup_fd(before)) == writing:
                _end(writing)
            else:
                signal.set_wakeup_fd(current)


def _pipe() -> tuple[int, int] | None:
    """Return a pipe whose writing end does not block; None if the run may have no further files."""
    try:
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    os.set_blocking(reading, True)
    return reading, writing


def _end(writing: int) -> None:
    try:
        os.write(writing, _END)
    finally:
        os.close(writing)


def forget() -> None:
    """Note no numbers in a forked process, whose signals are its own."""
    signal.set_wakeup_fd(-1)


def _do_nothing(number: int, frame: FrameType | None) -> None:
    pass


def _watch(reading: int, number: int, is_heard: Callable[[], bool], main_thread: int) -> None:
    with suppress(OSError), open(reading, "rb", buffering=0) as noted:
        while (byte := noted.read(1)) not in (b"", _END):
            if byte[0] == number:
                _wake(main_thread, is_heard)


def _wake(main_thread: int, is_heard: Callable[[], bool]) -> None:
    for _ in range(_MOST_WAKES):
        time.sleep(_PAUSE_SECONDS)
        if is_heard() or signal.getsignal(_WAKING) is not _do_nothing:
            return
        signal.pthread_kill(main_thread, _WAKING)
