"""Temporary folders that other users can reach."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def reachable_folder(prefix: str) -> Iterator[Path]:
    """Make an empty folder that PostgreSQL's user can reach; pytest's own are closed to it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
