"""A run that exhausts its host is stopped, with an error that names the limit."""

import os

import pytest

from slicewise.runner.run_limits import MEMORY_OPTION, RunLimits
from tests.runtime.runs import Outcome, Runs

_MEBIBYTE = 1024**2
# A runner has some 100 MiB before any code of people runs.
MEMORY = RunLimits(memory=400 * _MEBIBYTE, memory_by=MEMORY_OPTION).to_json()
MEMORY_SAID = " in memory, and its limit is 400 MiB (memory= of the asset); the run was stopped."
PROCESSES = RunLimits(processes=60).to_json()

# Each stops by itself below what would hurt this machine.
GREEDY = """
    import mmap

    MOST = 3 * 1024**3

    def fill():
        kept, size = [], 0
        while size < MOST:
            kept.append(bytearray(b"x" * 2**24))
            size += 2**24
            time.sleep(0.004)
        time.sleep(60)

    @asset()
    def by_itself():
        fill()

    @asset()
    def by_children():
        for _ in range(4):
            if os.fork() == 0:
                MOST = 300 * 2**20
                fill()
                os._exit(0)
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
    def by_shared_memory():
        shared = mmap.mmap(-1, MOST)
        for _ in range(MOST // 2**24):
            shared.write(b"x" * 2**24)
            time.sleep(0.004)
        time.sleep(60)

    @asset()
    def by_an_orphan_it_disowns():
        import ctypes
        ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                fill()
            os._exit(0)
        os.wait()
        time.sleep(3)
"""


def excess(outcome: Outcome) -> str:
    """Return the reason for which a run was stopped."""
    assert outcome.types == ["started", "exited"], outcome.log
    return str(outcome.messages[-1]["excess"])


@pytest.mark.parametrize(
    "how", ["by_itself", "by_children", "by_a_detached_process", "by_shared_memory"]
)
def test_a_run_that_fills_the_memory_is_stopped(runs: Runs, how: str) -> None:
    runs.define(GREEDY)
    excess_text = excess(runs.run(how, limits=MEMORY))
    assert excess_text.startswith("The run had ")
    assert excess_text.endswith(
        "in memory, and its limit is 400 MiB (memory= of the asset); the run was stopped."
    )


def test_a_process_that_left_its_run_is_ended_at_the_next_check(runs: Runs) -> None:
    runs.define(GREEDY)
    outcome = runs.run("by_an_orphan_it_disowns", limits=MEMORY)
    assert outcome.types == ["started", "finished", "exited"]
    assert "excess" not in outcome.messages[-1]


def test_another_run_is_not_disturbed(runs: Runs) -> None:
    runs.define(
        GREEDY
        + """
    @asset()
    def modest():
        time.sleep(5)
        print("done")
    """
    )
    modest = runs.launch("modest", limits=MEMORY)
    excess(runs.run("by_itself", limits=MEMORY))
    messages = list(modest.messages(60))
    assert "".join(message["text"] for message in messages if message["type"] == "log") == "done\n"
    assert messages[-1]["status"] == 0


def test_a_run_with_too_many_processes_is_stopped(runs: Runs) -> None:
    runs.define("""
        @asset()
        def many():
            for _ in range(200):
                try:
                    if os.fork() == 0:
                        os.setsid()
                        time.sleep(60)
                        os._exit(0)
                except OSError:
                    pass
            time.sleep(60)

        @asset()
        def threads():
            for _ in range(200):
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            time.sleep(60)
    """)
    for name in ("many", "threads"):
        excess_text = excess(runs.run(name, limits=PROCESSES))
        assert (
            "processes and threads, and its limit is 60 (setting SLICEWISE_RUN_PROCESSES"
            in excess_text
        )


def test_a_run_that_opens_too_many_files_is_told_of_the_setting(runs: Runs) -> None:
    runs.define("""
        @asset()
        def opener():
            kept = [open("/dev/null") for _ in range(500)]
    """)
    failure = runs.run("opener", limits=RunLimits(open_files=100).to_json()).failure
    assert failure["kind"] == "code"
    assert "Too many open files" in failure["error"]
    assert "may have 100 files open (setting SLICEWISE_RUN_OPEN_FILES" in failure["error"]


def test_a_run_leaves_no_core(runs: Runs) -> None:
    runs.define("""
        import resource
        @asset()
        def crash():
            print(resource.getrlimit(resource.RLIMIT_CORE))
            os.abort()
    """)
    assert "(0, 0)" in runs.run("crash").log


def test_without_limits_a_run_has_what_its_gateway_has(runs: Runs) -> None:
    runs.define("""
        import resource
        @asset()
        def large():
            print(len(b"x" * 2**29), resource.getrlimit(resource.RLIMIT_AS))
            time.sleep(1.5)
    """)
    outcome = runs.run("large", limits=RunLimits(processes=4096, open_files=65_536).to_json())
    assert "536870912 (-1, -1)" in outcome.log
    assert outcome.types == ["started", "finished", "exited"]


def test_the_resources_of_all_processes_of_a_run_are_measured() -> None:
    limits = RunLimits(processes=1)
    excess_text = limits.excess(os.getpid())
    assert excess_text is not None
    assert "its limit is 1 " in excess_text
    assert RunLimits().excess(os.getpid()) is None
    assert RunLimits(memory=2**50, processes=2**20).excess(os.getpid()) is None
