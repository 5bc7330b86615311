"""Making many small objects at once without the collector walking over them meanwhile."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Within the block no garbage is collected, in any thread; keep it short.

    Every few hundred new objects the collector walks over the young ones, and in the end over all
    there are: listing half a million windows, it takes longer than making them. Two threads inside
    at once end with the collector on, if it was on before.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
