"""A run takes all it can get, and the kernel limits the run by a control group.

The kernel's controllers of version 2 are needed: `make cgroups` runs these tests in a machine of
their own.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slicewise.process.cgroups import Cgroup
from slicewise.runner.group_folder import CONTROLLERS, group_folder
from slicewise.runner.run_limits import MEMORY_OPTION, RunLimits
from tests.attacks.control_groups import (
    MOUNTS,
    groups_below,
    has_controllers,
    runs_in_groups,
    started_groups,
    workers_folder,
)
from tests.runtime.runs import Outcome, Runs, without_usage

pytestmark = pytest.mark.skipif(
    not has_controllers(), reason="memory and pids are no controllers of version 2 here"
)

MEBIBYTE = 1024**2
# A run has little memory of its own: it shares what the warm parent has loaded.
MEMORY = RunLimits(memory=200 * MEBIBYTE, memory_by=MEMORY_OPTION).to_json()
PROCESSES = RunLimits(processes=60).to_json()
MEMORY_SENTENCE = (
    "The run asked for more memory than it may have, and its limit is 200 MiB (memory= of the"
    " asset); the run was stopped."
)
PROCESSES_SENTENCE = (
    "The run had 60 processes and threads, and its limit is 60 (setting SLICEWISE_RUN_PROCESSES of"
    " the server); the run was stopped."
)

GREEDY = """
    MOST = 2**30

    def fill(most=MOST, seconds=60):
        kept = []
        for _ in range(most // 2**24):
            kept.append(bytearray(b"x" * 2**24))
        time.sleep(seconds)

    @asset()
    def by_itself():
        fill()

    @asset()
    def by_children():
        for _ in range(4):
            if os.fork() == 0:
                fill(80 * 2**20)
        time.sleep(60)

    @asset()
    def by_a_detached_process():
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                fill()
            os._exit(0)
        time.sleep(60)

    @asset()
    def by_a_file_in_memory():
        with open(f"/dev/shm/slicewise-test-{os.getpid()}", "wb") as file:
            os.unlink(file.name)
            for _ in range(MOST // 2**24):
                file.write(b"x" * 2**24)

    @asset()
    def by_processes():
        while True:
            try:
                if os.fork() == 0:
                    os.setsid()
            except OSError:
                time.sleep(0.01)

    def start_threads(seconds):
        for _ in range(100):
            try:
                threading.Thread(target=time.sleep, args=(seconds,), daemon=True).start()
            except RuntimeError:
                pass
        time.sleep(seconds)

    @asset()
    def by_threads():
        start_threads(600)

    @asset()
    def by_threads_for_a_second():
        start_threads(1)

    @asset()
    def modest():
        kept = bytearray(b"x") * (100 * 2**20)
        for _ in range(4):
            if os.fork() == 0:
                time.sleep(1)
                os._exit(0)
        for _ in range(4):
            os.wait()
        print("done")
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A group for workers."""
    with workers_folder() as path:
        yield path


@pytest.fixture(scope="module")
def all_runs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Runs of which each has a group."""
    assert group_folder(str(folder)).path == folder
    with (
        started_groups(folder, CONTROLLERS) as groups,
        runs_in_groups(groups, tmp_path_factory.mktemp("runs")) as runs,
    ):
        runs.define(GREEDY)
        yield runs


@pytest.fixture
def runs(all_runs: Runs, folder: Path) -> Iterator[Runs]:
    """Runs that leave no group."""
    yield all_runs
    assert [name for name in groups_below(folder) if name.startswith("run-")] == []


def excess(outcome: Outcome) -> str:
    """Why a run was stopped."""
    assert outcome.types == ["started", "exited"], outcome.log
    return str(outcome.messages[-1]["excess"])


@pytest.mark.parametrize(
    "how", ["by_itself", "by_children", "by_a_detached_process", "by_a_file_in_memory"]
)
def test_a_run_that_fills_the_memory_is_stopped_with_all_its_processes(
    runs: Runs, how: str
) -> None:
    assert excess(runs.run(how, limits=MEMORY)) == MEMORY_SENTENCE


@pytest.mark.parametrize("how", ["by_processes", "by_threads"])
def test_a_run_that_starts_too_many_processes_is_stopped_at_once(runs: Runs, how: str) -> None:
    begun = time.monotonic()
    assert excess(runs.run(how, limits=PROCESSES)) == PROCESSES_SENTENCE
    assert time.monotonic() - begun < 120


def test_shared_memory_counts_once_and_a_modest_run_ends_well(runs: Runs) -> None:
    limits = RunLimits(memory=200 * MEBIBYTE, memory_by=MEMORY_OPTION, processes=60).to_json()
    outcome = runs.run("modest", limits=limits)
    assert outcome.types == ["started", "finished", "exited"]
    assert outcome.log == "done\n"
    assert "excess" not in outcome.messages[-1]


def test_a_run_beside_is_not_disturbed(runs: Runs) -> None:
    beside = runs.launch("modest", limits=MEMORY)
    assert excess(runs.run("by_itself", limits=MEMORY)) == MEMORY_SENTENCE
    messages = list(beside.messages(60))
    assert without_usage(messages[-1]) == {"type": "exited", "status": 0, "signal": None}


def test_a_run_is_not_blamed_for_a_group_above_without_memory(runs: Runs, folder: Path) -> None:
    above = Cgroup(folder)
    above.set("memory.max", 150 * MEBIBYTE)
    try:
        outcome = runs.run("by_itself", limits=MEMORY)
    finally:
        above.set("memory.max", "max")
    assert without_usage(outcome.messages[-1]) == {"type": "exited", "status": -9, "signal": 9}


def test_a_run_is_not_blamed_for_a_group_above_without_processes(runs: Runs, folder: Path) -> None:
    above = Cgroup(folder)
    above.set("pids.max", 20)
    try:
        outcome = runs.run("by_threads_for_a_second", limits=PROCESSES)
    finally:
        above.set("pids.max", "max")
    assert outcome.types == ["started", "finished", "exited"]
    assert "excess" not in outcome.messages[-1]


def test_a_run_reads_its_own_limit(runs: Runs) -> None:
    """Java asks so for the size of its heap."""
    runs.define(
        f"""
    @asset()
    def reader():
        lines = open("/proc/self/cgroup").read().splitlines()
        group = next(line for line in lines if line.startswith("0::")).removeprefix("0::/")
        print(open(os.path.join({str(MOUNTS[0])!r}, group, "memory.max")).read())
    """,
        file="reader.py",
    )
    assert runs.run("reader", limits=MEMORY).log.split() == [str(200 * MEBIBYTE)]
