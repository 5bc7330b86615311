"""Calls of a remote store for many partitions, with several calls at a time."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_AT_ONCE = 16
_Result = TypeVar("_Result")


def map_concurrently(act: Callable[[str], _Result], paths: Iterable[str]) -> list[_Result]:
    """Return the results of a call for each path, with several calls at a time."""
    paths = list(paths)
    if len(paths) < 2:
        return [act(path) for path in paths]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(act, paths))
