"""Row 1: a run that ends its worker, again and again, is recognized; its neighbours succeed."""

from functools import partial
from pathlib import Path

import pytest

from slicewise_server.stack.commands import worker
from slicewise_server.stack.demo.client import Client
from tests.e2e.conftest import run_of
from tests.faults.marks import number_of
from tests.faults.runs import request_run
from tests.faults.stack_processes import Crew, until
from tests.processes import is_alive

pytestmark = pytest.mark.fault(1)

# Its third loss is the first for which it is alone.
_LIMIT = 4
_NEIGHBOUR_SECONDS = 4.0


@pytest.mark.rounds
def test_a_run_that_ends_its_worker_fails_and_its_neighbours_succeed(
    crew: Crew, api: Client, tmp_path: Path
) -> None:
    for name in ("worker-scheduled", "worker-control"):
        crew.halt(name)
    brief = {"LOST_ATTEMPTS_LIMIT": str(_LIMIT), "PLATFORM_RETRY_PAUSE_SECONDS": "0.2"}
    crew.hire("control", worker("control", "-n", "control@%h", "-c", "4"), brief)
    deadly = number_of(run_of(api, "deadly"))
    days = ("2024-02-15", "2024-02-16", "2024-02-17")
    neighbours = [request_run(api, "steady", day, seconds=_NEIGHBOUR_SECONDS) for day in days]
    crew.hire_frail("frail", tmp_path, "scheduled", "-c", "4", env=brief)

    for loss in range(1, _LIMIT + 1):
        lost_attempt = until(partial(begun_by, crew, deadly, loss), f"it begins, time {loss}")
        until(partial(has_ended, lost_attempt), "it has ended its worker")
        # Nobody waits for a lease that nobody renews.
        crew.rows(
            "UPDATE assets_app_lease SET until = now() - interval '1 s' WHERE attempt_id IN"
            " (SELECT id FROM assets_app_runattempt WHERE run_id = ANY(%s) AND ended_at IS NULL)",
            [deadly, *neighbours],
        )
        crew.await_run(deadly, "queued", "dispatched", "running", "failed")
    assert crew.await_run(deadly) == "failed"
    assert [crew.await_run(run) for run in neighbours] == ["succeeded"] * len(neighbours)

    last = crew.attempts(deadly)[-1][2]
    assert f"has lost its worker or its process {_LIMIT} times, 2 of them without another" in last
    lost = "SELECT lost_attempts FROM assets_app_run WHERE id = ANY(%s)"
    assert max(count for (count,) in crew.rows(lost, neighbours)) <= 2
    crew.assert_sound()


def has_ended(pid: int) -> bool:
    """Return whether a process has ended."""
    return not is_alive(pid)


def begun_by(crew: Crew, run: int, number: int) -> int | None:
    """Return the process of the worker that has begun an attempt at a run."""
    rows = crew.rows(
        "SELECT gateway.process_id FROM assets_app_runattempt AS attempt"
        " JOIN assets_app_gateway AS gateway ON gateway.id = attempt.gateway_id"
        " WHERE attempt.run_id = %s AND attempt.number = %s",
        run,
        number,
    )
    return int(rows[0][0]) if rows else None
