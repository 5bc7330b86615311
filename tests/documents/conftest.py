"""Ways to load an example."""

from pathlib import Path

import pytest

from tests.documents.examples import Example, Loader, Refusal


@pytest.fixture
def load(tmp_path: Path) -> Loader:
    """The names that an example defines."""
    return lambda code: Example(tmp_path, code).names()


@pytest.fixture
def refusal(tmp_path: Path) -> Refusal:
    """The sentence with which an example is refused when its file is loaded."""
    return lambda code: Example(tmp_path, code).refusal()
