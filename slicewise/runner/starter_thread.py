"""A thread that starts processes which must end with the worker."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any


class StarterThread:
    """A thread that lives as long as the worker and starts processes that must end with the worker.

    The kernel's parent-death signal comes when the starting *thread* ends, and threads of a pool
    come and go.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, task: Callable[[], Any]) -> Any:
        """Call ``task`` in the thread; return the result."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="warm-parent", daemon=True)
            self._thread.start()
        result: Future[Any] = Future()
        self._tasks.put((task, result))
        return result.result()

    def close(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._tasks.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while (item := self._tasks.get()) is not None:
            task, result = item
            try:
                result.set_result(task())
            except BaseException as error:
                result.set_exception(error)
