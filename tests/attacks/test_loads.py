"""Loads of definition files by root: a load reaches no other load, and leaves nothing behind."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slicewise.process.own_folders import ensure_folder
from slicewise.runner import loader_users
from slicewise.runner.loader_users import LOADER_USERS, loader_user
from tests.attacks.users import FIRST_USER, GROUP, open_folder, slot_users
from tests.detached_code import DETACHED
from tests.docs.documents import PROJECT
from tests.processes import is_alive
from tests.reachable_python import reaching_python
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root loads as another user")

# A server, in which other users reach Python: loads bundles, one after the other, and prints the
# reports. Its loads have the named user, or the users that all servers of the host share.
LOADS = """
import json, os, sys
from pathlib import Path
from slicewise.loading.archives import archive
from slicewise.runner import loader_users
from slicewise.runner.loader_process import LoaderOptions, load_archive
from slicewise.runner.slot_users import SlotUsers

uid, slots, *folders = sys.argv[1:]
if int(uid):
    users = SlotUsers([int(uid)], int(uid), Path(slots))
    loader_users._users = lambda: users
for folder in folders:
    packed = archive(Path(folder), limit=10**6)[1]
    report = load_archive(packed, LoaderOptions(env={"PATH": os.environ["PATH"]}))
    print(json.dumps(report.declared["files"]), flush=True)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder with a file `pid` that every user may write."""
    with open_folder() as path:
        (path / "pid").touch()
        (path / "pid").chmod(0o666)
        yield path


def server(folder: Path, mount: Path, *bundles: str, user: int = 0) -> "subprocess.Popen[str]":
    """Start a server that loads bundles of one file each, under a user of its own if one is
    named.
    """
    paths = []
    for number, text in enumerate(bundles):
        path = folder / f"bundle-{number}"
        path.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o711)
        (path / "a.py").write_text(text)
        paths.append(str(path))
    mount.mkdir(exist_ok=True)
    slots = ensure_folder(folder / "slots", mode=0o711)
    options = [str(user), str(slots)]
    command = [*reaching_python(mount), sys.executable, "-c", LOADS, *options, *paths]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)


def reported(process: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    """Return the reports of the files after the end of a server."""
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return [file for line in output.splitlines() for file in json.loads(line)]


def pid_in(folder: Path) -> int:
    file = folder / "pid"
    assert wait_until(lambda: bool(file.read_text())), "the file was not loaded"
    return int(file.read_text())


def test_a_load_reaches_no_load_of_another_server(folder: Path, tmp_path: Path) -> None:
    waiting = (
        "import os, time\n"
        f"open({str(folder / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        f"while not os.path.exists({str(folder / 'done')!r}): time.sleep(0.05)\n"
    )
    other_server = server(folder / "other", tmp_path / "other", waiting)
    victim = pid_in(folder)
    assert os.stat(f"/proc/{victim}").st_uid in LOADER_USERS
    killing = f"import os\nos.kill({victim}, 9)\n"
    (file,) = reported(server(folder, tmp_path / "own", killing))
    (folder / "done").touch()
    assert file["error"]["message"] == "PermissionError: [Errno 1] Operation not permitted"
    assert reported(other_server) == [{"path": "a.py", "error": None}]


def test_a_process_that_a_file_detaches_ends_with_its_load(folder: Path, tmp_path: Path) -> None:
    (file,) = reported(server(folder, tmp_path, DETACHED.format(file=str(folder / "pid"))))
    assert file["error"] is None
    assert not is_alive(pid_in(folder))


def test_a_user_with_processes_of_another_program_has_no_load(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended_users: list[tuple[int, int]] = []

    def keep(user: tuple[int, int]) -> bool:
        ended_users.append(user)
        return True

    monkeypatch.setattr(loader_users, "has_loader_users", lambda: True)
    users = slot_users(folder)
    monkeypatch.setattr(loader_users, "_users", lambda: users)
    foreign = subprocess.Popen(["sleep", "60"], user=FIRST_USER + 1, group=GROUP, extra_groups=[])
    try:
        for _ in range(3):
            with loader_user(keep, 60) as owner:
                assert owner.user == (FIRST_USER + 2, GROUP)
        assert foreign.poll() is None
        assert ended_users == []
    finally:
        foreign.kill()
        foreign.wait()
    with loader_user(keep, 60) as owner:
        assert owner.user is not None
    assert ended_users == []


def test_a_process_of_a_killed_server_s_load_ends_before_the_user_has_another_load(
    folder: Path, tmp_path: Path
) -> None:
    # A user of the test alone: loads of other tests would take turns at the users of the host.
    user = FIRST_USER + 1
    staying = DETACHED.format(file=str(folder / "pid")) + "time.sleep(600)\n"
    killed_server = server(folder, tmp_path, staying, user=user)
    detached = pid_in(folder)
    assert os.stat(f"/proc/{detached}").st_uid == user
    killed_server.kill()
    killed_server.wait()
    telling = "import os\nraise ValueError(os.getuid())\n"
    (file,) = reported(server(folder, tmp_path, telling, user=user))
    assert file["error"]["message"] == f"ValueError: {user}"
    assert not is_alive(detached)
