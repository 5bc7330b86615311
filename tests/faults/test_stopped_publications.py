"""Row 3, for every storage and write mode: a worker that is stopped before, between and after the
exchanges of a publication, and goes on after its successor has finished the publication, or while
its successor is stopped at the same publication.
"""

import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from slicewise_server.stack.demo.client import Client
from tests.faults.conftest import ROUNDS, Recovered
from tests.faults.crash_points import arm, has_fallen, let_go
from tests.faults.runs import request_run
from tests.faults.stack_processes import SHORT_LEASE, Crew, until
from tests.faults.stored_data import Kept, kept_assets
from tests.processes import is_alive

pytestmark = pytest.mark.fault(3)

MOMENTS = ("before:exchange-1", "before:exchange-2", "after:exchange-2")
# Where the successor waits while the late worker goes on. The successor does not exchange what the
# late worker has put in place.
SUCCESSOR_MOMENTS = {
    "before:exchange-1": "before:exchange-1",
    "before:exchange-2": "before:exchange-1",
    "after:exchange-2": "before:publishing-succeeded",
}
_ENDED_AT = "SELECT extract(epoch FROM ended_at) FROM assets_app_run WHERE id = %s"


@dataclass(frozen=True)
class Case:
    """A run of two days whose worker is stopped at a moment."""

    asset: str
    mode: str
    moment: str

    days = ("2024-01-01", "2024-01-02")
    # Made anew by another run when the worker goes on.
    newer_day = days[1]

    def expected(self, day: str, *runs: str) -> list[str]:
        """Return the texts that a reader finds after these runs."""
        runs = runs if day == self.newer_day else tuple(run for run in runs if run != "newer")
        return sorted(runs) if self.mode == "append" else [runs[-1]]


def cases(store: Kept, fault_round: int) -> list[Case]:
    """Return each mode at each moment; in `make test` one mode.

    Each case has an asset of its own, since a publication locks its asset against other
    publications.
    """
    return [
        Case(f"kept_{store.kind}_{mode}_{fault_round}_{number}", mode, moment)
        for mode in (store.modes if ROUNDS > 1 else ("append",))
        for number, moment in enumerate(MOMENTS)
    ]


@pytest.fixture(
    params=["file", *(pytest.param(kind, marks=pytest.mark.rounds) for kind in ("s3", "postgres"))]
)
def store(crew: Crew, request: pytest.FixtureRequest) -> Iterator[Kept]:
    with kept_assets(crew, request.param) as open_store:
        yield open_store


def make(crew: Crew, api: Client, days: dict[str, tuple[str, ...]], text: str) -> None:
    """Have a run of each asset make some days, and wait until the runs have ended."""
    runs = [
        request_run(api, name, ",".join(asset_days), said=text) for name, asset_days in days.items()
    ]
    for run in runs:
        assert crew.await_run(run) == "succeeded", crew.attempts(run)


def test_a_late_worker_changes_nothing_of_what_its_successor_has_published(
    crew: Crew,
    api: Client,
    store: Kept,
    tmp_path: Path,
    fault_round: int,
    recovered: Recovered,
) -> None:
    tried = cases(store, fault_round)
    store.declare({case.asset: case.mode for case in tried})
    folder = tmp_path / "moments"
    folder.mkdir()
    crew.halt("worker-scheduled")
    crew.hire_frail("late", folder, "scheduled", "-c", str(len(tried)), env=SHORT_LEASE)
    late = crew.await_gateway("late")
    make(crew, api, {case.asset: case.days for case in tried}, "seed")

    runs = {}
    for case in tried:
        run = request_run(api, case.asset, ",".join(case.days), said="older")
        arm(folder, run, case.moment, None)
        runs[run] = case
    for run, case in runs.items():
        until(lambda run=run: has_fallen(folder, run), f"run {run} is held {case.moment}")  # type: ignore[misc]
    crew.freeze(late)
    stopped_at = float(crew.value("SELECT extract(epoch FROM clock_timestamp())"))
    crew.launch("worker-scheduled")
    for run, case in runs.items():
        assert crew.await_run(run) == "succeeded", (case, crew.attempts(run))
        for day in case.days:
            assert store.texts(case.asset, day) == case.expected(day, "seed", "older"), case
    ended_at = max(float(crew.value(_ENDED_AT, run)) for run in runs)
    recovered(f"SIGSTOP of a worker at publications ({store.kind})", ended_at - stopped_at)
    make(crew, api, {case.asset: (case.newer_day,) for case in tried}, "newer")

    for run in runs:
        let_go(folder, run)
    crew.thaw(late)
    end_in_good_order(crew, late)

    for run, case in runs.items():
        for day in case.days:
            texts = store.texts(case.asset, day)
            assert texts == case.expected(day, "seed", "older", "newer"), (case, day)
            count = 3 if day == case.newer_day else 2
            assert crew.materializations(case.asset)[day] == (count, count), (case, day)
        assert [outcome for _, outcome, _ in crew.attempts(run)] == ["succeeded"], case
    crew.assert_sound()


@pytest.mark.rounds
def test_a_late_worker_goes_on_while_its_successor_is_at_the_same_publication(
    crew: Crew, api: Client, store: Kept, tmp_path: Path, fault_round: int
) -> None:
    tried = [replace(case, asset=f"{case.asset}_beside") for case in cases(store, fault_round)]
    store.declare({case.asset: case.mode for case in tried})
    of_late, of_successor = tmp_path / "late", tmp_path / "successor"
    for folder in (of_late, of_successor):
        folder.mkdir()
    crew.halt("worker-scheduled")
    slots = ("scheduled", "-c", str(len(tried)))
    crew.hire_frail("late", of_late, *slots, env=SHORT_LEASE)
    late = crew.await_gateway("late")
    make(crew, api, {case.asset: case.days for case in tried}, "seed")

    runs = {}
    for case in tried:
        run = request_run(api, case.asset, ",".join(case.days), said="older")
        arm(of_late, run, case.moment, None)
        arm(of_successor, run, SUCCESSOR_MOMENTS[case.moment], None)
        runs[run] = case
    await_held(of_late, runs)
    crew.freeze(late)
    crew.hire_frail("successor", of_successor, *slots)
    await_held(of_successor, runs)

    for run in runs:
        let_go(of_late, run)
    crew.thaw(late)
    end_in_good_order(crew, late)
    for run in runs:
        let_go(of_successor, run)

    for run, case in runs.items():
        assert crew.await_run(run) == "succeeded", (case, crew.attempts(run))
        for day in case.days:
            assert store.texts(case.asset, day) == case.expected(day, "seed", "older"), (case, day)
            assert crew.materializations(case.asset)[day] == (2, 2), (case, day)
        assert [outcome for _, outcome, _ in crew.attempts(run)] == ["succeeded"], case
    crew.assert_sound()


def await_held(folder: Path, runs: Mapping[int, Case]) -> None:
    """Wait until each of the runs is held at its moment."""
    for run, case in runs.items():
        until(lambda run=run: has_fallen(folder, run), f"run {run} is held: {case}")  # type: ignore[misc]


def end_in_good_order(crew: Crew, worker: int) -> None:
    """End a worker once all its work is over."""
    os.kill(worker, signal.SIGTERM)
    until(lambda: not is_alive(worker), "the late worker has done what it wanted to do")
