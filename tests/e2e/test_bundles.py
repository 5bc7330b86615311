"""A definition file is changed, broken and mended while the stack runs."""

from pathlib import Path

import pytest

from config.demo.client import Client
from config.stack import Stack
from tests.e2e.conftest import ended, log_of, run_of

GOOD = '''
from slicewise import asset

@asset()
def greeting():
    """Says hello."""
    print("hello from version {version}")
'''
BROKEN = GOOD.format(version=3) + "\nthis is no Python\n"


@pytest.fixture
def file(stack: Stack) -> Path:
    return stack.data / "trials" / "greetings.py"


def test_a_broken_file_leaves_the_last_good_version_in_force(
    stack: Stack, api: Client, file: Path
) -> None:
    file.write_text(GOOD.format(version=1))
    stack.manage("sync")
    first = run_of(api, "greeting")
    assert ended(api, first)["state"] == "succeeded"
    assert "hello from version 1" in log_of(api, first)

    file.write_text(BROKEN)
    told = stack.manage("sync", check=False)
    assert told.returncode == 1
    assert "greetings.py" in told.stdout + told.stderr
    assert api.get("/assets/greeting/")["active"] is True
    again = run_of(api, "greeting")
    assert ended(api, again)["state"] == "succeeded"
    assert "hello from version 1" in log_of(api, again)

    file.write_text(GOOD.format(version=4))
    stack.manage("sync")
    mended = run_of(api, "greeting")
    assert ended(api, mended)["state"] == "succeeded"
    assert "hello from version 4" in log_of(api, mended)

    file.unlink()
    stack.manage("sync")
    assert api.get("/assets/greeting/")["active"] is False
