"""Ways to load an example."""

from pathlib import Path

import pytest

from tests.documents.examples import Example, Loader, Refusal


@pytest.fixture
def load(tmp_path: Path) -> Loader:
    """Return a loader of examples: the names that an example defines."""
    return lambda code: Example(tmp_path, code).names()


@pytest.fixture
def refusal(tmp_path: Path) -> Refusal:
    """Return a function that loads an example and returns the refusal."""
    return lambda code: Example(tmp_path, code).refusal()
