"""Control of the garbage collector: pauses, and objects that are never collected."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_gc() -> Iterator[None]:
    """Pause garbage collection within the block, in all threads; the block has to be short.

    After every few hundred new objects the collector walks over the young objects, and at times
    over all objects: in a listing of half a million windows, the collector takes longer than the
    listing. After two threads inside at once, the collector is on, if on before.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def freeze_loaded_objects() -> None:
    """Exclude all present objects from garbage collection: modules, models, templates.

    The function is for a process that has just been set up. Each full walk over the objects of a
    web process takes some 100 ms, in the middle of a user's request; and memory that is never
    written to stays shared with forked processes.
    """
    gc.collect()
    gc.freeze()
