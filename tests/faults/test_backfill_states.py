"""Backfills whose workers are killed while a backfill runs, is canceled or is paused: its state is
true, then and afterwards.

Backfills that are being created are in test_creation.py.
"""

import time
from pathlib import Path
from typing import Any

import pytest

from slicewise_server.stack.demo.client import Client
from tests.e2e.conftest import ended
from tests.faults.conftest import Recovered
from tests.faults.marks import assert_never_twice_at_once, let_end, marks_of
from tests.faults.runs import running_runs
from tests.faults.stack_processes import Crew, until
from tests.processes import is_alive

pytestmark = pytest.mark.fault(8)

_COUNTED = """
SELECT sum(backfill_asset.waiting + backfill_asset.active), sum(backfill_asset.active),
    sum(backfill_asset.succeeded),
    sum(backfill_asset.failed), sum(backfill_asset.canceled), sum(backfill_asset.expanded)
FROM backfills_app_backfillasset AS backfill_asset WHERE backfill_asset.backfill_id = %s
"""
_BY_STATE = """
SELECT backfill_partition.state, count(*) FROM backfills_app_backfillpartition AS backfill_partition
JOIN backfills_app_backfillasset AS backfill_asset
    ON backfill_asset.id = backfill_partition.backfill_asset_id
WHERE backfill_asset.backfill_id = %s GROUP BY 1
"""
_RUNS = "SELECT id, state FROM assets_app_run WHERE group_id = %s"


def create_backfill(api: Client, year: int, *, may_end: str, last: str = "01-06") -> dict[str, Any]:
    """Create a backfill of the first days of a year, whose code ends once a file exists."""
    backfill: dict[str, Any] = api.post(
        "/backfills/", asset="patient", start=f"{year}-01-01", end=f"{year}-{last}",
        params={"seconds": 0.2, "until": may_end}, max_active_runs=3, existing="all",
    )  # fmt: skip
    return backfill


def three_at_work(
    crew: Crew, api: Client, lake: Path, year: int, may_end: str
) -> tuple[dict[str, Any], list[int]]:
    """Create such a backfill, and return its runs whose code has begun."""
    backfill = create_backfill(api, year, may_end=may_end)
    runs: list[int] = until(
        lambda: running_runs(crew, lake, backfill["group"], 3), "three of it are at work"
    )
    return backfill, runs


def assert_true(crew: Crew, backfill: dict[str, Any]) -> dict[str, int]:
    """Require that the counts agree with the partitions, and the partitions with the runs."""
    states: dict[str, int] = dict(crew.rows(_BY_STATE, backfill["id"]))
    ((unmade, active, succeeded, failed, canceled, expanded),) = crew.rows(_COUNTED, backfill["id"])
    assert states.get("waiting", 0) + states.get("active", 0) == unmade
    assert [states.get(name, 0) for name in ("active", "succeeded", "failed", "canceled")] == [
        active, succeeded, failed, canceled,
    ]  # fmt: skip
    assert sum(states.values()) == expanded
    unended = [
        state for _, state in crew.rows(_RUNS, backfill["group"])
        if state not in ("succeeded", "failed", "canceled", "skipped")
    ]  # fmt: skip
    assert len(unended) == active
    return states


def kill_all(crew: Crew) -> None:
    """Kill the worker that moves backfills on, and the worker that makes the runs."""
    crew.kill("worker-bulk")
    crew.kill("worker-backfill")


def test_killed_while_running_each_partition_is_made_once(
    crew: Crew, api: Client, lake: Path, recovered: Recovered, fault_round: int
) -> None:
    may_end = f"running backfill {fault_round}"
    backfill, lost = three_at_work(crew, api, lake, 2010 + fault_round, may_end)
    kill_all(crew)
    killed = time.monotonic()
    let_end(lake, may_end)
    ended_backfill = ended(api, f"/backfills/{backfill['id']}/")
    recovered("kill -9 of a backfill's workers while it runs", time.monotonic() - killed)
    assert (ended_backfill["state"], ended_backfill["counts"]["succeeded"]) == ("succeeded", 6)
    assert_true(crew, backfill)
    for run in lost:
        assert_never_twice_at_once(marks_of(lake, run))
    versions = crew.materializations("patient")
    year = str(2010 + fault_round)
    assert {versions[key] for key in versions if key.startswith(year)} == {(1, 1)}


@pytest.mark.rounds
def test_killed_while_canceling_it_is_canceled_only_when_nothing_runs(
    crew: Crew, api: Client, lake: Path, recovered: Recovered, fault_round: int
) -> None:
    backfill, running = three_at_work(crew, api, lake, 2015 + fault_round, "never")
    address = f"/backfills/{backfill['id']}/"
    pids = [mark.pid for run in running for mark in marks_of(lake, run)]
    worker = crew.pid("worker-backfill")
    crew.freeze(worker)  # so that it cannot end them before it is killed
    api.post(f"{address}cancel/")
    assert api.get(address)["state"] == "canceling"
    # By the request itself, or by the bulk worker where that comes first.
    until(
        lambda: dict(crew.rows(_BY_STATE, backfill["id"])) == {"active": 3, "canceled": 3},
        "what has not begun is canceled",
    )
    assert_true(crew, backfill)
    kill_all(crew)
    killed = time.monotonic()

    def look() -> bool:
        # The state first: whatever ran then would be seen.
        state = api.get(address)["state"]
        at_work_still = [pid for pid in pids if is_alive(pid)]
        assert state == "canceling" or not at_work_still
        return bool(state == "canceled")

    until(look, "it is canceled")
    recovered("kill -9 of a backfill's workers while it is canceled", time.monotonic() - killed)
    assert assert_true(crew, backfill) == {"canceled": 6}
    assert {state for _, state in crew.rows(_RUNS, backfill["group"])} == {"canceled"}


@pytest.mark.rounds
def test_killed_while_paused_it_stays_paused_and_resumes(
    crew: Crew, api: Client, lake: Path, recovered: Recovered, fault_round: int
) -> None:
    may_end = f"paused backfill {fault_round}"
    backfill, _ = three_at_work(crew, api, lake, 2020 + fault_round, may_end)
    address = f"/backfills/{backfill['id']}/"
    api.post(f"{address}pause/")
    kill_all(crew)
    let_end(lake, may_end)
    crew.ready()
    # Those that ran are tried again only once it goes on: nothing of a paused one starts.
    attempts = (
        "SELECT count(*) FROM assets_app_runattempt AS one JOIN assets_app_run AS run"
        " ON run.id = one.run_id WHERE run.group_id = %s"
    )
    attempts_before = crew.value(attempts, backfill["group"])
    until(lambda: not alive(crew, backfill), "what ran is known to be lost")
    assert api.get(address)["state"] == "paused"
    assert_true(crew, backfill)
    assert crew.value(attempts, backfill["group"]) == attempts_before
    api.post(f"{address}resume/")
    resumed = time.monotonic()
    ended_backfill = ended(api, address)
    recovered("kill -9 of a backfill's workers while paused: all of it", time.monotonic() - resumed)
    assert (ended_backfill["state"], ended_backfill["counts"]["succeeded"]) == ("succeeded", 6)
    assert_true(crew, backfill)


def alive(crew: Crew, backfill: dict[str, Any]) -> int:
    """Return how many attempts of the backfill have not ended."""
    count: int = crew.value(
        "SELECT count(*) FROM assets_app_runattempt AS one JOIN assets_app_run AS run"
        " ON run.id = one.run_id WHERE run.group_id = %s AND one.ended_at IS NULL",
        backfill["group"],
    )
    return count
