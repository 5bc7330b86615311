"""Facts about the best known peer, seen in a running peer, and absent from Slicewise.

test_creation.py shows that creating 32,000 runs ends "complete with 0", and the effect of a kill in
the middle; test_overlaps.py has 8 creations at once, test_unready.py 500 unready roll-ups.
"""

import time
from datetime import datetime
from pathlib import Path

import pytest

from slicewise_server.stack.demo.client import Client
from tests.e2e.conftest import ended
from tests.faults.conftest import ROUNDS, Recovered
from tests.faults.marks import marks_of
from tests.faults.runs import running_runs
from tests.faults.stack_processes import Crew, until

pytestmark = pytest.mark.fault(14)

# Of 600 s that they would take. One round is run on any machine, beside other tests.
_STOPPED_SECONDS = 10.0 if ROUNDS > 1 else 60.0


def test_the_day_on_which_clocks_go_back_has_25_hours_with_25_keys(crew: Crew, api: Client) -> None:
    """The peer's 25 hourly partitions of that day have 24 keys: one is made twice, one never."""
    ended_backfill = ended(
        api,
        "/backfills/{id}/".format(
            **api.post(
                "/backfills/", asset="berlin", start="2024-10-27", end="2024-10-27", existing="all"
            )
        ),
    )
    assert ended_backfill["counts"]["total"] == ended_backfill["counts"]["succeeded"] == 25
    listed = list(api.every(f"/backfills/{ended_backfill['id']}/partitions/"))
    assert len({partition["key"] for partition in listed}) == 25
    starts = [datetime.fromisoformat(partition["start"]) for partition in listed]
    assert len(set(starts)) == 25
    assert (max(starts) - min(starts)).total_seconds() == 24 * 3600
    versions = crew.materializations("berlin")
    assert {partition["key"] for partition in listed} == set(versions)


@pytest.mark.parametrize("written", ["2024-07-01T00:00+09:00", "2024-07-01T00:00:00+09:00"])
def test_an_offset_in_a_bound_is_honoured(written: str, api: Client) -> None:
    """The peer drops an explicit +09:00: the peer's backfill begins nine hours late."""
    plan = api.post("/backfills/preview/", asset="hours", start=written, end="2024-07-01T00:00Z")
    assert datetime.fromisoformat(plan["start_date"]) == datetime.fromisoformat(written)
    assert plan["total"] == 10


def test_cancel_stops_what_runs_and_shows_it_as_canceled(
    crew: Crew, api: Client, lake: Path, recovered: Recovered
) -> None:
    """The peer lets running runs go on, and shows the runs as failed."""
    backfill = api.post(
        "/backfills/", asset="patient", start="2007-01-01", end="2007-01-20",
        params={"seconds": 600.0}, max_active_runs=2, existing="all",
    )  # fmt: skip
    address = f"/backfills/{backfill['id']}/"
    running = until(lambda: running_runs(crew, lake, backfill["group"], 2), "two of it are at work")
    api.post(f"{address}cancel/")
    asked_since, canceled_at = time.monotonic(), time.time()
    ended_backfill = ended(api, address)
    recovered("a canceled backfill: nothing of it goes on", time.monotonic() - asked_since)
    assert ended_backfill["state"] == "canceled"
    counts = ended_backfill["counts"]
    assert (counts["canceled"], counts["failed"], counts["succeeded"]) == (20, 0, 0)
    ended_at = time.time()
    for run in running:
        (mark,) = marks_of(lake, run)
        assert not mark.is_done
        assert mark.last < min(ended_at, canceled_at + _STOPPED_SECONDS)
        assert crew.run_state(run) == "canceled"
    states = {run["state"] for run in api.every(f"/runs/?group={backfill['group']}")}
    assert states == {"canceled"}
