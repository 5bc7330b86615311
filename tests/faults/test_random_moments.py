"""Row 2: kill -9 of workers and the control worker at random points, the same points each time.

Each round of `make faults` has five points, each round other points; `make test` leaves the test
out.
"""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from slicewise_server.stack.demo.client import Client
from tests.faults.conftest import Recovered
from tests.faults.marks import assert_never_twice_at_once, marks_of
from tests.faults.runs import Case, assert_made, assert_published, request_run
from tests.faults.stack_processes import SHORT_LEASE, Crew, until
from tests.processes import is_alive

pytestmark = [pytest.mark.fault(2), pytest.mark.rounds]

KILLS = 5
CASES = [Case("steady", f"2024-02-{day}", "at random") for day in range(12, 22)]


def kill(worker: int) -> None:
    """Send kill -9, and wait until the process is gone."""
    os.kill(worker, signal.SIGKILL)
    until(lambda: not is_alive(worker), "the worker has fallen", every=0.01)


def test_whatever_is_killed_when_each_partition_is_made_once(
    crew: Crew, api: Client, lake: Path, tmp_path: Path, recovered: Recovered, fault_round: int
) -> None:
    chance = random.Random(fault_round)
    crew.halt("worker-scheduled")
    before = crew.materializations("steady")
    runs = {request_run(api, case.asset, case.selection, **case.params): case for case in CASES}
    crew.hire_frail("mortal", tmp_path, "scheduled", "-c", "2", env=SHORT_LEASE)
    fallen = []
    for _ in range(KILLS):
        worker = crew.await_gateway("mortal")
        time.sleep(chance.uniform(0.5, 3.5))
        if chance.random() < 0.3:
            crew.kill(chance.choice(["worker-control", "worker-bulk"]))
        kill(worker)
        fallen.append(time.time())
    for run, case in runs.items():
        assert crew.await_run(run) == case.end, case

    ended = [float(crew.value(_ENDED_AT, run)) for run in runs]
    assert any(len(crew.attempts(run)) > 1 for run in runs), "nobody was hit"
    recovered("kill -9 at random points: all runs", max(max(ended) - fallen[-1], 0))
    for run, case in runs.items():
        assert_never_twice_at_once(marks_of(lake, run))
        assert_made(crew, run, case, before)
        assert_published(crew, lake, run, case)
    root = lake / "faults" / "steady"
    until(lambda: not list(root.glob("_slicewise*")), "nothing staged is left behind")
    crew.assert_sound()


_ENDED_AT = "SELECT extract(epoch FROM ended_at) FROM assets_app_run WHERE id = %s"
