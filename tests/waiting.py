"""Waiting for an event in another process."""

import time
from collections.abc import Callable

# It ends a hang, and measures nothing.
LONG_SECONDS = 60.0


def wait_until(condition: Callable[[], bool], seconds: float = LONG_SECONDS) -> bool:
    """Wait for the condition at most for the seconds; return whether it holds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()
