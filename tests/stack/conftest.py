"""A data folder for each test that starts servers of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder that PostgreSQL's user can reach; pytest's own are closed to it."""
    path = Path(tempfile.mkdtemp(prefix="slicewise-folder-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)
