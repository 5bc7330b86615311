"""Row 3: a worker that is stopped past its lease, also between intent and exchange, and continued:
it publishes nothing, and newer data stays.
"""

import signal
import time
from pathlib import Path

import pytest
from pyarrow import parquet

from config.demo.client import Client
from tests.faults.conftest import Recovered
from tests.faults.crew import Crew, is_running, until
from tests.faults.fall import arm, has_fallen
from tests.faults.marks import assert_never_twice_at_once, await_attempts, marks_of
from tests.faults.test_named_moments import BRIEF, asked

pytestmark = pytest.mark.fault(3)


def lies_there(lake: Path, day: str) -> list[str]:
    table = parquet.read_table(lake / "faults" / "steady" / f"partition={day}", columns=["said"])
    return [str(row["said"]) for row in table.to_pylist()]


def await_quiet(crew: Crew, name: str, pid: int) -> None:
    """A worker that goes on has looked at its leases, and has nothing to do any more."""
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


@pytest.mark.parametrize(
    ("moment", "day"),
    [
        ("after:running-publishing", "2024-02-01"),
        ("before:exchange-1", "2024-02-02"),
        ("after:exchange-1", "2024-02-03"),
    ],
)
def test_a_worker_stopped_while_it_publishes_harms_nothing_when_it_goes_on(
    moment: str, day: str, crew: Crew, api: Client, lake: Path, tmp_path: Path, recovered: Recovered
) -> None:
    before = crew.materializations("steady").get(day, (0, 0))
    crew.halt("worker-scheduled")
    folder = tmp_path / "moments"
    run = asked(api, "steady", day, said="older", seconds=0.1)
    arm(folder, run, moment, signal.SIGSTOP)
    crew.hire_frail("frail", folder, "scheduled", **BRIEF)
    stopped_at = until(lambda: has_fallen(folder, run), "the worker has stopped")
    stopped = crew.await_gateway("frail")
    crew.freeze(stopped)  # as it has done itself: to be continued whatever happens here
    crew.launch("worker-scheduled")
    assert crew.await_run(run) == "succeeded"
    recovered(f"SIGSTOP of the worker {moment.replace(':', ' ')}", time.time() - stopped_at)
    assert lies_there(lake, day) == ["older"]
    newer = asked(api, "steady", day, said="newer", seconds=0.1)
    assert crew.await_run(newer) == "succeeded"

    crew.thaw(stopped)
    await_quiet(crew, "frail", stopped)

    assert lies_there(lake, day) == ["newer"]
    assert crew.materializations("steady")[day] == (before[0] + 2, before[1] + 2)
    assert [outcome for _, outcome, _ in crew.attempts(run)] == ["succeeded"]
    assert not list((lake / "faults" / "steady").glob("_slicewise*"))
    crew.assert_sound()


def test_the_code_of_a_stopped_worker_ends_before_another_takes_over(
    crew: Crew, api: Client, lake: Path, recovered: Recovered
) -> None:
    day = "2024-02-04"
    before = crew.materializations("steady").get(day, (0, 0))
    run = asked(api, "steady", day, said="older", seconds=3)
    (first,) = await_attempts(lake, run, 1)
    stopped, stopped_at = crew.pid("worker-scheduled"), time.time()
    crew.freeze(stopped)
    crew.hire_gateway("second")
    assert crew.await_run(run) == "succeeded"
    recovered("SIGSTOP of the worker in the middle of a run", time.time() - stopped_at)
    assert not is_running(first.pid)
    assert_never_twice_at_once(marks_of(lake, run))
    newer = asked(api, "steady", day, said="newer", seconds=0.1)
    assert crew.await_run(newer) == "succeeded"

    crew.thaw(stopped)
    await_quiet(crew, "worker-scheduled", stopped)

    assert lies_there(lake, day) == ["newer"]
    assert crew.materializations("steady")[day] == (before[0] + 2, before[1] + 2)
    assert [outcome for _, outcome, _ in crew.attempts(run)] == ["lost", "succeeded"]
    crew.assert_sound()
