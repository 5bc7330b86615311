"""Modules of a bundle, imported in the process of a test."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slicewise.loading.importing import importable


@contextmanager
def modules_of(folder: Path) -> Iterator[None]:
    """Make the bundle's files importable in the block, and forget the modules afterwards."""
    before = set(sys.modules)
    try:
        with importable(folder):
            yield
    finally:
        for name in set(sys.modules) - before:
            if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]
