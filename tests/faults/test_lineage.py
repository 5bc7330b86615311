"""Lineage of the flights example: each attempt has one start and one end, whatever is killed, and
the events alone draw the catalogue.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slicewise_server.stack.commands import worker
from slicewise_server.stack.demo.client import Client
from tests.e2e.conftest import ended, run_of
from tests.faults.conftest import ROUNDS
from tests.faults.lineage_receiver import LineageReceiver, open_receiver
from tests.faults.marks import marks_of, number_of
from tests.faults.stack_processes import SHORT_LEASE, Crew, until
from tests.lineage.catalogue_of_events import (
    CatalogueOfEvents,
    steps_by_run,
    without_repeats,
)
from tests.lineage.openlineage_schemas import check_event

pytestmark = pytest.mark.fault(1)
STACK_WORKERS = ("worker-scheduled", "worker-backfill", "worker-control", "worker-bulk")
_JANUARY = {"start": "2013-01", "end": "2013-01"}
_FIRST_DAY = {"start": "2013-01-01", "end": "2013-01-01"}
BACKFILLS: list[dict[str, Any]] = [
    {"asset": "delays_by_origin", "selection": "date=2013-01-01..2013-01-02", "upstream": True},
    {"asset": "monthly_report", "upstream": True, **_JANUARY},
    {"asset": "observations", "upstream": True, **_FIRST_DAY},
    {"asset": "delays_to_learn_from", **_JANUARY},
]
# `make test` waits for no pause, nor for minutes until the claim of a killed sender ends: both have
# tests of their own.
AWAY_SECONDS = 300 if ROUNDS > 1 else 0
# At least the longest pause between two tries.
_LONGEST_PAUSE = 620
ALONE = ("carriers", "carrier_days")
FLIGHTS = {
    *("raw_flights", "carriers", "daily_delays", "delays_by_origin", "monthly_report", "weather"),
    *("observations", "carrier_days", "carrier_report"),
    *("delays_to_learn_from", "delays_to_test_with"),
}

_OPEN = """
SELECT (SELECT count(*) FROM assets_app_outbox) + (SELECT count(*) FROM assets_app_run
    WHERE state NOT IN ('succeeded', 'failed', 'canceled', 'skipped'))
"""
_WAITING = "SELECT count(*) FROM lineage_lineageevent WHERE sent_at IS NULL"
# Rounds share a stack: each counts the events that came after the last one before.
_LAST_EVENT = "SELECT coalesce(max(id), 0) FROM lineage_lineageevent"
_ATTEMPTS = "SELECT count(DISTINCT attempt_id) FROM lineage_lineageevent WHERE id > %s"
_VERSIONS = """
SELECT asset.name, partition.key, max(materialization.version)
FROM assets_app_materialization AS materialization
JOIN assets_app_assetpartition AS partition ON partition.id = materialization.partition_id
JOIN assets_app_asset AS asset ON asset.id = partition.asset_id
WHERE materialization.attempt_id IN (SELECT attempt_id FROM lineage_lineageevent WHERE id > %s)
AND partition.identity <> 'discovery' GROUP BY 1, 2
"""
_EDGES = """
SELECT upstream.name, downstream.name, edge.inlet, edge.scheduling, edge.mapping
FROM assets_app_assetdependency AS edge
JOIN assets_app_asset AS upstream ON upstream.id = edge.upstream_id
JOIN assets_app_asset AS downstream ON downstream.id = edge.downstream_id
WHERE downstream.name = ANY(%s)
"""


@pytest.fixture
def receiver(crew: Crew) -> Iterator[LineageReceiver]:
    """A receiver, with workers that send events to it in place of the stack's workers."""
    with open_receiver() as opened:
        for name in STACK_WORKERS:
            crew.halt(name)
        env = {**opened.env, **SHORT_LEASE}
        crew.hire("tell-control", worker("control", "-c", "4", "-n", "tell-control@%h"), env)
        hire_bulk(crew, opened, "tell-bulk")
        crew.hire_gateway("tell-scheduled", env=env)
        crew.hire_gateway("tell-backfill", "backfill", env)
        yield opened


def hire_bulk(crew: Crew, receiver: LineageReceiver, name: str) -> None:
    crew.hire(name, worker("bulk", "-c", "7", "-n", f"{name}@%h"), receiver.env)


def begin(api: Client, request: dict[str, Any]) -> int:
    """Request a backfill of all its partitions; return the number."""
    number: int = api.post("/backfills/", existing="all", **request)["id"]
    return number


def await_success(api: Client, backfill: int) -> None:
    """Wait until a backfill has succeeded."""
    body = ended(api, f"/backfills/{backfill}/", seconds=600)
    assert body["state"] == "succeeded", body


def tried_anew(crew: Crew, receiver: LineageReceiver) -> int:
    """End the pause between two tries; return how many events have come.

    A try that was refused just before may begin another pause afterwards.
    """
    crew.rows("UPDATE lineage_lineagereceiver SET retry_at = NULL")
    return len(receiver.events)


def test_each_attempt_has_one_start_and_one_end_and_events_draw_the_catalogue(
    crew: Crew, receiver: LineageReceiver, api: Client, lake: Path
) -> None:
    last_event = crew.value(_LAST_EVENT)
    first = begin(api, BACKFILLS[0])
    until(lambda: receiver.events, "the first events have come")
    # The receiver is away, and the worker that sends is killed.
    receiver.status, away_since = 503, time.monotonic()
    # The backfill may have ended: where an earlier round has left a claim of a sender, the events
    # come late, and all at once. A further run has an event to refuse.
    run_of(api, ALONE[0])
    until(lambda: receiver.refused, "an event was refused")
    crew.dismiss("tell-bulk")
    if not AWAY_SECONDS:
        crew.rows("UPDATE lineage_lineagereceiver SET claimed_until = NULL")
    lost = number_of(run_of(api, "counting"))
    until(lambda: marks_of(lake, lost), "its code has begun")
    hire_bulk(crew, receiver, "tell-bulk-2")
    crew.dismiss("tell-scheduled")
    crew.hire_gateway("tell-scheduled-2", env={**receiver.env, **SHORT_LEASE})
    until(lambda: len(marks_of(lake, lost)) == 2, "another worker has begun")
    assert crew.await_run(lost) == "succeeded"
    canceled = number_of(run_of(api, "counting"))
    until(lambda: marks_of(lake, canceled), "its code has begun")
    api.post(f"/runs/{canceled}/cancel/")
    assert crew.await_run(canceled) == "canceled"
    assert [outcome for _, outcome, _ in crew.attempts(lost)] == ["lost", "succeeded"]
    time.sleep(max(0.0, away_since + AWAY_SECONDS - time.monotonic()))
    receiver.status, sent_before = 201, len(receiver.events)
    if AWAY_SECONDS:
        until(lambda: len(receiver.events) > sent_before, "the pause ends", seconds=_LONGEST_PAUSE)
    else:
        until(lambda: tried_anew(crew, receiver) > sent_before, "the pause ends")
    await_success(api, first)
    for request in BACKFILLS[1:]:
        await_success(api, begin(api, request))
    for name in ALONE:
        run_of(api, name)
    until(lambda: crew.value(_OPEN) == 0, "all runs have ended, and made no other run due")
    until(lambda: crew.value(_WAITING) == 0, "all events are sent")

    events = without_repeats(receiver.events)
    for event in receiver.events:
        check_event(event)
    steps = steps_by_run(events)
    assert len(steps) == crew.value(_ATTEMPTS, last_event)
    assert all(counts == {"START": 1, "end": 1} for counts in steps.values()), steps
    assert {"COMPLETE", "ABORT"} <= {event["eventType"] for event in events}

    drawn = CatalogueOfEvents()
    drawn.read(events)
    on_record: dict[str, dict[str, int]] = {}
    for name, key, version in crew.rows(_VERSIONS, last_event):
        on_record.setdefault(name, {})[key] = version
    assert drawn.versions == on_record
    assert drawn.versions.keys() >= FLIGHTS
    edges = crew.rows(_EDGES, list(drawn.definitions))
    assert drawn.edges == {(*edge, json.dumps(mapping, sort_keys=True)) for *edge, mapping in edges}
