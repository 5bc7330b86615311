"""Acts of definition files against the server that has the files loaded."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from assets_app.catalogue.loading import BundleNotLoaded, load, snapshot
from slicewise.runner import loader_users
from slicewise.runner.loader_process import LoaderOptions, load_in_place
from tests.catalogue.conftest import Bundle
from tests.detached_code import DETACHED
from tests.processes import is_alive

LOAD = """
import django
from pathlib import Path
from django.conf import settings
settings.configure(
    RUNNER_ENV=[], BUNDLE_LIMIT_BYTES=10**6, LOADER_TIMEOUT_SECONDS=60,
    MAX_SEGMENTS_PER_SEQUENCE=10, MAX_PARTITIONS_PER_TICK=10, MAX_PARTITIONS_PER_BACKFILL=10,
)
from assets_app.catalogue.loading import load, snapshot
load(*snapshot(Path({folder!r})))
"""


def declared(folder: Path) -> dict[str, Any]:
    return load(*snapshot(folder)).declared


def eventually_gone(pid: int) -> bool:
    deadline = time.monotonic() + 120
    while is_alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def pid_file(bundle: Bundle) -> Path:
    """Return a file that the loader can write to, under any user."""
    folder = bundle()
    folder.chmod(0o777)
    return folder / "pid"


def pid_in(file: Path) -> int:
    deadline = time.monotonic() + 120
    while not file.exists() or not file.read_text():
        assert time.monotonic() < deadline, "the file was not loaded"
        time.sleep(0.05)
    return int(file.read_text())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root loads as another user")
def test_root_says_that_files_are_loaded_as_root(
    bundle: Bundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tmp_path.chmod(0o700)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    loader_users.is_python_open_to_loaders.cache_clear()
    try:
        for _ in range(2):
            declared(bundle())
    finally:
        loader_users.is_python_open_to_loaders.cache_clear()
    assert caplog.text.count("definition files are loaded as root") == 1


def test_a_file_that_never_ends_is_refused_in_time(bundle: Bundle, settings: Any) -> None:
    settings.LOADER_TIMEOUT_SECONDS = 2
    with pytest.raises(BundleNotLoaded, match="not loaded within 2 s"):
        declared(bundle(loop="while True: pass"))


def test_endless_output_of_a_definition_file_is_kept_out_of_memory(bundle: Bundle) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (file,) = declared(bundle(noisy='import sys\nwhile True: sys.stderr.write("x" * 65536)'))[
        "files"
    ]
    assert "File too large" in file["error"]["message"]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 50 * 1024  # KiB


def test_the_last_words_of_a_loader_that_ends_itself_are_told(bundle: Bundle) -> None:
    text = 'import os, sys\nsys.stderr.write("x" * 10**6 + "no licence")\nos._exit(7)'
    with pytest.raises(BundleNotLoaded, match=r"status 7\. x+no licence$") as refused:
        declared(bundle(leaves=text))
    assert len(str(refused.value)) < 2100


def test_processes_of_a_definition_file_end_with_the_loader(bundle: Bundle, pid_file: Path) -> None:
    text = (
        "import subprocess\n"
        'started = subprocess.Popen(["sleep", "600"])\n'
        f'open("{pid_file}", "w").write(str(started.pid))\n'
    )
    began = time.monotonic()
    assert declared(bundle(leaky=text))["files"] == [{"path": "leaky.py", "error": None}]
    # Its stderr is still open in what was started: that is not waited for.
    assert time.monotonic() - began < 120
    assert eventually_gone(pid_in(pid_file))


def test_a_process_that_a_file_detaches_ends_with_the_load(bundle: Bundle, pid_file: Path) -> None:
    declared(bundle(leaves=DETACHED.format(file=str(pid_file))))
    # It is killed with the load, and a busy machine may take a while to end it.
    assert eventually_gone(pid_in(pid_file))


def test_a_process_that_a_file_detaches_ends_with_a_load_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(DETACHED.format(file=str(tmp_path / "pid")))
    load_in_place(tmp_path, LoaderOptions(env={"PATH": os.environ["PATH"]}, only="a.py"))
    assert eventually_gone(pid_in(tmp_path / "pid"))


def test_the_loader_ends_with_its_server(bundle: Bundle, pid_file: Path) -> None:
    text = f'import os\nopen("{pid_file}", "w").write(str(os.getpid()))\nwhile True: pass\n'
    server = subprocess.Popen([sys.executable, "-c", LOAD.format(folder=str(bundle(loop=text)))])
    loader = pid_in(pid_file)
    assert is_alive(loader)
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    assert eventually_gone(loader)
