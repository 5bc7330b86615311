"""Definitions that change while a backfill is on its way: the frozen definition is gone, and the
backfill ends all the same.
"""

from typing import Any

import pytest
from django.db import OperationalError

import slicewise
from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.retrying import retry_run
from assets_app.models import Asset, AssetPartition, FrozenUpstream, Gateway, Run, RunState
from backfills_app.models import Backfill
from backfills_app.services import cancel_backfill, pause_backfill, resume_backfill, retry_failed
from backfills_app.services.advance.admission import AHEAD
from backfills_app.services.advance.advancing import advance
from backfills_app.services.advance.expansion import expand
from slicewise import Keys
from slicewise_server.web.request_errors import ConflictingRequest
from tests.attempts import publish
from tests.backfills.driven_backfills import (
    ask,
    drive,
    failing_keys,
    following,
    lacking_input,
    outcomes,
    redefine,
    state_of,
)
from tests.factories import AIRPORTS, DAILY_2013, DAY_BY_AIRPORT, asset
from tests.partition_records import made
from tests.runtime_keys import find_keys

HOURLY = slicewise.PartitionByInterval("@hourly", start="2013-01-01", end="2014-01-01")
IN_BERLIN = slicewise.PartitionByInterval(
    "@daily", start="2013-01-01", end="2014-01-01", timezone="Europe/Berlin"
)
MONTHLY = slicewise.PartitionByInterval("@monthly", start="2013-01-01", end="2014-01-01")
MORE_AIRPORTS = slicewise.PartitionBySequence(["EWR", "JFK", "LGA", "TEB"])
DAY_BY_MORE_AIRPORTS = slicewise.PartitionByProduct({"date": DAILY_2013, "airport": MORE_AIRPORTS})
SHOPS = slicewise.PartitionAtRuntime("shop")


@pytest.mark.parametrize("present", [HOURLY, IN_BERLIN, None], ids=["hourly", "zone", "whole"])
@pytest.mark.parametrize("existing", ["missing", "stale"])
def test_an_asset_partitioned_differently_is_materialized_no_further(
    alice: User, worker: Gateway, present: slicewise.PartitionDefinition | None, existing: str
) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = ask(alice, "raw_flights", selection="2013-01", existing=existing, max_active_runs=1)
    advance()
    begun_count = Run.objects.count()
    redefine("raw_flights", present)
    drive(worker)
    assert outcomes(backfill, "raw_flights") == {
        "succeeded": begun_count, "no_such_partition": 31 - begun_count,
    }  # fmt: skip
    assert state_of(backfill) == "partially_failed"
    assert not AssetPartition.objects.exclude(identity=DAILY_2013.identity).exists()


def test_partitions_of_a_later_definition_do_not_exist_for_the_backfill(
    alice: User, worker: Gateway
) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = ask(alice, "raw_flights", selection="2013-01-01..2013-01-02")
    redefine("raw_flights", HOURLY)
    ask(alice, "raw_flights", selection="2013-01-01..2013-01-02", strategy="range")
    drive(worker)
    assert AssetPartition.objects.filter(identity=HOURLY.identity, version=1).count() == 48
    again = ask(alice, "raw_flights", selection="2013-01-01..2013-01-02")
    drive(worker)
    assert outcomes(again, "raw_flights") == {"exists": 48}
    assert outcomes(backfill, "raw_flights") == {"no_such_partition": 2}
    assert state_of(backfill) == "failed"


def test_downstream_partitions_of_a_redefined_asset_need_nonexistent_partitions(
    alice: User, worker: Gateway
) -> None:
    asset("raw_flights", DAILY_2013)
    following("delays", DAILY_2013, of={"raw_flights": None})
    backfill = ask(alice, "raw_flights", selection="2013-01", downstream="all")
    expand(backfill.pk)
    redefine("raw_flights", HOURLY)
    drive(worker)
    assert outcomes(backfill, "raw_flights") == {"no_such_partition": 31}
    assert outcomes(backfill, "delays") == {"upstream_nonexistent": 31}


def test_the_keys_of_a_renamed_set_are_those_that_it_had(alice: User, worker: Gateway) -> None:
    asset("raw_flights", DAILY_2013)
    find_keys(SHOPS, "mitte", "nord")
    following("sales", SHOPS, of={"raw_flights": None})
    backfill = ask(alice, "raw_flights", selection="2013-01", downstream="all")
    expand(backfill.pk)
    redefine("sales", slicewise.PartitionAtRuntime("store"))
    drive(worker)
    assert outcomes(backfill, "raw_flights") == {"succeeded": 31}
    assert outcomes(backfill, "sales") == {"no_such_partition": 2}
    assert (state_of(backfill), backfill.error) == ("partially_failed", "")


def test_a_segment_that_upstream_gains_is_needed_by_no_run_of_it(
    alice: User, worker: Gateway
) -> None:
    asset("by_airport", DAY_BY_AIRPORT)
    following("ledger", MONTHLY, of={"by_airport": None})
    backfill = ask(alice, "by_airport", selection="date=2013-01..2013-02", downstream="all")
    advance()
    redefine("by_airport", DAY_BY_MORE_AIRPORTS)
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "by_airport") == {"succeeded": 59 * 3}
    assert outcomes(backfill, "ledger") == {"succeeded": 2}
    # Another request goes by what there is by then.
    later = ask(alice, "ledger", selection="2013-01", existing="all")
    drive(worker)
    assert outcomes(later, "ledger") == {"upstream_missing": 1}


@pytest.mark.parametrize("present", [MORE_AIRPORTS, None], ids=["segment", "whole"])
def test_inlets_outside_the_backfill_are_read_by_their_frozen_definition(
    alice: User, worker: Gateway, present: slicewise.PartitionDefinition | None
) -> None:
    airports = asset("airports", AIRPORTS)
    following("raw_flights", DAILY_2013, of={"airports": None})
    made(airports, "*")
    backfill = ask(alice, "raw_flights", selection="2013-01", max_active_runs=1)
    advance()
    redefine("airports", present)
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "raw_flights") == {"succeeded": 31}


def test_the_newest_code_reads_upstream_by_the_current_definition(
    alice: User, worker: Gateway
) -> None:
    airports = asset("airports", AIRPORTS)
    following("raw_flights", DAILY_2013, of={"airports": None})
    made(airports, "*")
    backfill = ask(alice, "raw_flights", selection="2013-01-01..2013-01-02")
    drive(worker, failing=failing_keys("2013-01-01"))
    redefine("airports", MORE_AIRPORTS)
    redefine("raw_flights", DAILY_2013)
    retry_failed(backfill, user=alice, code="newest")
    drive(worker)
    assert outcomes(backfill, "raw_flights") == {"succeeded": 1, "upstream_missing": 1}


def make_airport() -> None:
    """Put one of the airports on record as materialized."""
    AssetPartition.objects.create(
        asset=Asset.objects.get(name="airports"), identity=AIRPORTS.identity, key="JFK",
        segment="JFK", state="materialized", version=1,
    )  # fmt: skip


def spoil_airports() -> None:
    """Forget the frozen definition of the airports, so that the needed keys are no keys of it."""
    FrozenUpstream.objects.filter(asset__name="airports").update(partition_definition=None)


def keyed(alice: User, **options: Any) -> Backfill:
    """Create a backfill of days that all need one airport; its first runs are in the queue."""
    asset("airports", AIRPORTS)
    raw = following("raw_flights", DAILY_2013, of={"airports": Keys(["JFK"])})
    make_airport()
    backfill = ask(alice, raw.name, selection="2013-01", max_active_runs=1, **options)
    advance()
    return backfill


@pytest.mark.usefixtures("impatient")
def test_one_that_cannot_go_on_is_given_up_and_says_why(
    alice: User, worker: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    backfill = keyed(alice)
    dispatch()
    (running,) = Run.objects.filter(state=RunState.DISPATCHED)
    attempt = attempts.begin(running.pk, worker)
    assert attempt is not None
    # Fewer stand in the queue: it is looked at once more.
    monkeypatch.setattr("backfills_app.services.advance.admission.AHEAD", 5)
    spoil_airports()
    advance()
    assert state_of(backfill) == "running"
    assert backfill.error.startswith(
        "It could not go on: DefinitionError: Keys needs a partitioned upstream asset;"
    )
    assert outcomes(backfill, "raw_flights") == {"active": AHEAD, "canceled": 31 - AHEAD}
    with pytest.raises(ConflictingRequest, match="was given up, and a retry would be given up too"):
        retry_failed(backfill, user=alice)
    # What has begun goes on, and nothing of it is in anybody's way.
    monkeypatch.setattr("backfills_app.services.advance.advancing.give_up", None)
    advance()
    publish(attempt)
    for run in backfill.group.runs.filter(state=RunState.QUEUED):
        cancel_run(run, user=alice)
    assert state_of(backfill) == "failed"
    assert outcomes(backfill, "raw_flights") == {"succeeded": 1, "canceled": 30}


@pytest.mark.usefixtures("impatient")
def test_a_run_of_one_that_was_given_up_can_be_tried_again(
    alice: User, worker: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfills_app.services.advance.admission.AHEAD", 1)
    backfill = keyed(alice)
    dispatch()
    failed = Run.objects.get()
    attempt = attempts.begin(failed.pk, worker)
    assert attempt is not None
    spoil_airports()
    ending.fail(attempt.row, Failure(error="ValueError: no"))
    advance()
    assert state_of(backfill) == "failed"
    assert outcomes(backfill, "raw_flights") == {"failed": 1, "canceled": 30}
    retry_run(failed, user=alice)
    assert state_of(backfill) == "running"
    cancel_backfill(backfill, user=alice)
    assert state_of(backfill) == "canceled"


def test_a_retry_that_cannot_go_on_is_refused(alice: User, worker: Gateway) -> None:
    asset("airports", AIRPORTS)
    following("raw_flights", DAILY_2013, of={"airports": Keys(["JFK"])})
    following("delays", DAILY_2013, of={"raw_flights": None})
    make_airport()
    request = {"selection": "2013-01-01..2013-01-03", "downstream": "all"}
    backfill = ask(alice, "raw_flights", **request)
    drive(worker, failing=failing_keys("2013-01-02"))
    assert outcomes(backfill, "delays") == {"succeeded": 2, "upstream_failed": 1}
    spoiled = {"kind": "interval", "cadence": "@never"}
    backfill.assets.filter(asset__name="delays").update(partition=spoiled)
    with pytest.raises(ConflictingRequest, match="cannot continue with the frozen definitions"):
        retry_failed(backfill, user=alice)
    assert state_of(backfill) == "partially_failed"


def test_an_error_that_may_pass_is_no_reason_to_give_up(
    alice: User, worker: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    backfill = keyed(alice)

    def broken(_backfill_id: int) -> int:
        raise OperationalError("the connection was lost")

    with monkeypatch.context() as patched:
        patched.setattr("backfills_app.services.advance.advancing.admit", broken)
        drive(worker)
        assert (state_of(backfill), backfill.error) == ("running", "")
    drive(worker)
    assert outcomes(backfill, "raw_flights") == {"succeeded": 31}


@pytest.mark.usefixtures("impatient")
def test_one_that_is_paused_meanwhile_is_given_up_when_it_goes_on(
    alice: User, worker: Gateway
) -> None:
    backfill = keyed(alice)
    pause_backfill(backfill, user=alice)
    spoil_airports()
    drive(worker)
    assert (state_of(backfill), backfill.error) == ("paused", "")
    resume_backfill(backfill, user=alice)
    advance()
    assert state_of(backfill) == "failed"
    assert outcomes(backfill, "raw_flights") == {"canceled": 31}
