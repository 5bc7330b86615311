"""When the collector looks for garbage, and where it does not: among what stays anyway."""

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


def freeze_what_is_loaded() -> None:
    """From now on the collector passes over all that there is: modules, models, templates.

    For a process that has just been set up. Each full walk over what a web process has loaded
    takes some 100 ms, in the middle of somebody's request; and what is never written to stays
    shared with the processes that are forked from this one.
    """
    gc.collect()
    gc.freeze()
