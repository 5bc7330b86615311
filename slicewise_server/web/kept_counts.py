"""Counts that are kept for a while where counting takes long, so that counting takes a small share
of the time however many people look.
"""

from collections.abc import Callable
from hashlib import sha256
from time import monotonic, time
from typing import Any

from django.core.cache import cache

from slicewise_server.web.cache_keys import of_database

# A count that takes less than this is never kept.
CHEAP_SECONDS = 0.1
# A kept count is as old as so many times the time that it took, and never older than the most.
RESTS, _LONGEST_REST = 30, 600


def kept_count(subject: str, count: Callable[[], Any], *, version: str = "") -> Any:
    """Return a count, which JSON can express: a kept one of the subject, or a new one.

    A kept count of the same version is used however old it is; an empty version is never the same.
    """
    name = f"kept-count:{sha256(of_database(subject).encode()).hexdigest()[:32]}"
    kept = cache.get(name)
    if kept is not None and (kept["until"] > time() or (version and kept["version"] == version)):
        return kept["count"]
    # While one process counts, the others show the last result.
    if kept is not None and not cache.add(f"{name}:counting", 1, timeout=60):
        return kept["count"]
    began = monotonic()
    counted = count()
    seconds = monotonic() - began
    if seconds > CHEAP_SECONDS:
        until = time() + min(RESTS * seconds, _LONGEST_REST)
        entry = {"until": until, "version": version, "count": counted}
        cache.set(name, entry, timeout=2 * _LONGEST_REST)
    if kept is not None:
        cache.delete(f"{name}:counting")
    return counted
