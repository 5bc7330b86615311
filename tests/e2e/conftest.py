"""Fixtures and helpers of end-to-end tests: the whole stack, used through its pages and API."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import ADMIN, Stack

# They end a hang, and are no claim: what is waited for is there much earlier.
_PATIENCE_SECONDS = 240.0
# In one statement: between two looks a run may end that writes to the outbox, or an entry may be
# evaluated that begins a run, and each look would find nothing.
_LEFT = """
SELECT (SELECT count(*) FROM assets_app_run WHERE ended_at IS NULL)
     + (SELECT count(*) FROM assets_app_outbox)
"""
ENDED = {"succeeded", "failed", "partially_failed", "canceled", "skipped"}


@pytest.fixture(scope="session")
def api(stack: Stack) -> Client:
    """Return a client of the API that is signed in as the administrator."""
    return Client(stack.web_url, ADMIN, stack.admin_password)


@pytest.fixture
def database(stack: Stack) -> Iterator[psycopg.Connection]:
    """Connect to the database behind the pages."""
    with psycopg.connect(stack.environment()["DATABASE_URL"], autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def lake(stack: Stack) -> Path:
    """Return the folder of the assets' data."""
    return stack.data / "lake"


def eventually(
    look: Callable[[], Any], *, seconds: float = _PATIENCE_SECONDS, every: float = 0.2
) -> Any:
    """Return the result of `look` once the result is true; fail after the seconds."""
    deadline = time.monotonic() + seconds
    while not (answer := look()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(every)
    return answer


def ended(api: Client, address: str, *, seconds: float = _PATIENCE_SECONDS) -> dict[str, Any]:
    """Return the backfill or run at this address of the API, once the backfill or run has ended."""

    def look() -> dict[str, Any] | None:
        body: dict[str, Any] = api.get(address)
        return body if body["state"] in ENDED else None

    ended_body: dict[str, Any] = eventually(look, seconds=seconds)
    return ended_body


def settle(database: psycopg.Connection) -> None:
    """Wait until nothing is left to evaluate or to run."""
    eventually(lambda: database.execute(_LEFT).fetchone() == (0,))


def run_of(api: Client, asset: str, **body: Any) -> str:
    """Request a materialization, and return the address of its only run."""
    answer = api.post(f"/assets/{asset}/materialize/", **body)
    (number,) = answer["runs"]
    return f"/runs/{number}/"


def log_of(api: Client, run: str) -> str:
    """Return the whole log of the run."""
    text, address = "", f"{run}log/"
    while True:
        page = api.get(address)
        text += "".join(entry["text"] for entry in page["entries"])
        if not page["entries"]:
            return text
        address = f"{run}log/?cursor={page['cursor']}"
