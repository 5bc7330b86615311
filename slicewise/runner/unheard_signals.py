"""Signals that Python has noted and does not handle, because the main thread waits in C code.

Python calls the handler of a signal between two steps of the main thread, or when the signal ends a
wait. A signal that comes just before the wait begins, or to another thread, ends no wait, and is
handled after the wait. The documentation of Python's module `signal` names the descriptor to which
the noted numbers are written.
"""

import _thread
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

_END = b"\0"
_PAUSE_SECONDS = 0.02


@contextmanager
def repeated_until_heard(number: int, is_heard: Callable[[], bool]) -> Iterator[None]:
    """Repeat a signal to the main thread, the caller, until its handler has been called.

    ``is_heard`` returns whether that is so, or the signal is no longer to be repeated. Code that
    takes the descriptor for itself, such as an event loop with handlers, goes without repeats.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    watch = partial(_watch, reading, number, is_heard, threading.get_ident())
    with suppress(RuntimeError):  # the run may have no further thread
        _thread.start_new_thread(watch, ())
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield
    finally:
        if (current := signal.set_wakeup_fd(before)) != writing:
            signal.set_wakeup_fd(current)
        with suppress(BlockingIOError):  # full of numbers
            os.write(writing, _END)
        os.close(writing)


def forget() -> None:
    """Write no numbers in a forked process, whose signals are its own."""
    signal.set_wakeup_fd(-1)


def _watch(reading: int, number: int, is_heard: Callable[[], bool], main_thread: int) -> None:
    with open(reading, "rb", buffering=0) as noted:
        while (byte := noted.read(1)) not in (b"", _END):
            while byte[0] == number and not is_heard():
                time.sleep(_PAUSE_SECONDS)
                if not is_heard():
                    signal.pthread_kill(main_thread, number)
