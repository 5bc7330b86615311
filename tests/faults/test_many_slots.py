"""Row 16: a worker with twenty slots executes twenty runs at once, each longer than its lease."""

from pathlib import Path

import pytest

from slicewise_server.stack.demo.client import Client
from tests.faults.conftest import Recovered
from tests.faults.marks import await_attempts, marks_of
from tests.faults.runs import steady_texts
from tests.faults.stack_processes import SHORT_LEASE, Crew

pytestmark = pytest.mark.fault(16)

SLOTS = 20
_DAYS = [f"2024-01-{number + 1:02}" for number in range(SLOTS)]
_RUN_SECONDS = int(SHORT_LEASE["LEASE_SECONDS"]) + 3
_MAKERS = """
SELECT run_id, number, outcome, gateway.process_id FROM assets_app_runattempt AS attempt
JOIN assets_app_gateway AS gateway ON gateway.id = attempt.gateway_id WHERE run_id = ANY(%s)
"""
_LAST_ENDED_AT = "SELECT max(extract(epoch FROM ended_at)) FROM assets_app_run WHERE id = ANY(%s)"


@pytest.mark.rounds
def test_twenty_runs_of_one_worker_end_well_and_none_is_taken_for_lost(
    crew: Crew, api: Client, lake: Path, recovered: Recovered, fault_round: int
) -> None:
    text = f"one of {SLOTS}, round {fault_round}"
    crew.halt("worker-scheduled")
    worker = crew.hire_gateway("wide", env={**SHORT_LEASE, "SLICEWISE_SLOTS": str(SLOTS)})
    group = api.post(
        "/assets/steady/materialize/",
        selection=f"{_DAYS[0]}..{_DAYS[-1]}",
        params={"said": text, "seconds": _RUN_SECONDS},
    )
    runs: list[int] = group["runs"]
    assert len(runs) == SLOTS
    for run in runs:
        await_attempts(lake, run, 1)
    for run in runs:
        assert crew.await_run(run) == "succeeded", crew.attempts(run)

    marks = [mark for run in runs for mark in marks_of(lake, run)]
    assert len(marks) == SLOTS
    assert max(mark.first for mark in marks) < min(mark.last for mark in marks), "all at once"
    assert sorted(crew.rows(_MAKERS, runs)) == [(run, 1, "succeeded", worker) for run in runs]
    assert {day: steady_texts(lake, day) for day in _DAYS} == {day: [text] for day in _DAYS}
    ended_at = float(crew.value(_LAST_ENDED_AT, runs))
    last = max(mark.last for mark in marks)
    recovered(f"{SLOTS} runs of one worker: published, once their code has ended", ended_at - last)
    crew.assert_sound()
