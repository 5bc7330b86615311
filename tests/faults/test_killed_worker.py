"""Row 1: kill -9 of a worker in the middle of a run, of the runner, of the warm parent."""

import os
import signal
import time
from pathlib import Path

import pytest

from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import Stack
from tests.e2e.conftest import run_of
from tests.faults.conftest import ROUNDS, Recovered
from tests.faults.marks import Mark, assert_never_twice_at_once, marks_of, number_of
from tests.faults.stack_processes import Crew, until
from tests.processes import is_alive
from tests.spark_jobs import jobs_of

pytestmark = pytest.mark.fault(1)

# `make faults` measures. One round is run on any machine, beside other tests: the code stops before
# a lease, of 15 s, can end, and another worker takes over at some time. Spark would be busy for ten
# minutes.
_TAKEN_OVER_SECONDS = 30.0 if ROUNDS > 1 else 240.0
_STOPPED_SECONDS = 2.0 if ROUNDS > 1 else 8.0
_SPARK_STOPPED_SECONDS = 2.0 if ROUNDS > 1 else 240.0


def counting(api: Client, lake: Path, stack: Stack) -> tuple[int, Mark]:
    """Start a run whose code waits for Spark, which is busy for longer than any test waits."""
    run = number_of(run_of(api, "counting"))
    until(lambda: marks_of(lake, run), "its code has begun")
    until(lambda: jobs_of(stack, run, 1), "Spark is at work")
    return run, marks_of(lake, run)[0]


@pytest.mark.parametrize("victim", ["worker", "runner", "warm parent"])
def test_runs_of_a_killed_worker_stop_and_are_executed_by_another_worker(
    victim: str, crew: Crew, api: Client, lake: Path, recovered: Recovered
) -> None:
    crew.hire_gateway("second")
    before = crew.materializations("counting").get("", (0, 0))
    run, lost = counting(api, lake, crew.stack)
    ((at_work,),) = crew.rows(
        "SELECT gateway.process_id FROM assets_app_runattempt AS attempt"
        " JOIN assets_app_gateway AS gateway ON gateway.id = attempt.gateway_id"
        " WHERE attempt.run_id = %s",
        run,
    )
    name = "second" if at_work == crew.pid("second") else "worker-scheduled"
    parent = crew.warm_parent(name)
    killed = {"worker": at_work, "runner": lost.pid, "warm parent": parent}[victim]
    os.kill(killed, signal.SIGKILL)
    began, killed_at = time.monotonic(), time.time()

    until(lambda: not is_alive(lost.pid), "its code has stopped", seconds=_STOPPED_SECONDS)
    until(lambda: len(marks_of(lake, run)) == 2, "another has begun", seconds=_TAKEN_OVER_SECONDS)
    # Spark tells its pages of the end of a job a moment after it has ended.
    until(
        lambda: not jobs_of(crew.stack, run, 1),
        "Spark has stopped",
        seconds=_SPARK_STOPPED_SECONDS,
    )
    recovered(f"kill -9 of the {victim}", time.monotonic() - began)
    assert crew.await_run(run) == "succeeded"

    marks = marks_of(lake, run)
    assert_never_twice_at_once(marks)
    assert marks[0].last < killed_at + _STOPPED_SECONDS
    assert [mark.is_done for mark in marks] == [False, True]
    outcomes = [outcome for _, outcome, _ in crew.attempts(run)]
    assert outcomes == ["lost" if victim == "worker" else "failed", "succeeded"]
    after = crew.materializations("counting")[""]
    assert after == (before[0] + 1, before[1] + 1)
