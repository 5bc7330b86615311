"""Work with a deadline: the result is waited for so long and no longer.

Limits of sockets count each read alone, so a receiver that sends a byte each second holds a request
for hours. Such work goes on in a thread that nothing waits for: one for each key, few in all.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import TypeVar

T = TypeVar("T")

_MOST = 64
_under_way: set[int] = set()
_lock = Lock()


class StillUnderWay(Exception):
    """Earlier work of the same key has not ended, or too much work of other keys has not."""


def result_within(seconds: float, key: int, work: Callable[[], T]) -> T:
    """Return the result of the work or raise the error; raise TimeoutError at the deadline."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            value = work()
        except BaseException as error:
            _end(key)
            result.set_exception(error)
        else:
            _end(key)
            result.set_result(value)

    _begin(key)
    try:
        Thread(target=run, name=f"alerts-{key}", daemon=True).start()
    except RuntimeError:  # the system gives no thread
        _end(key)
        raise
    return result.result(seconds)


def _begin(key: int) -> None:
    with _lock:
        if key in _under_way or len(_under_way) >= _MOST:
            raise StillUnderWay
        _under_way.add(key)


def _end(key: int) -> None:
    with _lock:
        _under_way.discard(key)
