"""Row 2: kill -9 at named moments: before and after every commit of the table of states, between
intent and exchange, and between exchange and record.

`make test` tries a worker at the most telling of them, `make faults` (FAULT_ROUNDS) at all.
"""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slicewise_server.stack import machine
from slicewise_server.stack.commands import COMMANDS
from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import ADMIN
from tests.faults.conftest import ROUNDS, Recovered
from tests.faults.crash_points import ANY, arm, has_fallen
from tests.faults.marks import assert_never_twice_at_once, await_attempts, marks_of
from tests.faults.runs import Case, assert_made, assert_published, request_run
from tests.faults.stack_processes import PROJECT, SHORT_LEASE, Crew, frail, until

pytestmark = pytest.mark.fault(2)

KILL = signal.SIGKILL
_ALL_ENDED_SECONDS = 240.0


# All of them in `make faults`; those alone in `make test` that tell most.
_ALL = [
    Case("steady", "2024-01-14", "before:canceling-canceled", "canceled"),
    Case("steady", "2024-01-15", "after:canceling-canceled", "canceled"),
    Case("steady", "2024-01-01", "before:dispatched-running"),
    Case("steady", "2024-01-02", "after:dispatched-running"),
    Case("steady", "2024-01-03", "before:running-publishing"),
    Case("steady", "2024-01-04", "after:running-publishing"),
    Case("steady", "2024-01-05", "before:exchange-1"),
    Case("steady", "2024-01-06..2024-01-07", "after:exchange-1"),
    Case("steady", "2024-01-08..2024-01-09", "after:exchange-2"),
    Case("steady", "2024-01-10", "before:publishing-succeeded"),
    Case("steady", "2024-01-11", "after:publishing-succeeded"),
    Case("failing", "2024-01-01", "before:running-queued", "failed"),
    Case("failing", "2024-01-02", "after:running-queued", "failed"),
    Case("failing", "2024-01-03", "before:running-failed", "failed"),
    Case("failing", "2024-01-04", "after:running-failed", "failed"),
    # Their folders hold what is not to be replaced.
    Case("steady", "2024-01-12", "before:publishing-failed", "failed"),
    Case("steady", "2024-01-13", "after:publishing-failed", "failed"),
]
_TELLING = (
    "before:canceling-canceled",
    "before:running-publishing",
    "after:running-publishing",
    "after:exchange-1",
    "before:publishing-succeeded",
    "after:running-queued",
)
CASES = [case for case in _ALL if ROUNDS > 1 or case.moment in _TELLING]
_REFUSED = ("2024-01-12", "2024-01-13")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of the files that name runs and moments of a fall."""
    folder = tmp_path / "moments"
    folder.mkdir()
    return folder


def test_a_worker_killed_at_any_step_leaves_a_run_that_ends_right_and_once(
    crew: Crew, api: Client, lake: Path, folder: Path, refusing: None, recovered: Recovered
) -> None:
    crew.halt("worker-scheduled")
    before = crew.materializations("steady")
    runs = {request_run(api, case.asset, case.selection, **case.params): case for case in CASES}
    for run, case in runs.items():
        arm(folder, run, case.moment, KILL)
    for name in ("frail-1", "frail-2"):
        crew.hire_frail(name, folder, "scheduled", "-c", "1", env=SHORT_LEASE)

    for run in [run for run, case in runs.items() if case.end == "canceled"]:
        await_attempts(lake, run, 1)
        api.post(f"/runs/{run}/cancel/")
    for run, case in runs.items():
        assert crew.await_run(run, seconds=_ALL_ENDED_SECONDS) == case.end, (
            case,
            crew.rows(_ERROR, run),
        )

    for run, case in runs.items():
        fell, ended = has_fallen(folder, run), float(crew.value(_ENDED_AT, run))
        assert fell is not None, f"nobody was killed {case.moment}"
        recovered(f"kill -9 of the worker {case.moment.replace(':', ' ')}", max(ended - fell, 0))
        assert_never_twice_at_once(marks_of(lake, run))
        if case.asset == "failing":
            assert crew.rows(_ERROR, run) == [("ValueError: the airport is closed", "code")], case
        else:
            assert_made(crew, run, case, before)
        if case.end == "succeeded":
            assert_published(crew, lake, run, case)
    root = lake / "faults" / "steady"
    until(lambda: not list(root.glob("_slicewise*")), "nothing staged is left behind")
    crew.assert_sound()


@pytest.fixture
def refusing(lake: Path) -> Iterator[None]:
    """Make folders of partitions that hold another folder, which may not be replaced."""
    kept_folders = [lake / "faults" / "steady" / f"partition={day}" / "kept" for day in _REFUSED]
    for folder in kept_folders:
        folder.mkdir(parents=True, exist_ok=True)
    yield
    for folder in kept_folders:
        folder.rmdir()


@pytest.mark.rounds
def test_the_control_worker_killed_at_a_step_leaves_it_to_the_next_one(
    crew: Crew, api: Client, lake: Path, folder: Path, recovered: Recovered
) -> None:
    for name in ("worker-control", "worker-scheduled"):
        crew.halt(name)
    sent = {
        request_run(api, "steady", "2024-01-16", seconds=600): "before:queued-dispatched",
        request_run(api, "steady", "2024-01-17", seconds=600): "after:queued-dispatched",
    }
    for run, moment in sent.items():
        arm(folder, run, moment, KILL)
    crew.hire_gateway("brief", env=SHORT_LEASE)
    crew.hire("frail", frail(folder, COMMANDS["worker-control"]))
    for run, moment in sent.items():
        await_attempts(lake, run, 1)
        fell = has_fallen(folder, run)
        assert fell is not None, moment
        recovered(
            f"kill -9 of the control worker {moment.replace(':', ' ')}", began(lake, run) - fell
        )
    # Now their worker is lost as well, and they are begun again.
    lost = {run: step.replace("queued-dispatched", "running-queued") for run, step in sent.items()}
    for run, moment in lost.items():
        (folder / f"{run}.fell").unlink()
        arm(folder, run, moment, KILL)
    crew.dismiss("brief")
    crew.launch("worker-scheduled")
    for run, moment in lost.items():
        await_attempts(lake, run, 2)
        fell = has_fallen(folder, run)
        assert fell is not None, moment
        assert_never_twice_at_once(marks_of(lake, run))
        assert [outcome for _, outcome, _ in crew.attempts(run)] == ["lost", ""]
        recovered(
            f"kill -9 of the control worker {moment.replace(':', ' ')}", began(lake, run) - fell
        )
        api.post(f"/runs/{run}/cancel/")
    for run in lost:
        assert crew.await_run(run) == "canceled"


def began(lake: Path, run: int) -> float:
    """Return the time at which the code of the latest attempt began."""
    return marks_of(lake, run)[-1].first


class Commands:
    """Commands of `manage.py`, each in a process that falls at the moments of a folder."""

    def __init__(self, crew: Crew, folder: Path) -> None:
        self._process = subprocess.Popen(
            [machine.python(), "-m", "tests.faults.crash_points", str(folder)],
            env={**crew.env(), "SLICEWISE_USER": ADMIN},
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> int:
        """Return the exit code of a command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(words), file=self._process.stdin, flush=True)
        while True:  # between the lines that the command prints
            line = self._process.stdout.readline()
            assert line, "no answer"
            if line.strip().lstrip("-").isdigit():
                return int(line)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


@pytest.fixture
def commands(crew: Crew, folder: Path) -> Iterator[Commands]:
    open_commands = Commands(crew, folder)
    yield open_commands
    open_commands.close()


def test_a_person_s_command_killed_at_its_commit_is_done_whole_or_not_at_all(
    crew: Crew, api: Client, folder: Path, lake: Path, commands: Commands, recovered: Recovered
) -> None:
    def newest() -> int:
        return int(crew.value("SELECT coalesce(max(id), 0) FROM assets_app_run"))

    def killed(moment: str, *words: str) -> None:
        arm(folder, ANY, moment, KILL)
        assert commands.run(*words) == -KILL, moment
        (folder / f"{ANY}.fell").unlink()

    slow = '{"seconds": 600}'
    make = ("assets", "materialize", "steady", "--partition", "2024-01-18", "--params", slow)
    newest_before = newest()
    killed("before:made", *make)
    assert newest() == newest_before
    crew.assert_sound()

    killed("after:made", *make)
    run, began_at = newest(), time.monotonic()
    assert run > newest_before
    crew.await_run(run, "running")
    recovered("kill -9 of the command line after making a run", time.monotonic() - began_at)

    killed("before:running-canceling", "runs", "cancel", str(run))
    assert crew.run_state(run) == "running"
    killed("after:running-canceling", "runs", "cancel", str(run))
    began_at = time.monotonic()
    assert crew.await_run(run) == "canceled"
    recovered("kill -9 of the command line after canceling a run", time.monotonic() - began_at)

    killed("before:canceled-queued", "runs", "retry", str(run))
    assert crew.run_state(run) == "canceled"
    crew.halt("worker-scheduled")
    crew.rows("UPDATE assets_app_gateway SET draining = true WHERE queue = 'scheduled'")
    killed("after:canceled-queued", "runs", "retry", str(run))
    assert crew.run_state(run) == "queued"
    killed("before:queued-canceled", "runs", "cancel", str(run))
    assert crew.run_state(run) == "queued"
    killed("after:queued-canceled", "runs", "cancel", str(run))
    assert crew.run_state(run) == "canceled"
    crew.assert_sound()


_ENDED_AT = "SELECT extract(epoch FROM ended_at) FROM assets_app_run WHERE id = %s"
_ERROR = "SELECT error, error_kind FROM assets_app_run WHERE id = %s"
