"""Row 8: kill -9 of the web process and of the expanding worker, in the middle of creating a large
backfill.

The peer's backfills of 32,000 runs end "complete with 0", and block other backfills meanwhile.
"""

import os
import signal
import threading
import time
from datetime import datetime, timedelta

import pytest

from slicewise_server.stack.demo.client import Client
from tests.e2e.conftest import ended
from tests.faults.conftest import Recovered
from tests.faults.stack_processes import Crew, until
from tests.faults.ticking import Metronome

pytestmark = pytest.mark.fault(8)

LARGE, PEERS = 100_000, 32_000
_UNWRITTEN = {"creating", "canceling"}

_STATE_AND_COUNTS = """
SELECT backfill.id, backfill.state, backfill_asset.total, backfill_asset.expanded,
    backfill_asset.waiting + backfill_asset.active
FROM backfills_app_backfill AS backfill
LEFT JOIN backfills_app_backfillasset AS backfill_asset ON backfill_asset.backfill_id = backfill.id
WHERE backfill.description = %s
"""
_ORPHANS = """
SELECT count(*) FROM assets_app_rungroup AS run_group
WHERE run_group.kind = 'backfill' AND NOT EXISTS (
    SELECT FROM backfills_app_backfill AS backfill WHERE backfill.group_id = run_group.id)
"""
_WRITTEN = """
SELECT count(*), count(DISTINCT backfill_partition.key), min(backfill_partition.position),
    max(backfill_partition.position)
FROM backfills_app_backfillpartition AS backfill_partition
JOIN backfills_app_backfillasset AS backfill_asset
    ON backfill_asset.id = backfill_partition.backfill_asset_id
WHERE backfill_asset.backfill_id = %s
"""


def hours(number: int, **more: object) -> dict[str, object]:
    """Request a backfill of so many hours, to begin later: the backfill is written down now."""
    last = datetime(1990, 1, 1) + timedelta(hours=number - 1)
    return {
        "asset": "hours",
        "start": "1990-01-01T00:00Z",
        "end": f"{last:%Y-%m-%dT%H:%MZ}",
        "start_at": "2099-01-01T00:00Z",
        **more,
    }


def written_whole(crew: Crew, marker: str, total: int) -> int:
    """Return the backfill once it is written down; before, its counts never exceed the written
    partitions.
    """

    def look() -> int | None:
        ((pk, state, named, expanded, unmade),) = crew.rows(_STATE_AND_COUNTS, marker)
        assert named == total
        if state not in _UNWRITTEN:
            assert (expanded, unmade) == (total, total), state
            assert state in ("scheduled", "running", "paused"), state
            return int(pk)
        return None

    backfill: int = until(look, "it is written down", every=0.02)
    assert crew.rows(_WRITTEN, backfill) == [(total, total, 0, total - 1)]
    return backfill


_LATENESS = """
SELECT max(extract(epoch FROM run.created_at - partition.window_end))
FROM assets_app_run AS run
JOIN assets_app_runpartition AS run_partition ON run_partition.run_id = run.id
JOIN assets_app_assetpartition AS partition ON partition.id = run_partition.partition_id
JOIN assets_app_asset AS asset ON asset.id = partition.asset_id
WHERE asset.name IN ('tick', 'tock') AND partition.window_end > %s
"""


@pytest.mark.rounds
def test_four_backfills_that_are_written_down_make_no_tick_late(
    crew: Crew, api: Client, recovered: Recovered
) -> None:
    with Metronome(crew, api) as metronome:
        metronome.await_ticks(2)
        began = crew.value("SELECT clock_timestamp()")
        marker = f"four at once {time.time()}"
        backfills = [
            api.post("/backfills/", **hours(250_000, description=f"{marker} {number}"))
            for number in range(4)
        ]
        for number in range(4):
            written_whole(crew, f"{marker} {number}", 250_000)
    metronome.assert_each_second_once()
    lateness = float(crew.value(_LATENESS, began))
    recovered("four backfills written down: the latest tick", lateness)
    for backfill in backfills:
        api.post(f"/backfills/{backfill['id']}/cancel/")
    assert lateness < 1.0


def is_well(api: Client) -> bool:
    """Return whether pages are answered."""
    try:
        return bool(api.get("/health/")["status"] == "ok")
    except OSError:
        return False


@pytest.mark.parametrize(
    "delay", [*(pytest.param(delay, marks=pytest.mark.rounds) for delay in (0.0, 0.05)), 0.2]
)
def test_killed_web_process_leaves_it_whole_or_absent(
    delay: float, crew: Crew, api: Client, recovered: Recovered
) -> None:
    marker = f"web killed {delay} {time.time()}"
    refused: list[Exception] = []

    def ask() -> None:
        try:
            api.post("/backfills/", **hours(LARGE, description=marker))
        except Exception as error:
            refused.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(delay)
    # The server below its supervising process, which starts another one.
    crew.kill("web")
    killed = time.monotonic()
    asking.join()
    until(lambda: is_well(api), "pages are back")
    recovered(f"kill -9 of the web process after {delay} s", time.monotonic() - killed)
    assert crew.value(_ORPHANS) == 0
    if crew.rows(_STATE_AND_COUNTS, marker):
        api.post(f"/backfills/{written_whole(crew, marker, LARGE)}/cancel/")
    else:
        assert refused


@pytest.mark.parametrize(("total", "kills"), [(LARGE, 3), (PEERS, 1)])
def test_killed_worker_that_expands_goes_on_where_it_was(
    total: int, kills: int, crew: Crew, api: Client, recovered: Recovered
) -> None:
    """The peer's is marked complete with 0 runs, and keeps others from being created."""
    marker = f"worker killed {total} {time.time()}"
    backfill = api.post("/backfills/", **hours(total, description=marker))
    for number in range(kills):
        time.sleep(0.15 * number)
        os.kill(crew.pid("worker-bulk"), signal.SIGKILL)
        killed = time.monotonic()
        # Other days for each: those of a canceled backfill may still be in progress.
        first, last = f"2000-01-{2 * number + 1:02}", f"2000-01-{2 * number + 2:02}"
        small = api.post("/backfills/", asset="days", start=first, end=last)
        assert small["counts"]["total"] == 2
        api.post(f"/backfills/{small['id']}/cancel/")
    assert written_whole(crew, marker, total) == backfill["id"]
    recovered(f"kill -9 of the worker that writes {total:,} down", time.monotonic() - killed)
    api.post(f"/backfills/{backfill['id']}/cancel/")
    ended_backfill = ended(api, f"/backfills/{backfill['id']}/")
    assert ended_backfill["state"] == "canceled"
    assert ended_backfill["counts"]["canceled"] == total
