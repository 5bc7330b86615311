"""Row 17: a backfill with 50,000 queued runs is canceled while other work is dispatched.

The figures are for a machine without other work. `python -m bench.dispatching` measures a look at
the queue by itself.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from slicewise_server.stack.demo.client import Client
from tests.faults.conftest import Recovered
from tests.faults.stack_processes import Crew, until
from tests.threads import repeated

pytestmark = pytest.mark.fault(17)

QUEUED = 50_000
_AT_MOST_SECONDS = 1.0
_PATHS = ("/runs/", "/backfills/", "/assets/days/")
# No request may ask for so many at a time: what is queued ahead is thrice that, at most 3,000 runs.
_WIDEN = "UPDATE backfills_app_backfill SET max_active_runs = %s WHERE id = %s"
_UNFINISHED = "SELECT count(*) FROM assets_app_run WHERE group_id = %s AND ended_at IS NULL"
_WAITED = """
SELECT extract(epoch FROM dispatched_at - queued_at) FROM assets_app_run
WHERE id = %s AND dispatched_at IS NOT NULL
"""


@dataclass
class Others:
    """People who make and look at other things all the time."""

    crew: Crew
    api: Client
    dispatched: list[float] = field(default_factory=list)
    # Seconds of each answer, when it was asked for, and what for.
    answered: list[tuple[float, float, str]] = field(default_factory=list)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Send requests within the block."""
        crew = Crew(self.crew.stack)  # another connection for the thread
        try:
            with repeated(partial(self._make, crew), 0.05), repeated(self._look, 0.05):
                yield
        finally:
            crew.close()

    def _make(self, crew: Crew) -> None:
        group = self.post("/assets/days/materialize/", selection="2000-01-01")
        (run,) = group["runs"]
        ((waited,),) = until(lambda: crew.rows(_WAITED, run), "it is sent", every=0.02)
        self.dispatched.append(float(waited))
        crew.await_run(run)

    def _look(self) -> None:
        for path in _PATHS:
            self._timed(path, partial(self.api.get, path))

    def post(self, path: str, **body: Any) -> Any:
        """Return the answer to a request, and note the seconds."""
        return self._timed(path, lambda: self.api.post(path, **body))

    def _timed(self, path: str, ask: Callable[[], Any]) -> Any:
        began = time.monotonic()
        answer = ask()
        self.answered.append((time.monotonic() - began, began, path))
        return answer


@pytest.mark.rounds
def test_nobody_waits_for_a_second_while_50_000_queued_runs_are_canceled(
    crew: Crew, api: Client, recovered: Recovered
) -> None:
    crew.halt("worker-backfill")
    last = datetime(2000, 1, 1) + timedelta(hours=QUEUED - 1)
    backfill = api.post(
        "/backfills/",
        asset="hours",
        start="2000-01-01T00:00Z",
        end=f"{last:%Y-%m-%dT%H:%MZ}",
        strategy="partition",
        existing="all",
        max_active_runs=1000,
    )
    address = f"/backfills/{backfill['id']}/"
    crew.rows(_WIDEN, QUEUED, backfill["id"])
    until(lambda: api.get(address)["counts"]["active"] == QUEUED, "all of it is queued", every=0.5)
    assert crew.value(_UNFINISHED, backfill["group"]) == QUEUED
    crew.rows("ANALYZE")  # as the server does by itself after a while

    neighbours = Others(crew, api)
    with neighbours.at_work():
        time.sleep(2)
        neighbours.post(f"{address}cancel/")
        asked_at = time.monotonic()
        until(lambda: api.get(address)["state"] == "canceled", "all of it is canceled")
        recovered(f"{QUEUED:,} queued runs canceled", time.monotonic() - asked_at)
        time.sleep(2)
    recovered(f"{QUEUED:,} queued runs canceled: a dispatch of others", max(neighbours.dispatched))
    recovered(f"{QUEUED:,} queued runs canceled: an answer", max(neighbours.answered)[0])
    assert len(neighbours.dispatched) > 2
    assert max(neighbours.dispatched) < _AT_MOST_SECONDS, neighbours.dispatched
    late = [
        f"{path}: {took:.2f} s, {began - asked_at:+.1f} s after the cancel"
        for took, began, path in sorted(neighbours.answered, reverse=True)
        if took >= _AT_MOST_SECONDS
    ]
    assert late == []
    assert crew.value(_UNFINISHED, backfill["group"]) == 0
    crew.assert_sound()
