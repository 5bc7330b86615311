"""Bundles of a test's own, in a folder that the loader's user can reach even for root."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Bundle = Callable[..., Path]


@pytest.fixture
def bundle() -> Iterator[Bundle]:
    """Return a maker of folders of definition files: ``bundle(loop="while True: pass")``."""
    folders = []

    def make(**files: str) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="slicewise-bundle-"))
        folders.append(folder)
        folder.chmod(0o755)
        for name, text in files.items():
            (folder / f"{name}.py").write_text(text)
        return folder

    yield make
    for folder in folders:
        shutil.rmtree(folder)
