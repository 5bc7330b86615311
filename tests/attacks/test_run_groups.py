"""Runs with control groups, on the kernel's own files: whoever is in a group ends with the run.

These groups have no controllers, so that the tests run where controllers are of version 1 too.
"""

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from slicewise.process import cgroups
from slicewise.process.cgroups import Cgroup
from slicewise.runner.follow import RunnerProcess
from slicewise.runner.parent_client import WarmParentError
from slicewise.runner.run_groups import RunGroup, RunGroups
from slicewise.runner.run_limits import RunLimits
from slicewise.runner.run_resources import RunResources
from slicewise.runner.wire import encode
from tests.attacks.control_groups import (
    MOUNTS,
    groups_below,
    runs_in_groups,
    started_groups,
    workers_folder,
)
from tests.processes import is_alive
from tests.runtime.runs import Runs
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(not MOUNTS, reason="nobody but root may make control groups")

DETACHED = """
    import ctypes

    def detach():
        ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.write(writing, str(os.getpid()).encode())
                time.sleep(600)
            os._exit(0)
        return int(os.read(reading, 20))
"""
# A worker with a process in a run's group, as a worker has that is killed.
WORKER = """
    import os, subprocess, sys, time
    from pathlib import Path
    from slicewise.runner.run_groups import RunGroups
    from slicewise.runner.run_limits import RunLimits

    groups = RunGroups(Path(sys.argv[1]), ())
    groups.start()
    group = groups.create("1-1", RunLimits())
    sleeper = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
    with group.entry() as (processes, _):
        os.write(processes, str(sleeper.pid).encode())
    print(sleeper.pid, flush=True)
    time.sleep(600)
"""
# A worker that moves into a group of the folder before it starts.
WORKER_WITHIN = """
    import sys
    from pathlib import Path
    from slicewise.runner.run_groups import RunGroups

    Path(sys.argv[1], sys.argv[2], "cgroup.procs").write_text("0")
    groups = RunGroups(Path(sys.argv[1]), ())
    groups.start()
    groups.close()
    print("alive")
"""
# Ends a group whose processes are of another PID namespace.
ENDER = """
    import sys
    from pathlib import Path
    from slicewise.process import cgroups

    cgroups.KILL = "cgroup.not-there"
    assert Path(sys.argv[1], "cgroup.procs").read_text() == "0\\n"
    print(cgroups.Cgroup(Path(sys.argv[1])).remove())
"""


@pytest.fixture(autouse=True)
def patient_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for the end of killed processes: on a busy machine the end takes a while."""
    monkeypatch.setattr(cgroups, "_END_SECONDS", 60.0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A group for workers."""
    with workers_folder() as path:
        yield path


@pytest.fixture
def grouped_runs(folder: Path, tmp_path: Path) -> Iterator[Runs]:
    """Runs of which each has a group."""
    with started_groups(folder, ()) as groups, runs_in_groups(groups, tmp_path) as runs:
        yield runs


def killed_worker(folder: Path) -> tuple["subprocess.Popen[str]", int]:
    """A worker, and a process of a run of this worker."""
    command = [sys.executable, "-c", dedent(WORKER), str(folder)]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    return worker, int(worker.stdout.readline())


def test_each_run_has_a_group_that_goes_with_the_run(grouped_runs: Runs, folder: Path) -> None:
    grouped_runs.define("""
        @asset()
        def member():
            print(open("/proc/self/cgroup").read())
    """)
    outcome = grouped_runs.run("member")
    assert outcome.types == ["started", "finished", "exited"]
    run_id = outcome.request["run_id"]
    line = next(line for line in outcome.log.splitlines() if line.startswith("0::"))
    assert f"/{folder.name}/run-worker.{os.getpid()}." in line
    assert f"/run-{run_id}-1-" in line
    assert [name for name in groups_below(folder) if name.startswith(f"run-{run_id}-")] == []


def test_a_detached_process_ends_even_if_the_warm_parent_is_killed(grouped_runs: Runs) -> None:
    grouped_runs.define(
        DETACHED
        + """
    @asset()
    def leaver():
        print(detach(), flush=True)
        time.sleep(60)
    """
    )
    runner = grouped_runs.launch("leaver")
    messages = runner.messages(60)
    detached = next(int(message["text"]) for message in messages if message["type"] == "log")
    assert grouped_runs.parent.pid is not None
    os.kill(grouped_runs.parent.pid, signal.SIGKILL)
    assert [message["type"] for message in messages] == ["exited"]
    assert wait_until(lambda: not is_alive(detached))


def test_a_run_neither_leaves_its_group_nor_locks_that_of_its_worker(
    grouped_runs: Runs, folder: Path
) -> None:
    grouped_runs.define(f"""
        def refused(act):
            try:
                act()
            except OSError as error:
                return type(error).__name__
            return "done"

        @asset()
        def leaver():
            import fcntl, pathlib
            worker, = pathlib.Path({str(folder)!r}).glob("run-worker.*")
            group = pathlib.Path({str(folder.parent)!r}) / next(
                line.strip().rpartition("::/")[2]
                for line in open("/proc/self/cgroup") if line.startswith("0::")
            )
            print(
                refused(lambda: pathlib.Path({str(folder)!r}, "cgroup.procs").write_text("0")),
                refused(lambda: (worker / "cgroup.kill").write_text("1")),
                refused(lambda: (group / "below").mkdir()),
                refused(lambda: (group / "cgroup.max.depth").write_text("1")),
                refused(lambda: fcntl.flock(os.open(worker, os.O_RDONLY), fcntl.LOCK_EX)),
                refused(lambda: (group / "cgroup.events").read_text()),
            )
    """)
    outcome = grouped_runs.run("leaver")
    if os.geteuid() == 0:
        assert outcome.log.split() == ["PermissionError"] * 5 + ["done"]


def test_a_worker_removes_what_a_killed_worker_has_left(folder: Path) -> None:
    living, kept = killed_worker(folder)
    killed, left = killed_worker(folder)
    killed.kill()
    killed.wait()
    assert is_alive(left)  # so the kernel alone ends nothing
    try:
        groups = RunGroups(folder, ())
        groups.start()
        assert wait_until(lambda: not is_alive(left))
        names = groups_below(folder)
        assert [name for name in names if name.startswith(f"run-worker.{killed.pid}.")] == []
        assert [name for name in names if name.startswith(f"run-worker.{living.pid}.")] != []
        assert is_alive(kept)
        groups.close()
    finally:
        living.kill()
        living.wait()


def test_a_worker_removes_empty_groups_of_an_earlier_version(folder: Path) -> None:
    folder.joinpath("slicewise-1-0123abcd", "run-7-1-1").mkdir(parents=True)
    groups = RunGroups(folder, ())
    groups.start()
    groups.close()
    assert groups_below(folder) == []


@pytest.mark.parametrize(
    "names",
    [
        ["slicewise-web.service"],
        ["slicewise-1-0123abcd"],
        ["run-worker.1.0123abcd.service"],
        ["run-worker.1.0123abcd", "web.service"],
    ],
)
def test_a_worker_leaves_groups_of_other_programs_alone(folder: Path, names: list[str]) -> None:
    service = folder.joinpath(*names)
    service.mkdir(parents=True)
    sleeper = subprocess.Popen(["sleep", "60"])
    Cgroup(service).set("cgroup.procs", sleeper.pid)
    try:
        groups = RunGroups(folder, ())
        groups.start()
        groups.close()
        assert sleeper.poll() is None
        assert service.is_dir()
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.mark.parametrize("name", ["slicewise-worker", "run-worker.1.0123abcd"])
def test_a_worker_in_a_group_of_the_folder_spares_that_group(folder: Path, name: str) -> None:
    (folder / name).mkdir()
    command = [sys.executable, "-c", dedent(WORKER_WITHIN), str(folder), name]
    worker = subprocess.run(command, capture_output=True, text=True, check=False)
    assert worker.stdout == "alive\n", worker.stderr


def test_processes_are_ended_where_the_kernel_does_not_end_groups(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "KILL", "cgroup.not-there")
    below = folder / "below" / "below"
    below.mkdir(parents=True)
    sleeper = subprocess.Popen(["sleep", "60"])
    Cgroup(below).set("cgroup.procs", sleeper.pid)
    assert Cgroup(folder / "below").remove()
    assert sleeper.wait(60) == -signal.SIGKILL


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that does nothing."""
    process = subprocess.Popen(["sleep", "60"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_processes_of_another_pid_namespace_are_left_and_nobody_else_is_killed(
    folder: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    below = folder / "below"
    below.mkdir()
    Cgroup(below).set("cgroup.procs", sleeper.pid)
    # The first process of a namespace gets no signal from there: a shell stands for that process.
    command = ["unshare", "--pid", "--fork", "sh", "-c", '"$0" -c "$1" "$2"; exit $?']
    ender = subprocess.run(
        [*command, sys.executable, dedent(ENDER), str(below)],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert (ender.returncode, ender.stdout) == (0, "False\n"), ender.stderr
    assert sleeper.poll() is None


def test_a_process_that_is_no_longer_in_the_group_is_not_killed(
    folder: Path, sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    below, elsewhere = folder / "below", folder / "elsewhere"
    below.mkdir()
    elsewhere.mkdir()
    Cgroup(below).set("cgroup.procs", sleeper.pid)
    monkeypatch.setattr(cgroups, "KILL", "cgroup.not-there")
    read_text = Path.read_text

    def read_and_move(path: Path) -> str:
        text = read_text(path)
        if path == below / "cgroup.procs" and text:
            Cgroup(elsewhere).set("cgroup.procs", sleeper.pid)
        return text

    monkeypatch.setattr(Path, "read_text", read_and_move)
    assert Cgroup(below).remove()
    assert sleeper.poll() is None


def test_a_run_that_gets_no_group_does_not_begin(grouped_runs: Runs, folder: Path) -> None:
    grouped_runs.define("""
        @asset()
        def never():
            print("begun")
    """)
    for worker in folder.glob("run-worker.*"):
        worker.rmdir()
    with pytest.raises(WarmParentError, match="no control group for the run"):
        grouped_runs.launch("never")


@pytest.mark.parametrize("room", [0, 1, 3, 4, 5])
def test_a_run_begins_only_with_all_descriptors_and_the_parent_lives_on(
    grouped_runs: Runs, room: int
) -> None:
    grouped_runs.define("""
        @asset()
        def member():
            print("begun")
    """)
    pid = grouped_runs.parent.pid
    assert pid is not None
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    taken = {int(number) for number in os.listdir(f"/proc/{pid}/fd")}
    free = [number for number in range(len(taken) + 8) if number not in taken]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free[room], limits[1]))
    refused = grouped_runs.run("member")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    assert refused.types == ["exited"]
    assert refused.log == ""
    assert ("error" in refused.messages[-1]) == (room > 0)
    assert grouped_runs.run("member").log == "begun\n"
    assert grouped_runs.parent.pid == pid


def test_a_run_whose_group_was_removed_is_followed_to_its_end(folder: Path) -> None:
    below = folder / "below"
    below.mkdir()
    group = RunGroup(Cgroup(below), RunLimits(), lambda _: None)
    # Without the controller pids, this file has such events.
    group.events = os.open(below / "cgroup.events", os.O_RDONLY)
    os.pread(group.events, 4096, 0)
    (channel, runner), (status, parent) = socket.socketpair(), socket.socketpair()
    log, log_end = os.pipe()
    process = RunnerProcess(
        channel=channel, log=log, status=status, resources=RunResources(group=group)
    )
    below.rmdir()
    messages = process.messages(0.1)
    assert next(messages)["type"] == "idle"
    assert vars(group)["events"] is None
    parent.send(encode({"type": "exited", "status": 0, "signal": None}))
    runner.close()
    parent.close()
    os.close(log_end)
    assert [message["type"] for message in messages if message["type"] != "idle"] == ["exited"]


def test_a_worker_without_groups_refuses_to_make_one(folder: Path) -> None:
    groups = RunGroups(folder, ())
    groups.start()
    groups.close()
    groups.close()
    assert groups_below(folder) == []
    with pytest.raises(OSError, match="the worker has no control group"):
        groups.create("1-1", RunLimits())
