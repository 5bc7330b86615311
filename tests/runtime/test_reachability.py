"""The trial whether another user can use Python: only an answer of the trial itself counts."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slicewise.process import reachability
from slicewise.process.reachability import UntriedError, first_closed_path
from slicewise.runner import loader_users
from slicewise.runner.loader_process import LoaderOptions, NotLoadedError, load_archive
from slicewise.runner.loader_users import LOADER_USERS, has_loader_users

USER = (LOADER_USERS[0], 65_533)
PASSING_FAILURES = [
    OSError(errno.EAGAIN, "Resource temporarily unavailable"),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    PermissionError(errno.EPERM, "Operation not permitted"),
    subprocess.TimeoutExpired("python", 30),
]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root asks about other users")


@pytest.fixture(autouse=True)
def _new_answer() -> Iterator[None]:
    loader_users.is_python_open_to_loaders.cache_clear()
    yield
    loader_users.is_python_open_to_loaders.cache_clear()


def failing(error: Exception) -> Callable[..., Any]:
    def run(*_: object, **__: object) -> None:
        raise error

    return run


@pytest.mark.parametrize("error", PASSING_FAILURES, ids=lambda error: type(error).__name__)
def test_a_passing_failure_of_the_trial_gives_no_file_root_s_rights(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "run", failing(error))
        with pytest.raises(NotLoadedError, match="a trial of Python as the user 65520 failed"):
            load_archive(b"", LoaderOptions(env={}))
    # No answer is kept: the next load tries again.
    monkeypatch.setattr(loader_users, "first_closed_path", lambda *_: "")
    assert has_loader_users()


@pytest.mark.parametrize("end", ["exit 1", "kill -9 $$", "echo /etc", "sleep 60"])
def test_a_trial_that_is_cut_short_tells_nothing(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{end}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(reachability, "_TRY_SECONDS", 1)
    with pytest.raises(UntriedError):
        first_closed_path((os.getuid(), os.getgid()))


def test_a_python_in_a_closed_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    python = closed / "python"
    python.symlink_to("/bin/true")
    monkeypatch.setattr(sys, "executable", str(python))
    assert first_closed_path(USER) == str(python)


def test_the_first_closed_path_is_named(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    needs = [f"r:{tmp_path / 'there'}", f"r:{tmp_path / 'not there'}", f"x:{tmp_path / 'neither'}"]
    assert first_closed_path((0, 0), needs[:1]) == ""
    assert first_closed_path((0, 0), needs) == str(tmp_path / "not there")
