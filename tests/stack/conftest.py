"""A data folder for each test that starts servers of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.folders import reachable_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make an empty folder that PostgreSQL's user can reach; pytest's folders are closed."""
    with reachable_folder("slicewise-folder-") as path:
        yield path
