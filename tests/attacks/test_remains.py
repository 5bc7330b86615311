"""Files and memory that a run leaves outside of its home: gone with the run."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slicewise.runner.parent_client import WarmParent
from tests.attacks.users import FIRST_USER, GROUP, open_folder, parent_of_each
from tests.docs.documents import PROJECT
from tests.reachable_python import reaching_python
from tests.runtime.runs import Runs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give runs other users")

PLACES = ("/tmp", "/var/tmp", "/dev/shm")
# In each place a file, a link, and a folder that nobody may enter with a file in it.
LEAVING = f"""
    def leave(name):
        for place in {PLACES}:
            path = os.path.join(place, name)
            os.makedirs(f"{{path}}-folder/below")
            open(f"{{path}}-folder/below/file", "w").close()
            os.chmod(f"{{path}}-folder/below", 0)
            os.chmod(f"{{path}}-folder", 0)
            open(f"{{path}}-file", "w").close()
            os.symlink("/etc/passwd", f"{{path}}-link")
"""
# Memory, a semaphore and a queue of the user; the number of objects before and after.
IPC = """
import ctypes, json, os, sys
from slicewise.runner.user_remains import _ipc_of, remove_remains
user = int(sys.argv[1]), int(sys.argv[2])
if os.fork() == 0:
    os.setgid(user[1])
    os.setuid(user[0])
    libc = ctypes.CDLL(None)
    made = [libc.shmget(0, 4096, 0o1600), libc.semget(0, 1, 0o1600), libc.msgget(0, 0o1600)]
    os._exit(-1 in made)
os.wait()
before = len([*_ipc_of(user[0])])
remove_remains(user)
print(json.dumps([before, len([*_ipc_of(user[0])])]))
"""


@pytest.fixture(scope="module")
def parent() -> Iterator[WarmParent]:
    """Start a warm parent whose runs have one user, one after the other."""
    with open_folder() as folder, parent_of_each(folder, 1) as started_parent:
        yield started_parent


def left(name: str) -> list[str]:
    return [str(path) for place in PLACES for path in Path(place).glob(f"{name}*")]


@pytest.mark.parametrize("is_killed", [False, True], ids=["ended", "killed"])
def test_files_that_a_run_leaves_in_folders_of_all_users_are_removed(
    parent: WarmParent, tmp_path: Path, is_killed: bool
) -> None:
    runs, name = Runs(parent, tmp_path), f"left-{tmp_path.name}"
    runs.define(
        LEAVING
        + f"""
    @asset()
    def leaves():
        leave({name!r})
        print("left", flush=True)
        time.sleep({300 if is_killed else 0})
    """
    )
    runner = runs.launch("leaves")
    counts = []
    for message in runner.messages(60):
        if message["type"] == "log":
            counts.append(len(left(name)))
            if is_killed:
                runner.kill()
    assert counts == [9]
    assert left(name) == []
    assert Path("/etc/passwd").exists()


def test_files_of_other_users_stay(parent: WarmParent, tmp_path: Path) -> None:
    kept = Path("/dev/shm", f"kept-{tmp_path.name}")
    kept.touch()
    os.chown(kept, FIRST_USER + 9, GROUP)
    try:
        runs = Runs(parent, tmp_path)
        runs.define("@asset()\ndef quiet(): ...\n")
        assert runs.run("quiet").types[-1] == "exited"
        assert kept.exists()
    finally:
        kept.unlink()


def test_memory_semaphores_and_queues_of_system_v_are_removed(tmp_path: Path) -> None:
    done = subprocess.run(
        [*reaching_python(tmp_path), sys.executable, "-c", IPC, str(FIRST_USER + 7), str(GROUP)],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [3, 0]
