"""Set-up and tear-down on real workers: at success, failure, cancel, timeout, and kills."""

import os
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import Stack
from tests.e2e.conftest import ended, eventually, log_of, run_of

ASSETS = ["guarded", "guarded_left"]
"""An asset with a function of its own, and one of several that a function makes together."""


def request(api: Client, asset: str, **params: Any) -> str:
    selection = {"selection": "2024-01-05"} if asset == "guarded" else {}
    return run_of(api, asset, **selection, params=params)


def traces(lake: Path, run: str, attempt: int = 1) -> list[str]:
    file = lake / "trials" / "around" / f"{run.split('/')[2]}-{attempt}"
    return file.read_text().splitlines() if file.exists() else []


def steps_of(run: dict[str, Any], attempt: int = 0) -> list[str]:
    return [f"{step['step']} {step['state']}" for step in run["attempts"][attempt]["steps"]]


def at_work(api: Client, lake: Path, asset: str) -> str:
    """Return a run whose function waits."""
    run = request(api, asset, work="waits")
    eventually(lambda: "function" in traces(lake, run))
    return run


@pytest.mark.parametrize("asset", ASSETS)
def test_a_run_that_succeeds(api: Client, lake: Path, asset: str) -> None:
    run = request(api, asset, work="ends")
    ended_run = ended(api, run)
    assert (ended_run["state"], ended_run["error"]) == ("succeeded", "")
    assert traces(lake, run) == ["setup", "function", "teardown 4 succeeded"]
    assert steps_of(ended_run) == ["setup succeeded", "function succeeded", "teardown succeeded"]
    steps = ended_run["attempts"][0]["steps"]
    times = [time for step in steps for time in (step["started_at"], step["ended_at"])]
    assert times == sorted(times)
    entries = api.get(f"{run}log/")["entries"]
    texts = {step: "".join(e["text"] for e in entries if e["step"] == step) for step in
             ("setup", "function", "teardown")}  # fmt: skip
    assert "starting the cluster" in texts["setup"]
    assert "at work" in texts["function"]
    assert "stopping the cluster" in texts["teardown"]


@pytest.mark.parametrize("asset", ASSETS)
def test_a_run_that_fails(api: Client, lake: Path, asset: str) -> None:
    run = request(api, asset, work="fails")
    ended_run = ended(api, run)
    assert (ended_run["state"], ended_run["error"]) == ("failed", "ValueError: fog")
    assert traces(lake, run)[-1] == "teardown 4 failed"
    assert steps_of(ended_run) == ["setup succeeded", "function failed", "teardown succeeded"]


def test_a_tear_down_that_fails_is_shown_and_fails_nothing(api: Client) -> None:
    run = request(api, "guarded", work="ends", close="fails")
    ended_run = ended(api, run)
    assert ended_run["state"] == "succeeded"
    step = ended_run["attempts"][0]["steps"][-1]
    assert (step["state"], step["error"]) == ("failed", "OSError: the cluster does not answer")
    assert 'raise OSError("the cluster does not answer")' in log_of(api, run)
    (partition,) = api.every("/assets/guarded/partitions/?selection=2024-01-05")
    assert partition["state"] == "materialized"


@pytest.mark.parametrize("asset", ASSETS)
def test_a_run_that_is_canceled(api: Client, lake: Path, asset: str) -> None:
    run = at_work(api, lake, asset)
    api.post(f"{run}cancel/")
    ended_run = ended(api, run)
    assert ended_run["state"] == "canceled"
    assert traces(lake, run)[-1] == "teardown 4 canceled"
    assert steps_of(ended_run) == ["setup succeeded", "function stopped", "teardown succeeded"]


def test_a_run_that_takes_too_long(api: Client, lake: Path) -> None:
    run = run_of(api, "guarded_dawdler")
    ended_run = ended(api, run)
    assert (ended_run["state"], ended_run["error_kind"]) == ("failed", "code")
    assert "timeout of 20 s" in ended_run["error"]
    assert traces(lake, run)[-1] == "teardown 4 timed_out"


@pytest.mark.parametrize("victim", ["runner", "worker"])
def test_a_process_that_is_killed_is_said_not_to_have_torn_down(
    stack: Stack, api: Client, lake: Path, database: psycopg.Connection, victim: str
) -> None:
    run = at_work(api, lake, "guarded")
    worker = stack.pid_of("worker-scheduled")
    pid = worker if victim == "worker" else runner_of(worker)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: len(traces(lake, run, 2)) == 2)  # the next attempt works
    api.post(f"{run}cancel/")
    ended_run = ended(api, run)
    assert traces(lake, run) == ["setup", "function"]
    assert steps_of(ended_run) == ["setup succeeded", "function stopped", "teardown not_run"]
    first = ended_run["attempts"][0]
    reason = {"runner": "ended by SIGKILL", "worker": "worker"}[victim]
    assert reason in first["steps"][1]["error"]
    assert reason in first["steps"][2]["error"]
    assert traces(lake, run, 2)[-1] == "teardown 4 canceled"


def runner_of(worker: int) -> int:
    """Return the process of the only run of a worker: a child of the worker's warm parent."""
    parents = children_of(worker)
    runners = [child for parent in parents for child in children_of(parent)]
    (runner,) = runners
    return runner


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    texts = [(task / "children").read_text() for task in tasks.iterdir()]
    return [int(child) for text in texts for child in text.split()]
