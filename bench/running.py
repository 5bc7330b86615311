"""A stack for measurements, and requests through the public API."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.process import scrubbed
from slicewise_server.stack.stack import ADMIN, Stack

PROJECT = Path(__file__).resolve().parent.parent
BUNDLES = PROJECT / "bench" / "bundles"
_LOOK_SECONDS = 0.25
_ENDED = {"succeeded", "partially_failed", "failed", "canceled"}


class WorkFailedError(Exception):
    """The requested work did not succeed, so there is nothing to measure."""


@contextmanager
def data_folder() -> Iterator[Path]:
    """Create a folder, removed afterwards, which PostgreSQL's user can reach even for root."""
    folder = Path(tempfile.mkdtemp(prefix="slicewise-bench-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def with_lake(folder: Path) -> dict[str, str]:
    """Return the environment of a stack with the data of assets below ``lake``."""
    lake = str(folder / "lake")
    return {**scrubbed(os.environ), "LAKE": lake, "SLICEWISE_RUNNER_ENV": "LAKE"}


@contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """Return a whole stack with the flights example and one asset more, and data below ``lake``.

    The stack is not started yet.
    """
    definitions = folder / "definitions"
    shutil.copytree(PROJECT / "examples" / "nyc_flights", definitions)
    shutil.copytree(BUNDLES / "flights", definitions, dirs_exist_ok=True)
    whole = Stack(folder, bundles={"nyc_flights": definitions}, env=with_lake(folder))
    try:
        yield whole
    finally:
        whole.stop()


def sign_in(whole: Stack) -> Client:
    """Return a client of the running stack's API."""
    return Client(whole.web_url, ADMIN, whole.admin_password)


def backfill(client: Client, asset: str, start: str, end: str, **options: Any) -> float:
    """Materialize partitions, also materialized ones; return the seconds from request to record.

    Raises WorkFailedError unless every partition was materialized.
    """
    asked = client.post("/backfills/", asset=asset, start=start, end=end, existing="all", **options)
    return wait_for(client, asked)


def wait_for(client: Client, made: dict[str, Any]) -> float:
    """Wait for the end of a backfill; return the seconds from request to record.

    Raises WorkFailedError."""
    while made["state"] not in _ENDED:
        time.sleep(_LOOK_SECONDS)
        made = client.get(f"/backfills/{made['id']}/")
    if made["counts"]["succeeded"] != made["counts"]["total"]:
        raise WorkFailedError(f"{made['name']}: {made['state']}, {made['counts']}")
    return _moment(made["run_end_date"]) - _moment(made["submitted_at"])


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


class Bare:
    """A process that does the same work without Slicewise (see `bench.bare`)."""

    def __init__(self, whole: Stack) -> None:
        environment = whole.environment()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.bare"],
            env={
                **scrubbed(os.environ),
                "SPARK_REMOTE": environment["SPARK_REMOTE"],
                "LAKE": environment["LAKE"],
                "OPENBLAS_NUM_THREADS": "1",
            },
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def do(self, job: str, *, days: list[str] | None = None, at_once: int = 1) -> float:
        """Do a job; return the seconds."""
        assert self._process.stdin is not None
        line = json.dumps({"job": job, "days": days, "at_once": at_once})
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise WorkFailedError("the bare job failed; its reason stands above")
        return line
