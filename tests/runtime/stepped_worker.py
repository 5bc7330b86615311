"""A thread that waits before a chosen change of the file system."""

import threading
from collections.abc import Callable
from typing import Any


class SteppedWorker(threading.Thread):
    """A worker that waits before its n-th change of the file system until `end` releases it."""

    def __init__(self, act: Callable[[], Any], step: int) -> None:
        super().__init__(daemon=True)
        self._act, self._left = act, step
        self._stopped, self._let_go = threading.Event(), threading.Event()
        self._has_ended = False
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._act()
        except BaseException as error:
            self.error = error
        self._has_ended = True
        self._stopped.set()

    def before_change(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._stopped.set()
            assert self._let_go.wait(120)

    def reach(self) -> bool:
        """Start; return whether the worker waits now, and has not come to its end."""
        self.start()
        assert self._stopped.wait(120)
        return not self._has_ended

    def go_on(self) -> None:
        """Release the worker, and do not wait for its end."""
        self._let_go.set()

    def end(self) -> None:
        self.go_on()
        self.join(120)
        assert not self.is_alive()


def asking_first(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that asks a stepped worker of this thread before each call.

    A removal in an open folder (`dir_fd`) asks no worker: no attempt owns the files any more.
    """

    def asking_call(*args: Any, **options: Any) -> Any:
        thread = threading.current_thread()
        if isinstance(thread, SteppedWorker) and "dir_fd" not in options:
            thread.before_change()
        return call(*args, **options)

    return asking_call
