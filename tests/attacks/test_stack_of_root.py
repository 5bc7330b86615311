"""A stack that root starts: code of assets runs as `nobody`, beside a Spark of `nobody`."""

import json
import os
import pwd
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from slicewise.process import reachability
from slicewise.process.reachability import UntriedError
from slicewise.runner.loader_users import LOADER_USERS
from slicewise_server.stack import code_account, code_environment, doctor, up
from slicewise_server.stack.code_account import default_account
from slicewise_server.stack.code_environment import with_code_account
from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.errors import StackError
from slicewise_server.stack.folder import PROJECT, DataFolder
from slicewise_server.stack.process import Account, scrubbed
from slicewise_server.stack.protection import unprotected, user_of_code
from slicewise_server.stack.server_account import server_account
from tests.attacks.users import open_folder
from tests.processes import START_SECONDS, read_until
from tests.reachable_python import reaching_python

NOBODY = pwd.getpwnam("nobody")
RANGE = range(2_000_000_000, 2_000_000_032)
DEFINITIONS = """
import os
from pathlib import Path

from slicewise import asset

DATA = Path(os.environ["LAKE"]).parent


@asset(uri=f"{os.environ['LAKE']}/users")
def users(spark):
    refusals = 0
    for path in ("credentials.json", "processes/web.json", "running.json"):
        try:
            (DATA / path).read_bytes()
        except PermissionError:
            refusals += 1
    return spark.createDataFrame([(os.geteuid(), refusals)], "user int, refusals int")
"""

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="root alone may become another user")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder that every user may enter."""
    with open_folder() as path:
        yield path


@pytest.fixture
def reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `nobody` reach everything that code needs, also where Python is root's alone."""
    monkeypatch.setattr(code_account, "_closed_path", lambda *_: "")
    monkeypatch.setattr(code_account, "_first_closed_path", lambda *_: "")


@pytest.mark.slow
@root_only
@pytest.mark.parametrize("is_range", [False, True], ids=["one user", "a user for each run"])
def test_code_runs_as_another_user_and_reads_no_password(
    is_range: bool, folder: Path, tmp_path: Path
) -> None:
    users = f"{RANGE[0]}-{RANGE[-1]}" if is_range else ""
    data, bundle = folder / "data", folder / "bundle"
    bundle.mkdir()
    (bundle / "users.py").write_text(DEFINITIONS)
    stack = subprocess.Popen(
        [
            *reaching_python(tmp_path),
            *[sys.executable, "-m", "slicewise_server.stack.cli", "up", f"--bundle=users={bundle}"],
        ],
        env={**scrubbed(os.environ), "SLICEWISE_DATA": str(data), "SLICEWISE_RUNNER_USERS": users},
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        announcement = read_until(stack, "Ctrl-C ends it")
        address = re.search(r"Slicewise is at (\S+)", announcement)
        password = re.search(r"password +(\S+)", announcement)
        assert address is not None, announcement
        assert password is not None, announcement
        assert ("Runs share a user" in announcement) is not is_range
        api = Client(address[1], "admin", password[1])
        (run,) = api.post("/assets/users/materialize/")["runs"]
        await_success(api, run)
    finally:
        stack.terminate()
        stack.wait(timeout=120)
    ((user, refusals),) = read_parquet(data / "lake" / "users")
    assert user in RANGE if is_range else user == NOBODY.pw_uid
    assert refusals == 3
    # Spark has written as the same user or its group, and publication has left no file of root's.
    files = [path.lstat() for path in (data / "lake").rglob("*")]
    assert {file.st_gid for file in files} == {NOBODY.pw_gid}
    assert {file.st_uid for file in files} <= {NOBODY.pw_uid, *(RANGE if is_range else ())}


@root_only
@pytest.mark.usefixtures("reachable")
def test_a_setting_is_kept(folder: Path) -> None:
    assert default_account({}, folder).account is not None
    assert default_account({"SLICEWISE_RUNNER_USER": "root"}, folder).account is None
    chosen = default_account({"SLICEWISE_RUNNER_USER": "games"}, folder).account
    assert chosen is not None
    assert chosen.name == "games"
    env = {"SLICEWISE_RUNNER_USER": "root"}
    text = unprotected(env, default_account(env, folder))
    assert "runs as root: it can read and change everything" in text
    assert "SLICEWISE_RUNNER_USER is root" in text


@root_only
@pytest.mark.usefixtures("reachable")
def test_data_that_root_has_written_stays_with_root_until_its_owner_changes(folder: Path) -> None:
    lake = folder / "lake"
    (lake / "raw_flights").mkdir(parents=True)
    code = default_account({}, folder)
    assert code.account is None
    chown = f"{lake} holds data of another user: run `chown -R nobody: {lake}` once"
    assert code.obstacle == chown
    os.chown(lake, NOBODY.pw_uid, NOBODY.pw_gid)
    assert default_account({}, folder).obstacle == chown  # what is in the folder is root's still
    os.chown(lake / "raw_flights", NOBODY.pw_uid, NOBODY.pw_gid)
    assert default_account({}, folder).account is not None
    with pytest.raises(StackError, match=r"holds data of another user: run `chown -R games: "):
        with_code_account({"SLICEWISE_RUNNER_USER": "games"}, folder)


@root_only
def test_a_path_that_nobody_cannot_use_is_named(folder: Path, tmp_path: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    env = {"LAKE": str(closed)}
    assert obstacle_of(env, folder / "data", tmp_path) == f"nobody cannot use {closed}\n"


@root_only
def test_a_named_user_who_cannot_use_python_is_refused_before_anything_starts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reachability, "first_closed_path", lambda *_: "/root/.venv/bin/python")
    env = {"SLICEWISE_RUNNER_USER": "games"}
    with pytest.raises(StackError, match=r"is games, who cannot use /root/.venv/bin/python: "):
        with_code_account(env, folder)
    assert not list(folder.iterdir())
    (finding,) = (finding for finding in doctor.examine(env) if finding.name == "User code")
    assert not finding.good
    assert "cannot use /root/.venv/bin/python" in finding.advice


@root_only
@pytest.mark.usefixtures("reachable")
def test_a_lake_of_another_user_and_a_link_are_left_alone(folder: Path, tmp_path: Path) -> None:
    lake = folder / "lake"
    lake.mkdir()
    os.chown(lake, pwd.getpwnam("games").pw_uid, -1)
    assert "holds data of another user" in default_account({}, folder).obstacle
    lake.rmdir()
    lake.symlink_to(tmp_path)
    assert default_account({}, folder).obstacle == (
        f"{lake} is a link: set LAKE to the folder that it leads to"
    )
    with pytest.raises(StackError, match="is a link"):
        with_code_account({"SLICEWISE_RUNNER_USER": "nobody"}, folder)


@root_only
@pytest.mark.usefixtures("reachable")
def test_the_mode_of_a_lake_is_its_administrator_s(folder: Path) -> None:
    env = with_code_account({}, folder)
    assert env["SLICEWISE_RUNNER_USER"] == "nobody"
    lake = Path(env["LAKE"])
    assert (lake.stat().st_uid, lake.stat().st_mode & 0o7777) == (NOBODY.pw_uid, 0o755)
    lake.chmod(0o2770)
    with_code_account({}, folder)
    assert lake.stat().st_mode & 0o7777 == 0o2770


@root_only
def test_code_that_has_run_as_nobody_cannot_bring_root_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(code_account, "_closed_path", lambda *_: "")
        with_code_account({}, folder)
    monkeypatch.setattr(code_account, "_closed_path", lambda *_: "nobody cannot use it")
    with pytest.raises(StackError, match=r"ran as the user nobody on .*: nobody cannot use it\."):
        with_code_account({}, folder)
    env = with_code_account({"SLICEWISE_RUNNER_USER": "root"}, folder)
    assert env["SLICEWISE_RUNNER_USER"] == "root"


@root_only
def test_a_passing_failure_of_the_trial_makes_no_code_run_as_root(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = []

    def fail(*_: object) -> str:
        trials.append(1)
        raise UntriedError("[Errno 11] Resource temporarily unavailable")

    monkeypatch.setattr(code_account, "_PAUSES_SECONDS", (0.0, 0.0, 0.0))
    monkeypatch.setattr(reachability, "first_closed_path", fail)
    with pytest.raises(StackError, match="whether nobody can use Python failed"):
        with_code_account({}, folder)
    assert len(trials) == 3
    # The next start tries again.
    monkeypatch.setattr(reachability, "first_closed_path", lambda *_: "")
    assert with_code_account({}, folder)["SLICEWISE_RUNNER_USER"] == "nobody"


@root_only
def test_the_doctor_tells_of_a_trial_that_failed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise UntriedError("[Errno 11] Resource temporarily unavailable")

    monkeypatch.setattr(code_account, "_PAUSES_SECONDS", (0.0,))
    monkeypatch.setattr(reachability, "first_closed_path", fail)
    monkeypatch.setattr(os, "environ", {"PATH": os.environ["PATH"], "SLICEWISE_DATA": str(folder)})
    (finding,) = [one for one in doctor.examine(os.environ) if one.name == "User code"]
    assert (finding.good, finding.found) == (False, "not known")
    assert "Start again" in finding.advice


@root_only
def test_a_stack_tries_the_user_of_code_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = []

    def closed_path(*_: object) -> str:
        trials.append(1)
        return "/closed"

    monkeypatch.setattr(reachability, "first_closed_path", closed_path)
    monkeypatch.setattr(os, "environ", {"PATH": os.environ["PATH"], "SLICEWISE_DATA": str(folder)})
    stack = up.embedded()
    stack.services.folder.create()
    up.announce(stack)
    assert "The reason: nobody cannot use /closed." in " ".join(capsys.readouterr().out.split())
    assert len(trials) == 1


@root_only
@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize("end", ["exec /no/such/program", "kill -9 $$"])
def test_a_trial_of_the_data_folder_that_is_cut_short_names_no_folder(
    end: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_environment, "_FIRST_CLOSED_FOLDER", end)
    with pytest.raises(StackError, match=r"can enter the data folder .* failed \(status -?\d+\)"):
        with_code_account({"SLICEWISE_RUNNER_USER": "nobody"}, folder)


@root_only
@pytest.mark.usefixtures("reachable")
def test_a_file_in_the_place_of_the_lake_is_told(folder: Path) -> None:
    (folder / "lake").touch()
    assert default_account({}, folder).obstacle == (
        f"{folder / 'lake'} is no folder: remove it, or set LAKE to a folder"
    )


@root_only
@pytest.mark.usefixtures("reachable")
def test_code_never_has_the_user_of_the_database(folder: Path) -> None:
    server = server_account()
    assert server is not None
    with pytest.raises(StackError, match="as whom PostgreSQL runs here"):
        with_code_account({"SLICEWISE_RUNNER_USER": server.name}, folder)


@root_only
@pytest.mark.usefixtures("reachable")
def test_a_spark_of_another_user_keeps_root(folder: Path) -> None:
    code = default_account({"SPARK_REMOTE": "sc://localhost:15002"}, folder)
    assert (code.account, code.obstacle) == (None, "SPARK_REMOTE names a Spark of another user")


@root_only
@pytest.mark.usefixtures("reachable")
def test_the_doctor_tells_the_user_of_both_ways_to_start(folder: Path) -> None:
    assert user_of_code({}, default_account({}, folder)) == (
        "with `slicewise up`: all runs as nobody; with workers of your own: as root"
    )


@root_only
def test_the_doctor_tries_the_user_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = []

    def closed_path(_: object, __: Path, account: Account) -> str:
        trials.append(account.name)
        return "closed"

    monkeypatch.setattr(code_account, "_closed_path", closed_path)
    monkeypatch.setattr(os, "environ", {"PATH": os.environ["PATH"], "SLICEWISE_DATA": str(folder)})
    (finding,) = [one for one in doctor.examine(os.environ) if one.name == "User code"]
    assert finding.found == "all runs as root, like the server"
    assert "The reason: closed." in finding.warning
    assert trials == ["nobody"]


@root_only
@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize("umask", [0o077, 0o027])
def test_the_user_of_code_passes_through_folders_that_root_makes(folder: Path, umask: int) -> None:
    data, before = folder / "srv" / "slicewise" / "data", os.umask(umask)
    try:
        env = with_code_account({}, data)
        DataFolder(data).create()
    finally:
        os.umask(before)
    assert env["SLICEWISE_RUNNER_USER"] == "nobody"
    as_nobody(["/bin/sh", "-c", 'cd "$1" && : > "$1/written"', "sh", env["LAKE"]])
    modes = [path.stat().st_mode & 0o777 for path in (data.parents[1], data.parent, data)]
    assert modes == [0o755, 0o755, 0o711]


@root_only
@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize("env", [{}, {"SLICEWISE_RUNNER_USER": "games"}])
def test_a_closed_folder_above_the_data_is_refused_with_its_path(
    folder: Path, env: dict[str, str]
) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(StackError, match=f"cannot enter {closed}, of the data folder"):
        with_code_account(env, closed / "data")


@root_only
def test_a_java_that_is_found_in_a_closed_folder_of_path_is_named(
    folder: Path, tmp_path: Path
) -> None:
    closed = folder / "closed"
    (closed / "bin").mkdir(parents=True)
    closed.chmod(0o700)
    java = closed / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    path = f"{java.parent}:{os.environ['PATH']}"
    assert obstacle_of({"PATH": path}, folder / "data", tmp_path) == f"nobody cannot use {java}\n"


@root_only
@pytest.mark.usefixtures("reachable")
def test_a_relative_lake_is_that_of_the_folder_where_the_command_starts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert with_code_account({"LAKE": "lakes/one"}, folder)["LAKE"] == f"{folder}/lakes/one"
    assert with_code_account({"LAKE": "s3://bucket/one"}, folder)["LAKE"] == "s3://bucket/one"


@root_only
def test_a_relative_lake_that_nobody_cannot_write_is_named(folder: Path, tmp_path: Path) -> None:
    lake = folder / "lake"
    lake.mkdir(mode=0o755)
    relative = os.path.relpath(lake, PROJECT)
    assert obstacle_of({"LAKE": relative}, folder / "data", tmp_path) == (
        f"nobody cannot use {PROJECT / relative}\n"
    )


@root_only
def test_the_loader_has_another_user_than_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_account, "_closed_path", lambda *_: "")
    account = default_account({}, folder).account
    assert account is not None
    assert account.uid not in LOADER_USERS
    assert 0 not in LOADER_USERS


@root_only
@pytest.mark.usefixtures("reachable")
def test_exec_of_root_tells_its_command_to_run_code_as_nobody(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    env = {"PATH": os.environ["PATH"], "SLICEWISE_DATA": str(folder / "data")}
    monkeypatch.setattr(os, "environ", env)
    monkeypatch.setattr(up, "Services", QuietServices)
    script = "import os; print(os.environ['SLICEWISE_RUNNER_USER'], os.environ['ADDRESS'])"
    assert up.execute([sys.executable, "-c", script]) == 0
    assert capfd.readouterr().out == "nobody somewhere\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root's stack takes another user")
def test_the_stack_of_another_user_keeps_that_user(folder: Path) -> None:
    assert default_account({}, folder).account is None
    assert default_account({"SLICEWISE_RUNNER_USER": "games"}, folder).account is None


class QuietServices:
    """Services that start no server."""

    def __init__(self, data: Path, env: Mapping[str, str]) -> None:
        assert env["SLICEWISE_RUNNER_USER"] == "nobody"

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def environment(self) -> dict[str, str]:
        return {"ADDRESS": "somewhere"}


def obstacle_of(env: dict[str, str], data: Path, mount: Path) -> str:
    """Return why code of a stack with this environment is root's, where others reach Python."""
    script = (
        "import json, sys; from pathlib import Path;"
        "from slicewise_server.stack.code_account import *;"
        "print(default_account(json.loads(sys.argv[1]), Path(sys.argv[2])).obstacle)"
    )
    answer = subprocess.run(
        [*reaching_python(mount), sys.executable, "-c", script, json.dumps(env), str(data)],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return answer.stdout


def as_nobody(command: list[str]) -> None:
    """Run a command as the user of code; fail where the command fails."""
    uid, gid = NOBODY.pw_uid, NOBODY.pw_gid
    subprocess.run(command, cwd="/", check=True, user=uid, group=gid, extra_groups=[])


def await_success(api: Client, run: int) -> None:
    """Wait for the success of a run; fail with the run's error where the run ends otherwise."""
    end = time.monotonic() + START_SECONDS
    while (shown := api.get(f"/runs/{run}/"))["state"] != "succeeded":
        assert shown["state"] not in ("failed", "canceled"), shown["error"]
        assert time.monotonic() < end, shown
        time.sleep(0.5)


def read_parquet(folder: Path) -> list[tuple[int, ...]]:
    """Read the rows with a reader that knows nothing of Slicewise."""
    files = sorted(folder.rglob("*.parquet"))
    rows = [row for file in files for row in parquet.read_table(file).to_pylist()]
    return [tuple(row.values()) for row in rows]
