"""Processes whose names are no text: the code of a run chooses the names of its processes."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from slicewise.runner.descent import descends_from_this_process
from slicewise.runner.run_limits import RunLimits

# PR_SET_NAME with a byte that no text in UTF-8 has.
_RENAMED = """
import ctypes, sys
ctypes.CDLL(None).prctl(15, b"a\\xff) (b", 0, 0, 0)
print("renamed", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def renamed() -> Iterator[int]:
    """Start a process that takes such a name; return its number."""
    with subprocess.Popen(
        [sys.executable, "-c", _RENAMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"renamed\n"
        yield process.pid
        process.kill()


def test_the_descent_of_such_a_process_is_found(renamed: int) -> None:
    assert descends_from_this_process(renamed)
    assert not descends_from_this_process(os.getppid())


def test_the_memory_of_such_a_process_is_limited(renamed: int) -> None:
    assert RunLimits(memory=2**40).excess(renamed) is None
    assert "memory" in (RunLimits(memory=2**20).excess(renamed) or "")
