"""Runs on real workers: killed, canceled, failing, silent and curious."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import psycopg

from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import Stack
from tests.e2e.conftest import ended, eventually, log_of, run_of
from tests.spark_jobs import Spark


def pulses(lake: Path) -> dict[tuple[int, int], list[float]]:
    """Return the instants at which the code of each attempt ran, by run and attempt."""
    pulses_by_attempt = {}
    for file in (lake / "trials" / "pulse").glob("*"):
        run, attempt = file.name.split("-")
        pulses_by_attempt[int(run), int(attempt)] = [
            float(line) for line in file.read_text().splitlines()
        ]
    return pulses_by_attempt


def test_a_killed_worker_costs_nothing_but_time(
    stack: Stack, api: Client, database: psycopg.Connection, lake: Path
) -> None:
    backfill = api.post("/backfills/", asset="slow", start="2024-01-01", end="2024-01-12")
    address = f"/backfills/{backfill['id']}/"
    eventually(lambda: api.get(address)["counts"]["succeeded"] >= 2)
    worker = stack.pid_of("worker-backfill")
    eventually(
        lambda: (
            {run["id"] for run in api.every(f"/runs/?group={backfill['group']}&state=running")}
            & {run for run, _ in pulses(lake)}
        )
    )
    os.kill(worker, signal.SIGKILL)
    killed_at = time.time()

    ended_backfill = ended(api, address)

    assert (ended_backfill["state"], ended_backfill["counts"]["succeeded"]) == ("succeeded", 12)
    versions = database.execute(
        "SELECT s.key, s.version, count(m.id) FROM assets_app_assetpartition s"
        " JOIN assets_app_asset a ON a.id = s.asset_id AND a.name = 'slow'"
        " JOIN assets_app_materialization m ON m.partition_id = s.id"
        " WHERE s.key < '2024-02' GROUP BY 1, 2 ORDER BY 1"
    ).fetchall()
    assert versions == [(f"2024-01-{day:02}", 1, 1) for day in range(1, 13)]
    january = (lake / "trials" / "slow").glob("partition=2024-01-*/*.parquet")
    files = sorted(path.parent.name for path in january)
    assert files == [f"partition=2024-01-{day:02}" for day in range(1, 13)]
    beats = pulses(lake)
    attempts = database.execute(
        "SELECT attempt.run_id, attempt.number FROM assets_app_runattempt AS attempt"
        " JOIN assets_app_run AS run ON run.id = attempt.run_id"
        " WHERE run.group_id = %s AND attempt.outcome = 'lost'",
        [backfill["group"]],
    ).fetchall()
    # Those that ran at the look may have ended before the kill. Then others of the backfill ran.
    lost = [attempt for attempt in attempts if attempt in beats]
    assert lost, "the kill met no run"
    for run, number in lost:
        # The code of the killed attempt has stopped with its worker, long before the next one
        # began, which is more than LEASE_SECONDS, 15, later.
        assert beats[run, number][-1] < killed_at + 5
        assert beats[run, number][-1] < beats[run, number + 1][0]


def test_canceling_a_run_stops_its_work_on_spark(api: Client, stack: Stack) -> None:
    run = run_of(api, "endless")
    eventually(lambda: "counting" in log_of(api, run))
    eventually(lambda: active_spark_jobs(stack))
    api.post(f"{run}cancel/")
    assert ended(api, run)["state"] == "canceled"
    # Spark tells its pages of the end of a job a moment after it has ended.
    eventually(lambda: not active_spark_jobs(stack))
    assert api.get("/assets/endless/")["counts"] == {"canceled": 1}


def active_spark_jobs(stack: Stack) -> list[Any]:
    """Return the running jobs, by Spark's own account."""
    ui = Spark(stack.environment()["SPARK_UI_URL"])
    return ui.jobs("running")


def test_a_failure_says_what_and_where(api: Client) -> None:
    run = run_of(api, "broken", selection="2024-01-05", params={"reason": "snow"})
    ended_run = ended(api, run)
    assert (ended_run["state"], ended_run["error_kind"]) == ("failed", "code")
    assert ended_run["error"] == "ValueError: the airport is closed: snow"
    (attempt,) = ended_run["attempts"]
    assert 'raise ValueError(f"the airport is closed' in attempt["traceback"]
    assert "behaviour.py" in attempt["traceback"]
    assert "looking out of the window" in log_of(api, run)
    (partition,) = api.every("/assets/broken/partitions/?selection=2024-01-05")
    assert partition["state"] == "failed"


def test_a_function_that_ends_its_process_fails_its_own_run_only(api: Client) -> None:
    ended_run = ended(api, run_of(api, "leaves"))
    assert ended_run["state"] == "failed"
    assert "status 3" in ended_run["error"]


def test_a_function_that_takes_too_long_is_stopped(api: Client) -> None:
    ended_run = ended(api, run_of(api, "dawdles"))
    assert (ended_run["state"], ended_run["error_kind"]) == ("failed", "code")
    assert "timeout of 1 s" in ended_run["error"]


def test_a_runner_sees_no_secret_of_the_server(api: Client, stack: Stack) -> None:
    run = run_of(api, "snoops")
    assert ended(api, run)["state"] == "succeeded"
    log = log_of(api, run)
    assert "own environment" in log
    assert "LAKE" in log
    environment = stack.environment()
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "SPARK_REMOTE"):
        assert name not in log
        assert environment[name] not in log
    assert stack.admin_password not in log
    for server in ("DATABASE_URL", "REDIS_URL"):
        password = environment[server].partition("@")[0].rpartition(":")[2]
        assert password not in log
    descriptors = [line for line in log.splitlines() if line.startswith("descriptor")]
    assert all(
        "socket" in line or "pipe" in line or "/dev/null" in line or "/proc/" in line
        for line in descriptors
    ), descriptors


def test_a_hook_is_called_once_after_a_run_and_changes_nothing(stack: Stack, api: Client) -> None:
    failing = run_of(api, "told", selection="2024-01-02")
    fine = run_of(api, "told", selection="2024-01-03")
    assert [ended(api, run)["state"] for run in (failing, fine)] == ["failed", "succeeded"]

    called = "told of 2024-01-02, attempt 2: ValueError: the airport is closed\n"
    eventually(lambda: called in log_of(api, failing))
    eventually(lambda: "[on_success failed: ConnectionError: nobody" in log_of(api, fine))

    assert log_of(api, failing) == f"trying\ntrying\n[on_failure: tell is called]\n{called}"
    assert "told of 2024-01-03, attempt 1: None\n" in log_of(api, fine)
    assert 'raise ConnectionError("nobody takes mail")' in log_of(api, fine)
    assert api.get(fine)["state"] == "succeeded"
