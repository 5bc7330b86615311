"""Row 5: Redis stopped for a minute, and emptied.

No process waits for Redis longer than some ten seconds: a dispatched run that has not begun is sent
again after 10 s, a sender waits for 5 s at most, and messages expire after as many. Workers look
for Redis in pauses that grow by two seconds each time. So a stop of 12 s shows everything but the
longest pause of a stop of 60 s, and one round has time for 12 s; `make faults` takes the whole
minute.
"""

import time

import pytest
import redis

from slicewise_server.stack.demo.client import Client
from tests.e2e.conftest import ended
from tests.faults.conftest import ROUNDS, Recovered
from tests.faults.stack_processes import Crew, until
from tests.faults.ticking import Metronome

pytestmark = pytest.mark.fault(5)

_STOPPED_SECONDS = 60.0 if ROUNDS > 1 else 12.0
# The pauses of the workers' search grow to half a minute. `make faults` measures. One round is run
# on any machine, beside other tests.
_FOUND_SECONDS = 35.0 if ROUNDS > 1 else 240.0
_ANSWERED_SECONDS = 5.0 if ROUNDS > 1 else 60.0


def test_runs_queued_before_and_while_redis_was_stopped_still_run(
    crew: Crew, api: Client, recovered: Recovered, fault_round: int
) -> None:
    month = f"2001-{fault_round:02}"
    before = api.post("/backfills/", asset="patient", start=f"{month}-01", end=f"{month}-06")
    with Metronome(crew, api) as metronome:
        metronome.await_ticks(1)
        crew.halt("redis")
        stopped = time.monotonic()
        accepted_runs = [accepted(api, f"{month}-{day:02}") for day in range(11, 14)]
        time.sleep(max(0.0, stopped + _STOPPED_SECONDS - time.monotonic()))
        assert {crew.run_state(run) for run in accepted_runs} <= {"queued", "dispatched"}
        crew.launch("redis")
        back = time.monotonic()
        metronome.await_ticks(1, seconds=_FOUND_SECONDS)
        recovered("Redis stopped", time.monotonic() - back)
        assert {crew.await_run(run) for run in accepted_runs} == {"succeeded"}
    metronome.assert_each_second_once()
    ended_backfill = ended(api, f"/backfills/{before['id']}/")
    assert (ended_backfill["state"], ended_backfill["counts"]["succeeded"]) == ("succeeded", 6)


def accepted(api: Client, selection: str) -> int:
    """Request a run while there is no broker: the request is accepted, without a long wait."""
    began = time.monotonic()
    group = api.post("/assets/patient/materialize/", selection=selection, params={"seconds": 0.1})
    assert time.monotonic() - began < _ANSWERED_SECONDS
    (run,) = group["runs"]
    return int(run)


def test_queued_runs_still_run_when_redis_is_emptied(
    crew: Crew, api: Client, recovered: Recovered
) -> None:
    group = api.post(
        "/assets/patient/materialize/",
        selection="2001-12-01..2001-12-12",
        params={"seconds": 0.2},
    )
    broker = redis.Redis.from_url(crew.stack.environment()["REDIS_URL"])
    until(lambda: crew.run_state(group["runs"][0]) != "queued", "it was sent", every=0.01)
    for _ in range(10):
        broker.flushall()
        time.sleep(0.05)
    emptied = time.monotonic()
    assert {crew.await_run(run) for run in group["runs"]} == {"succeeded"}
    recovered("Redis emptied", time.monotonic() - emptied)
