"""Row 10: 500 runs that can never become ready.

The peer's 500 unready roll-ups block an unrelated roll-up that is ready.
"""

from collections.abc import Iterator
from datetime import date, timedelta

import pytest

from slicewise_server.stack.demo.client import Client
from slicewise_server.stack.stack import ADMIN
from tests.e2e.conftest import ended
from tests.faults.conftest import ROUNDS, Recovered
from tests.faults.stack_processes import Crew, until

pytestmark = pytest.mark.fault(10)

MANY = 500
# `make faults` measures. One round is run on any machine, beside other tests: it shows that nothing
# waits for the many, of which none ever ends.
_AT_MOST_SECONDS = 1.0 if ROUNDS > 1 else 60.0
_TRIES = 3

_UPSTREAM = """
SELECT extract(epoch FROM run.started_at - before.ended_at) FROM assets_app_run AS run
JOIN assets_app_asset AS asset ON asset.id = run.asset_id AND asset.name = 'unrelated',
assets_app_run AS before
WHERE before.id = %s AND run.trigger = 'upstream' AND run.queued_at >= before.ended_at
  AND run.started_at IS NOT NULL
ORDER BY run.id LIMIT 1
"""
_WAITED = """
SELECT extract(epoch FROM started_at - queued_at) FROM assets_app_run
WHERE id = %s AND started_at IS NOT NULL
"""


def ready_starts(crew: Crew, api: Client) -> float:
    """Return the seconds until a ready run starts.

    The machine may be busy with other work for a moment; a real obstacle is there each time.
    """
    for _ in range(_TRIES):
        if (waited := longest_wait(crew, api)) < _AT_MOST_SECONDS:
            break
    assert waited < _AT_MOST_SECONDS
    return waited


def longest_wait(crew: Crew, api: Client) -> float:
    """Return the longest wait in seconds, of a requested asset and of an asset due by it."""
    (run,) = api.post("/assets/source/materialize/")["runs"]
    by_hand = until(lambda: crew.rows(_WAITED, run), "what is ready starts")
    assert crew.await_run(run) == "succeeded"
    due = until(lambda: crew.rows(_UPSTREAM, run), "what is due by it starts")
    return float(max(by_hand[0][0], due[0][0]))


_CANCEL = """
from accounts_app.models import User
from assets_app.execution.queue.control import cancel_group
from assets_app.models import RunGroup
cancel_group(RunGroup.objects.get(pk={group}), user=User.objects.get(username={user!r}))
"""


@pytest.fixture
def crowd(crew: Crew, api: Client) -> Iterator[None]:
    """Create as many runs of an asset that makes one at a time; cancel the runs in the end."""
    group = api.post("/assets/crowded/materialize/", selection="2001-01-01..2002-05-15")
    count = "SELECT count(*) FROM assets_app_run WHERE group_id = %s"
    assert crew.value(count, group["group"]) == MANY
    yield
    crew.stack.manage("shell", "-c", _CANCEL.format(group=group["group"], user=ADMIN))
    until(lambda: running(crew, "crowded") == 0, "they have stopped")


def test_runs_at_the_limit_of_their_asset(
    crew: Crew, api: Client, crowd: None, recovered: Recovered
) -> None:
    until(lambda: running(crew, "crowded") == 1, "the first of them is at work")
    recovered(
        f"{MANY} runs at the limit of their asset: others start after", ready_starts(crew, api)
    )
    assert running(crew, "crowded") == 1


def test_backfills_of_a_gateway_that_is_away(crew: Crew, api: Client, recovered: Recovered) -> None:
    crew.halt("worker-backfill")
    backfill = api.post(
        "/backfills/", asset="patient", start="2005-01-01", end="2006-05-15", max_active_runs=1000
    )
    address = f"/backfills/{backfill['id']}/"
    until(lambda: api.get(address)["counts"]["active"] == MANY, "all of it is queued")
    recovered(f"{MANY} runs of a gateway that is away: others start after", ready_starts(crew, api))
    api.post(f"{address}cancel/")
    # By the request itself, or by the bulk worker where that comes first.
    assert ended(api, address)["state"] == "canceled"


def test_roll_ups_of_which_an_hour_is_there_and_23_are_not(
    crew: Crew, api: Client, recovered: Recovered, fault_round: int
) -> None:
    year = 2009 + 2 * fault_round
    hours = api.post("/assets/hours/materialize/", selection=nights(year))
    (run,) = hours["runs"]
    assert crew.await_run(run) == "succeeded"
    until(lambda: crew.value("SELECT count(*) FROM assets_app_outbox") == 0, "they are evaluated")
    recovered(f"{MANY} roll-ups that are not ready: others start after", ready_starts(crew, api))
    assert crew.materializations("roll_up") == {}


def nights(year: int) -> str:
    """Return one hour of each of so many days."""
    days = (date(year, 1, 1) + timedelta(days=number) for number in range(MANY))
    return ",".join(f"{day}T00:00Z" for day in days)


def running(crew: Crew, asset: str) -> int:
    """Return the number of running runs of an asset."""
    count: int = crew.value(
        "SELECT count(*) FROM assets_app_run AS run"
        " JOIN assets_app_asset AS asset ON asset.id = run.asset_id"
        " WHERE asset.name = %s AND run.state IN ('running', 'canceling')",
        asset,
    )
    return count
