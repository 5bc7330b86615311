"""Iterables from people's code, read once."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any


def read_once(value: Any) -> Any:
    """Return a generator, a map or a list as a new list, and a mapping with values read likewise.

    Any other value is returned unchanged, also a value that is no iterable: checks of types come
    later.
    """
    if isinstance(value, Mapping):
        return {name: read_once(items) for name, items in value.items()}
    if not isinstance(value, Iterable):
        return value
    is_unchanged = isinstance(value, Sequence | Set) and not isinstance(value, list)
    return value if is_unchanged else list(value)
