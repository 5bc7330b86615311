"""User code attacks its worker through the channel of its runner: its run fails, and no other run.

The module has the short form; tests/faults/test_hostile_bundle.py does the same on a whole stack.
"""

import resource
import threading
import time
from itertools import count
from pathlib import Path

import pytest

from tests.runtime.conftest import runs, warm_parent
from tests.runtime.runs import Outcome, Runs

__all__ = ["runs", "warm_parent"]

HOSTILE = Path(__file__).parents[1] / "faults" / "bundle" / "hostile.py"
NEIGHBOUR = '''

@asset()
def neighbour():
    """Minds its own business."""
    time.sleep(1)
    print("all is well", flush=True)
'''
FUZZ_SECONDS = 8.0
# The hostile code stays for ten minutes, if the worker does not end the run.
FAILS_WITHIN_SECONDS = 240.0
MEMORY_KIB = 100 * 1024


@pytest.fixture(autouse=True)
def bundle(runs: Runs) -> None:
    """Write a bundle with the hostile asset and another asset."""
    runs.define(HOSTILE.read_text() + NEIGHBOUR)


def attack(runs: Runs, manner: str, **params: object) -> Outcome:
    """Run the hostile asset beside a neighbour; check that only the hostile run fails, in time."""
    beside: list[Outcome] = []
    thread = threading.Thread(target=lambda: beside.append(runs.run("neighbour")))
    thread.start()
    began, parent = time.monotonic(), runs.parent.pid
    outcome = runs.run("hostile", params={"manner": manner, "seed": 0, "folders": "", **params})
    assert time.monotonic() - began < FAILS_WITHIN_SECONDS
    thread.join()
    assert outcome.types[-1] == "exited"
    failures = outcome.of_type("failed")
    assert failures, outcome.types
    assert all(isinstance(failure["error"], str) for failure in failures)
    assert beside[0].types == ["started", "finished", "exited"]
    assert "all is well" in beside[0].log
    assert runs.parent.pid == parent
    return outcome


def test_random_and_mutated_messages_end_their_own_run(runs: Runs) -> None:
    deadline = time.monotonic() + FUZZ_SECONDS
    for seed in count():
        outcome = attack(runs, "messages", seed=seed)
        last = outcome.of_type("failed")[-1]
        assert last["kind"] == "code"
        assert "channel got an invalid message" in last["error"]
        if time.monotonic() > deadline:
            return


def test_a_gigabyte_without_a_newline_is_not_kept_in_memory(runs: Runs) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = attack(runs, "gigabyte")
    assert "a message of more than" in outcome.failure["error"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY_KIB


@pytest.mark.parametrize("manner", ["forks", "signals", "groups", "descriptors"])
def test_a_process_that_clings_to_its_life_ends_with_its_run(runs: Runs, manner: str) -> None:
    attack(runs, manner)


def test_links_in_all_folders_that_the_code_may_write_change_no_other_file(
    runs: Runs, tmp_path: Path
) -> None:
    place = tmp_path / "lake" / "hostile" / "deep"
    place.mkdir(parents=True)
    passwords = Path("/etc/passwd")
    before = (passwords.read_bytes(), passwords.stat())
    outcome = attack(runs, "links", folders=str(tmp_path / "lake"))
    assert (place / "hostile-link").is_symlink(), "it did not attack at all"
    assert "invalid message" in outcome.of_type("failed")[-1]["error"]
    assert (passwords.read_bytes(), passwords.stat().st_uid) == (before[0], before[1].st_uid)
