"""Row 3: a worker that is stopped past its lease, also between intent and exchange, and continued:
the worker publishes nothing, and newer data stays.
"""

import signal
import time
from pathlib import Path

import pytest

from slicewise_server.stack.demo.client import Client
from tests.faults.conftest import Recovered
from tests.faults.crash_points import arm, has_fallen
from tests.faults.marks import assert_never_twice_at_once, await_attempts, let_end, marks_of
from tests.faults.runs import request_run, steady_texts
from tests.faults.stack_processes import SHORT_LEASE, Crew, until
from tests.processes import is_alive

pytestmark = pytest.mark.fault(3)


def await_fall(folder: Path, run: int) -> float:
    """Return the time at which the worker of a run was stopped."""
    stopped_at: float = until(
        lambda: has_fallen(folder, run), f"the worker of run {run} has stopped"
    )
    return stopped_at


def await_quiet(crew: Crew, name: str, pid: int) -> None:
    """Wait until a continued worker has looked at its leases, and has no more work."""
    since = time.time()
    until(
        lambda: crew.rows(
            "SELECT 1 FROM assets_app_gateway WHERE process_id = %s"
            " AND last_seen > to_timestamp(%s) + interval '2 s'",
            pid,
            since,
        ),
        f"{name} is heard of again",
    )


MOMENTS = {
    "2024-02-01": "after:running-publishing",
    "2024-02-02": "before:exchange-1",
    "2024-02-03": "after:exchange-1",
}


@pytest.mark.rounds
def test_workers_stopped_while_they_publish_harm_nothing_when_they_go_on(
    crew: Crew, api: Client, lake: Path, tmp_path: Path, recovered: Recovered
) -> None:
    before = crew.materializations("steady")
    crew.halt("worker-scheduled")
    folder = tmp_path / "moments"
    folder.mkdir()
    # Each makes one run at a time, so each is stopped at one of the moments.
    frail = [f"frail-{number}" for number in range(len(MOMENTS))]
    for name in frail:
        crew.hire_frail(name, folder, "scheduled", "-c", "1", env=SHORT_LEASE)
    workers = {name: crew.await_gateway(name) for name in frail}
    runs = {}
    for day, moment in MOMENTS.items():
        runs[day] = request_run(api, "steady", day, said="older", seconds=2)
        arm(folder, runs[day], moment, signal.SIGSTOP)
    stopped_at = {day: await_fall(folder, run) for day, run in runs.items()}
    for pid in workers.values():
        crew.freeze(pid)  # as it has done itself: to be continued whatever happens here
    crew.launch("worker-scheduled")
    for day, run in runs.items():
        assert crew.await_run(run) == "succeeded", MOMENTS[day]
        ended = float(crew.value(_ENDED_AT, run))
        recovered(
            f"SIGSTOP of the worker {MOMENTS[day].replace(':', ' ')}", ended - stopped_at[day]
        )
        assert steady_texts(lake, day) == ["older"]
    newer = [request_run(api, "steady", day, said="newer", seconds=0.1) for day in runs]
    for run in newer:
        assert crew.await_run(run) == "succeeded"

    for pid in workers.values():
        crew.thaw(pid)
    for name, pid in workers.items():
        await_quiet(crew, name, pid)

    for day, run in runs.items():
        version, count = before.get(day, (0, 0))
        assert steady_texts(lake, day) == ["newer"], MOMENTS[day]
        assert crew.materializations("steady")[day] == (version + 2, count + 2)
        assert [outcome for _, outcome, _ in crew.attempts(run)] == ["succeeded"]
    root = lake / "faults" / "steady"
    until(lambda: not list(root.glob("_slicewise*")), "nothing staged is left behind")
    crew.assert_sound()


def test_the_code_of_a_stopped_worker_ends_before_another_takes_over(
    crew: Crew, api: Client, lake: Path, recovered: Recovered, fault_round: int
) -> None:
    day = "2024-02-04"
    before = crew.materializations("steady").get(day, (0, 0))
    stopped = crew.pid("worker-scheduled")
    # The code does not end by itself before another worker has begun.
    may_end = f"stopped worker {fault_round}"
    run = request_run(api, "steady", day, said="older", until=may_end)
    (first,) = await_attempts(lake, run, 1)
    stopped_at = time.time()
    crew.freeze(stopped)
    crew.hire_gateway("second")
    await_attempts(lake, run, 2)
    let_end(lake, may_end)
    assert crew.await_run(run) == "succeeded"
    recovered("SIGSTOP of the worker in the middle of a run", time.time() - stopped_at)
    assert not is_alive(first.pid)
    assert_never_twice_at_once(marks_of(lake, run))
    newer = request_run(api, "steady", day, said="newer", seconds=0.1)
    assert crew.await_run(newer) == "succeeded"

    crew.thaw(stopped)
    await_quiet(crew, "worker-scheduled", stopped)

    assert steady_texts(lake, day) == ["newer"]
    assert crew.materializations("steady")[day] == (before[0] + 2, before[1] + 2)
    assert [outcome for _, outcome, _ in crew.attempts(run)] == ["lost", "succeeded"]
    crew.assert_sound()


_ENDED_AT = "SELECT extract(epoch FROM ended_at) FROM assets_app_run WHERE id = %s"
