"""Runs with a user each: a run reaches nothing of another run, and leaves nothing for the next."""

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from assets_app.execution.data import runner_user
from assets_app.execution.gateway.worker import GatewayWorker
from slicewise.process import reachability
from slicewise.runner.parent_client import WarmParent, WarmParentError
from slicewise.runner.processes import has_processes
from slicewise.runner.run_limits import RunLimits
from tests.attacks.process_inspection import REFUSED, SPY, read_pid
from tests.attacks.users import FIRST_USER, GROUP, open_folder, parent_of_each
from tests.processes import is_alive
from tests.runtime.runs import Runs
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give runs other users")

FACTS = """
    import json, tempfile

    def facts():
        home = os.environ["HOME"]
        return {
            "user": os.getresuid(), "group": os.getresgid(), "groups": os.getgroups(),
            "home": home, "temporary": tempfile.gettempdir(), "there": os.listdir(home),
            "mode": os.stat(home).st_mode & 0o777, "umask": os.umask(0o002),
            "name": os.environ["USER"],
        }
"""
# Out of the process group, out of the session, and given up by the run itself.
DETACHED = """
    import ctypes

    def detach(seconds, disowned=True):
        if disowned:
            ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.write(writing, str(os.getpid()).encode())
                time.sleep(seconds)
            os._exit(0)
        return int(os.read(reading, 20))
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with open_folder() as reachable:
        yield reachable


@pytest.fixture(scope="module")
def parent_of_two(folder: Path) -> Iterator[WarmParent]:
    with parent_of_each(folder) as parent:
        yield parent


@pytest.fixture(scope="module")
def parent_of_one(folder: Path) -> Iterator[WarmParent]:
    with parent_of_each(folder, 1) as parent:
        yield parent


@pytest.fixture
def runs(parent_of_two: WarmParent, tmp_path: Path) -> Runs:
    """Return runs of two users."""
    return Runs(parent_of_two, tmp_path)


@pytest.fixture
def alone(parent_of_one: WarmParent, tmp_path: Path) -> Runs:
    """Return runs of one user, one after the other."""
    return Runs(parent_of_one, tmp_path)


def test_each_run_has_a_user_and_a_home_of_its_own(runs: Runs, folder: Path) -> None:
    runs.define(
        FACTS
        + """
    @asset()
    def own():
        open(os.path.join(os.environ["HOME"], "left"), "w").close()
        print(json.dumps(facts()), flush=True)
        time.sleep(2)
    """
    )
    both = [runs.launch("own") for _ in range(2)]
    logs = [[m["text"] for m in runner.messages(60) if m["type"] == "log"] for runner in both]
    facts_of_runs = [json.loads("".join(log)) for log in logs]
    assert {facts["user"][0] for facts in facts_of_runs} == {FIRST_USER + 1, FIRST_USER + 2}
    for facts in facts_of_runs:
        assert facts == {
            "user": [facts["user"][0]] * 3, "group": [GROUP] * 3, "groups": [],
            "home": facts["home"], "temporary": facts["home"], "there": ["left"],
            "mode": 0o700, "umask": 0o002, "name": f"slicewise-{facts['user'][0]}",
        }  # fmt: skip
        assert not os.path.lexists(facts["home"])


def test_a_run_reaches_no_other_one(runs: Runs, folder: Path) -> None:
    runs.define(
        SPY
        + """
    @asset()
    def killer(context):
        for act in (
            lambda: os.kill(context["params"]["victim"], 9),
            lambda: os.listdir(context["params"]["home"]),
        ):
            try:
                act()
                print("done")
            except PermissionError:
                print("refused")
        try:
            os.kill(-1, 0)
        except ProcessLookupError:
            pass
    """
    )
    runner = runs.launch("victim")
    pid, messages = read_pid(runner)
    uid = os.stat(f"/proc/{pid}").st_uid
    outcome = runs.run("spy", params={"victim": pid, "parent": runs.parent.pid})
    assert json.loads(outcome.log)[1] == {"victim": REFUSED, "parent": REFUSED}
    home = str(folder / "slots" / str(uid))
    log = runs.run("killer", params={"victim": pid, "home": home}).log
    assert log == "refused\nrefused\n"
    assert is_alive(pid)
    runner.kill()
    assert list(messages)[-1]["signal"] == 9


def test_nothing_that_a_run_leaves_behind_goes_on(alone: Runs) -> None:
    alone.define(
        DETACHED
        + """
    @asset()
    def leaves():
        print(detach(300))
    """
    )
    outcome = alone.run("leaves")
    assert outcome.messages[-1]["is_user_gone"] is True
    assert not is_alive(int(outcome.log))
    assert not has_processes(FIRST_USER + 1)


def test_nothing_that_a_killed_run_leaves_behind_goes_on(alone: Runs) -> None:
    alone.define(
        DETACHED
        + """
    @asset()
    def leaves():
        print(detach(300), flush=True)
        time.sleep(300)
    """
    )
    runner = alone.launch("leaves")
    pid, messages = read_pid(runner)
    runner.kill()
    assert list(messages)[-1]["is_user_gone"] is True
    assert not is_alive(pid)


WORKER = """
import json, os, sys
from pathlib import Path
from slicewise.runner.parent_client import WarmParent
from slicewise.runner.slot_users import SlotUsers
folder, first, group = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
users = SlotUsers(range(first, first + 1), group, folder / "slots")
parent = WarmParent(
    env={"PATH": os.environ["PATH"]}, cache=folder / "cache", user=(first - 1, group),
    slot_users=users,
)
for message in parent.launch(json.loads(sys.argv[4])).messages(0.2):
    if message["type"] == "log":
        print(message["text"].strip(), flush=True)
"""


def test_files_of_a_lost_worker_s_run_are_removed_before_the_next_run(
    alone: Runs, folder: Path
) -> None:
    alone.define(
        FACTS
        + DETACHED
        + """
    @asset()
    def leaves():
        pid = detach(300, disowned=False)
        place = os.path.join(os.environ["HOME"], "deep")
        for _ in range(1500):
            os.mkdir(place)
            os.chdir(place)
            place = "deep"
        open("poison", "w").close()
        print(pid, flush=True)
        time.sleep(300)

    @asset()
    def following():
        print(json.dumps(facts()))
    """
    )
    request = json.dumps(alone.request("leaves"))
    command = [sys.executable, "-c", WORKER, str(folder), str(FIRST_USER + 1), str(GROUP), request]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        pid = int(worker.stdout.readline())
        with pytest.raises(WarmParentError, match=r"none of the 1 users of SLICEWISE_RUNNER_USERS"):
            alone.run("following")
        worker.kill()
    assert is_alive(pid)  # the kernel ends the runner alone
    facts = json.loads(alone.run("following").log)
    assert not is_alive(pid)
    assert facts["user"][0] == FIRST_USER + 1
    assert facts["there"] == []


def test_a_fork_bomb_ends_with_its_run(alone: Runs) -> None:
    alone.define("""
        @asset()
        def bomb():
            until = time.monotonic() + 300
            while time.monotonic() < until:
                try:
                    if os.fork() == 0:
                        os.setsid()
                except OSError:
                    time.sleep(0.01)
            os._exit(0)
        @asset()
        def quick():
            pass
    """)
    outcome = alone.run("bomb", limits=RunLimits(processes=40).to_json())
    assert "its limit is 40 (setting SLICEWISE_RUN_PROCESSES" in outcome.messages[-1]["excess"]
    # Killed they are, and on a busy machine some take a while to end.
    assert wait_until(lambda: not has_processes(FIRST_USER + 1))
    assert alone.run("quick").types == ["started", "finished", "exited"]


def test_the_kernel_refuses_more_processes_than_the_limit(alone: Runs) -> None:
    alone.define("""
        @asset()
        def forker():
            for _ in range(60):
                if os.fork() == 0:
                    time.sleep(10)
                    os._exit(0)
    """)
    failure = alone.run("forker", limits=RunLimits(processes=30).to_json())
    messages = [m.get("error") or m.get("excess") or "" for m in failure.messages]
    assert any("30" in text and "SLICEWISE_RUN_PROCESSES" in text for text in messages), messages


@pytest.fixture
def data(settings: Any, tmp_path: Path) -> Any:
    settings.DATA_FOLDER, settings.RUNNER_USER = tmp_path, "nobody"
    settings.RUNNER_USERS = "2000000000-2000000003"
    return settings


def test_a_range_is_taken(data: Any) -> None:
    users = runner_user.slot_users(4)
    assert users is not None
    claim = users.claim(lambda user: True)
    assert claim.user == (2_000_000_000, pwd.getpwnam("nobody").pw_gid)
    assert claim.home.stat().st_uid == 2_000_000_000
    claim.release(is_clean=True)
    assert not claim.home.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("many", "is a range of numbers of users, 20000-20031, not 'many'"),
        ("5", "is a range of numbers"),
        ("9-5", "has from 1 to 10,000 users"),
        ("0-9", "users are from 1 to"),
        ("1-9", "of this host has some of these"),
        ("4294967290-4294967296", "users are from 1 to"),
        ("2000000000-2000000002", "has 3 users, and this worker has 4 slots"),
    ],
)
def test_a_range_that_cannot_be_had_stops_the_start(data: Any, text: str, message: str) -> None:
    data.RUNNER_USERS = text
    with pytest.raises(ImproperlyConfigured, match=message):
        runner_user.slot_users(4)


@pytest.mark.parametrize(("first", "is_free"), [(1_999_999_000, False), (1_999_998_000, True)])
def test_numbers_of_people_s_containers_stop_the_start(
    data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int, is_free: bool
) -> None:
    (tmp_path / "subuid").write_text(f"# comment\nempty:1:0\nada:{first}:1001\n")
    monkeypatch.setattr(runner_user, "_SUBORDINATE_USERS", tmp_path / "subuid")
    if is_free:
        assert runner_user.slot_users(4) is not None
        return
    with pytest.raises(ImproperlyConfigured, match="'ada' of this host has some of these"):
        runner_user.slot_users(4)


def test_a_range_needs_a_user_beside_it(data: Any) -> None:
    data.RUNNER_USER = ""
    with pytest.raises(ImproperlyConfigured, match="another user in SLICEWISE_RUNNER_USER"):
        runner_user.slot_users(4)


def test_python_that_others_cannot_reach_stops_the_start(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    closed = tmp_path / "python"
    closed.symlink_to(sys.executable)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "executable", str(closed))
        with pytest.raises(ImproperlyConfigured, match=f"the user {FIRST_USER}, who cannot use"):
            runner_user.refuse_closed_python([(FIRST_USER, GROUP)])


def test_python_that_the_range_cannot_reach_stops_the_start(
    data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_user = pwd.getpwnam("nobody")
    with open_folder() as folder:
        of_nobody = folder / "of-nobody"
        of_nobody.mkdir(mode=0o700)
        python = of_nobody / "python"
        # Answers as the trial does where all can be used.
        python.write_text(f"#!/bin/sh\necho {reachability._MARK}\n")
        python.chmod(0o755)
        os.chown(of_nobody, nobody_user.pw_uid, nobody_user.pw_gid)
        monkeypatch.setattr(sys, "executable", str(python))
        with pytest.raises(ImproperlyConfigured, match="the user 2000000000, who cannot use"):
            GatewayWorker("worker", "scheduled", slots=4)
