"""Waiting for what another process does."""

import time
from collections.abc import Callable

# It ends a hang, and measures nothing.
LONG_SECONDS = 60.0


def wait_until(condition: Callable[[], bool], seconds: float = LONG_SECONDS) -> bool:
    """Wait until it is so, at most for so long; return whether it is."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()
