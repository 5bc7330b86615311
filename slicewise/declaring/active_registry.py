"""The registry that collects declarations while definition files are loaded.

Declarations add themselves to the active registry, and so cannot import its class, which names all
kinds of declarations.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar


class Collector(Protocol):
    """The part of `Registry` that declarations use."""

    folder: Path
    assets: dict[str, Any]
    references: set[str]

    def add(self, asset: Any) -> None:
        """Add an asset. Raises AssetDefinitionError if another asset has the name already."""

    def add_multi(self, producer: Any) -> None:
        """Add a multi-asset. Raises AssetDefinitionError if an asset or an outlet has the name."""

    def relative(self, path: str) -> str | None:
        """Return the path of a file inside the bundle, or None for a file outside the bundle."""


CollectorT = TypeVar("CollectorT", bound=Collector)
_active: list[Collector] = []


@contextmanager
def collecting(registry: CollectorT) -> Iterator[CollectorT]:
    """Add all declarations within the block to ``registry``."""
    _active.append(registry)
    try:
        yield registry
    finally:
        _active.pop()


def active_registry() -> Collector | None:
    """Return the registry that collects declarations now, or None if no files are being loaded."""
    return _active[-1] if _active else None
