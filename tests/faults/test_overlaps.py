"""Row 9: 50 clients create overlapping backfills at once.

The peer's 8 clients get 2 active backfills of a kind of which the peer allows one; here two
backfills may share an asset, but never a partition.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from typing import Any

import pytest

from slicewise_server.stack.demo.client import ApiError, Client
from tests.e2e.conftest import ended
from tests.faults.stack_processes import Crew

pytestmark = pytest.mark.fault(9)

CLIENTS, EACH = 50, 6

# Two runs that had one partition at a time: from the queue to the end it is one run's alone.
_AT_ONCE = """
SELECT count(*) FROM assets_app_runpartition AS one
JOIN assets_app_runpartition AS other
    ON other.partition_id = one.partition_id AND other.run_id > one.run_id
JOIN assets_app_run AS a ON a.id = one.run_id JOIN assets_app_run AS b ON b.id = other.run_id
JOIN assets_app_asset AS asset ON asset.id = a.asset_id
WHERE asset.name = %s
  AND tstzrange(a.queued_at, a.ended_at) && tstzrange(b.queued_at, b.ended_at)
"""
_UNAGREED = """
SELECT count(*) FROM backfills_app_backfillasset AS backfill_asset
WHERE backfill_asset.backfill_id = ANY(%s)
    AND backfill_asset.total <> backfill_asset.succeeded + backfill_asset.skipped
"""


def create(api: Client, number: int, since: date) -> dict[str, Any] | None:
    """Create the backfill of one client: its days overlap with the days of its neighbours.

    Returns None if the server refuses the request because other backfills hold all its days, or
    have materialized these already: a server that is quick has nothing left for the client.
    """
    first = since + timedelta(days=number // 2)
    try:
        backfill: dict[str, Any] = api.post(
            "/backfills/",
            asset="days",
            start=f"{first}",
            end=f"{first + timedelta(days=EACH - 1)}",
            existing="all" if number % 5 == 0 else "missing_and_failed",
            description=f"client {number}",
        )
    except ApiError as error:
        if ": 409 " not in f"{error}" or "Nothing to run: " not in f"{error}":
            raise
        return None
    return backfill


def keys_of(number: int, since: date) -> set[str]:
    """Return the keys of the days that the backfill of a client has."""
    first = since + timedelta(days=number // 2)
    return {f"{first + timedelta(days=day)}" for day in range(EACH)}


@pytest.mark.parametrize("clients", [8, pytest.param(CLIENTS, marks=pytest.mark.rounds)])
def test_each_partition_has_one_active_run_and_each_backfill_says_what_it_left_out(
    clients: int, crew: Crew, api: Client, fault_round: int
) -> None:
    since = date(2003 + fault_round, clients % 12, 1)
    with ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(lambda number: create(api, number, since), range(clients)))
    created = [backfill for backfill in answers if backfill is not None]
    assert len({backfill["name"] for backfill in created}) == len(created)
    numbers = [backfill["id"] for backfill in created]
    ended_backfills = [ended(api, f"/backfills/{number}/") for number in numbers]

    assert {backfill["state"] for backfill in ended_backfills} == {"succeeded"}
    assert crew.value(_UNAGREED, numbers) == 0
    assert crew.value(_AT_ONCE, "days") == 0
    counts_by_key: Counter[str] = Counter()
    requested_keys: set[str] = set()
    for backfill in ended_backfills:
        partitions = list(api.every(f"/backfills/{backfill['id']}/partitions/"))
        assert len(partitions) == EACH
        requested_keys |= {partition["key"] for partition in partitions}
        counts_by_key.update(
            partition["key"] for partition in partitions if partition["state"] == "succeeded"
        )
        left_out = Counter(
            partition["reason"] for partition in partitions if partition["state"] == "skipped"
        )
        assert set(left_out) <= {"in_flight", "exists"}
        skips = api.get(f"/backfills/{backfill['id']}/outcome/")["skipped"]
        assert {skip["reason"]: skip["partitions"] for skip in skips} == left_out
        # Whoever had what was in flight is among these, and named.
        had = [holder["backfill"] for skip in skips for holder in skip["others"]]
        assert set(had) <= set(numbers) - {backfill["id"]}
        assert had or not left_out["in_flight"]
        assert backfill["counts"]["succeeded"] + backfill["counts"]["skipped"] == EACH
    versions = crew.materializations("days")
    # What was made is what backfills say that they have made, each time a version of its own.
    assert {key: versions[key] for key in requested_keys} == {
        key: (count, count) for key, count in counts_by_key.items()
    }
    # A client that was refused has its days too, by the backfills of others.
    for number, answer in enumerate(answers):
        assert answer is not None or keys_of(number, since) <= counts_by_key.keys()
