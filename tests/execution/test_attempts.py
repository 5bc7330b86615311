"""A dispatched run up to its end, and the holders that may end it."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

import slicewise
from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import (
    Asset,
    AssetPartition,
    FailureKind,
    Gateway,
    Materialization,
    PartitionCount,
    Run,
    RunAttempt,
    RunState,
)
from partitions_app.models import PartitionDefinition
from slicewise_server.web.request_errors import ConflictingRequest
from tests.attempts import begun, publish, staged
from tests.factories import AIRPORTS, DAILY_2013, asset, outlet_of
from tests.partition_records import counts_agree_with_partitions


def test_published_partitions_are_recorded_once(alice: User, gateway: Gateway) -> None:
    flights = asset("raw_flights", DAILY_2013)
    attempt = begun(flights, alice, gateway, "2013-01-01..2013-01-03", strategy="range")
    publish(attempt)
    assert not ending.succeed(attempt.row)
    partitions = AssetPartition.objects.filter(asset=flights)
    assert [(s.state, s.version, s.rows, s.held_by_id) for s in partitions] == [
        ("materialized", 1, 5, None)
    ] * 3
    assert Materialization.objects.count() == 3
    assert Run.objects.get().state == RunState.SUCCEEDED
    assert counts_agree_with_partitions()


def test_making_a_partition_again_keeps_its_history(alice: User, gateway: Gateway) -> None:
    flights = asset("raw_flights", DAILY_2013)
    for _ in range(2):
        publish(begun(flights, alice, gateway))
    versions = Materialization.objects.order_by("version").values_list("version", flat=True)
    assert list(versions) == [1, 2]
    assert counts_agree_with_partitions()


def test_the_versions_that_were_there_at_the_start_are_kept(alice: User, gateway: Gateway) -> None:
    flights = asset("raw_flights", DAILY_2013)
    delays = asset("daily_delays", DAILY_2013, upstream={"raw_flights": None})
    publish(begun(flights, alice, gateway))
    attempt = begun(delays, alice, gateway, "2013-01-01..2013-01-02", strategy="range")
    (flights_read,) = attempts.take_inputs(attempt)
    assert [(i.partition.key, i.version) for i in attempt.row.inputs.all()] == [("2013-01-01", 1)]
    assert flights_read.missing == ["2013-01-02"]


def test_a_mapping_says_which_upstream_partitions_are_read(alice: User, gateway: Gateway) -> None:
    flights = asset("raw_flights", DAILY_2013)
    week = {"raw_flights": slicewise.Offset(-6, 0)}
    trend = asset("trend", DAILY_2013, upstream=week)
    publish(begun(flights, alice, gateway, "2013-01-01..2013-01-09", strategy="range"))
    (read,) = attempts.take_inputs(begun(trend, alice, gateway, "2013-01-10"))
    assert read.keys == [f"2013-01-0{day}" for day in range(4, 10)]
    assert read.missing == ["2013-01-10"]


def test_all_of_a_time_that_has_no_bounds_is_what_was_made_of_it(
    alice: User, gateway: Gateway
) -> None:
    events = asset("events", slicewise.PartitionByInterval("@daily"))
    spend = asset("spend", AIRPORTS, upstream={"events": None})
    yesterday = (timezone.now() - timedelta(days=1)).date()
    publish(begun(events, alice, gateway, str(yesterday)))
    (read,) = attempts.take_inputs(begun(spend, alice, gateway, "JFK"))
    assert read.keys == [str(yesterday)]


def test_a_run_keeps_to_the_version_of_the_code_that_it_was_asked_with(
    alice: User, gateway: Gateway
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    later = slicewise.PartitionByInterval("@daily", start="2013-06-01", end="2014-01-01")
    materialize(MaterializeRequest(asset=flights, selection="2013-01-01"), user=alice)
    Asset.objects.update(partition_definition=PartitionDefinition.of(later.to_json()))
    dispatch()
    attempt = attempts.begin(Run.objects.get().pk, gateway)
    assert attempt is not None
    assert attempts.take_inputs(attempt) == []
    assert attempt.run.producer_version.spec.partition_of("raw_flights") == DAILY_2013.to_json()


def test_a_failure_without_retries_fails_the_run_and_frees_its_partitions(
    alice: User, gateway: Gateway
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    attempt = begun(flights, alice, gateway)
    assert ending.fail(attempt.row, Failure(error="ValueError: no", traceback="…"))
    run, partition = Run.objects.get(), AssetPartition.objects.get()
    assert (run.state, run.error, run.error_kind) == ("failed", "ValueError: no", "code")
    assert (partition.state, partition.held_by_id, partition.version) == ("failed", None, 0)
    assert counts_agree_with_partitions()


def test_an_error_that_the_database_cannot_hold_is_not_lost(alice: User, gateway: Gateway) -> None:
    attempt = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    failure = Failure(error="ValueError: 'a\0b' and '\ud800'", traceback="line 3: '\0' \udcff")
    assert ending.fail(attempt.row, failure)
    attempt.row.refresh_from_db()
    assert Run.objects.get().error == "ValueError: 'a\N{REPLACEMENT CHARACTER}b' and '\\ud800'"
    assert attempt.row.traceback == "line 3: '\N{REPLACEMENT CHARACTER}' \\udcff"


def test_a_failure_of_the_platform_is_tried_again_and_not_without_end(
    alice: User, gateway: Gateway, settings: Any
) -> None:
    settings.PLATFORM_RETRY_PAUSE_SECONDS, settings.PLATFORM_RETRY_LONGEST_PAUSE_SECONDS = 1, 300
    settings.PLATFORM_RETRY_HOURS = 2
    flights = asset("raw_flights", DAILY_2013)
    attempt: Attempt | None = begun(flights, alice, gateway)
    pauses: list[float] = []
    while attempt is not None:
        ending.fail(attempt.row, Failure(error="gone", kind=FailureKind.PLATFORM))
        run = Run.objects.get()
        if run.not_before and run.queued_at and run.state == RunState.QUEUED:
            pauses.append((run.not_before - run.queued_at).total_seconds())
        Run.objects.update(not_before=None)
        dispatch()
        attempt = attempts.begin(attempt.run.pk, gateway)
    assert Run.objects.get().state == RunState.FAILED
    assert pauses[:10] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert 2 * 3600 <= sum(pauses) < 2 * 3600 + 301


def test_a_server_that_is_back_within_hours_finds_the_run_still_tried(
    alice: User, gateway: Gateway
) -> None:
    attempt = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    Run.objects.update(platform_failures=60)
    ending.fail(attempt.row, Failure(error="gone", kind=FailureKind.PLATFORM))
    assert Run.objects.get().state == RunState.QUEUED


def test_a_failed_re_run_shows_as_failed_and_keeps_the_data(alice: User, gateway: Gateway) -> None:
    flights = asset("raw_flights", DAILY_2013)
    publish(begun(flights, alice, gateway))
    ending.fail(begun(flights, alice, gateway).row, Failure(error="no"))
    partition = AssetPartition.objects.get()
    assert (partition.state, partition.version, partition.rows) == ("failed", 1, 5)
    assert counts_agree_with_partitions()


def test_a_canceled_re_run_leaves_the_partition_as_it_was(alice: User, gateway: Gateway) -> None:
    flights = asset("raw_flights", DAILY_2013)
    publish(begun(flights, alice, gateway))
    attempt = begun(flights, alice, gateway)
    assert cancel_run(attempt.run, user=alice).state == RunState.CANCELING
    assert ending.cancel(attempt.row)
    assert AssetPartition.objects.get().state == "materialized"
    assert counts_agree_with_partitions()


def test_a_queued_run_is_canceled_at_once(alice: User) -> None:
    flights = asset("raw_flights", DAILY_2013)
    run = materialize(
        MaterializeRequest(asset=flights, selection="2013-01-01"), user=alice
    ).runs.get()
    assert cancel_run(run, user=alice).state == RunState.CANCELED
    assert AssetPartition.objects.get().state == "canceled"
    with pytest.raises(ConflictingRequest, match="has ended already"):
        cancel_run(run, user=alice)


def test_an_unpartitioned_asset_is_counted_as_well(alice: User, gateway: Gateway) -> None:
    carriers = asset("carriers")
    cancel_run(begun(carriers, alice, gateway, "").run, user=alice)
    ending.cancel(RunAttempt.objects.get())
    assert PartitionCount.objects.get(asset=carriers).state == "canceled"
    publish(begun(carriers, alice, gateway, ""))
    assert PartitionCount.objects.get(asset=carriers, count=1).state == "materialized"
    assert counts_agree_with_partitions()


def test_a_publishing_run_cannot_be_canceled(alice: User, gateway: Gateway) -> None:
    attempt = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    attempts.intend_to_publish(attempt.row, [outlet_of(attempt, staged(attempt))])
    with pytest.raises(ConflictingRequest, match="publishing"):
        cancel_run(attempt.run, user=alice)


def test_a_canceled_run_publishes_nothing(alice: User, gateway: Gateway) -> None:
    attempt = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    cancel_run(attempt.run, user=alice)
    assert not attempts.intend_to_publish(attempt.row, [outlet_of(attempt, staged(attempt))])


def test_who_has_lost_the_token_changes_nothing(alice: User, gateway: Gateway) -> None:
    attempt = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    RunAttempt.objects.update(token=uuid4())
    assert not attempts.intend_to_publish(attempt.row, [outlet_of(attempt, staged(attempt))])
    assert not ending.fail(attempt.row, Failure(error="late"))
    assert not ending.requeue_lost(attempt.row, "late")
    assert Run.objects.get().state == RunState.RUNNING


def test_beginning_a_run_does_not_load_the_archive_of_its_code(
    alice: User, gateway: Gateway
) -> None:
    attempt = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    version = attempt.run.producer_version.bundle_version
    assert version.get_deferred_fields() == {"archive"}


def test_a_doubled_message_begins_nothing(alice: User, gateway: Gateway) -> None:
    attempt = begun(asset("raw_flights", DAILY_2013), alice, gateway)
    assert attempts.begin(attempt.run.pk, gateway) is None
    assert RunAttempt.objects.count() == 1


def test_a_publication_that_stops_half_way_records_just_what_is_in_place(
    alice: User, gateway: Gateway
) -> None:
    flights = asset("raw_flights", DAILY_2013)
    attempt = begun(flights, alice, gateway, "2013-01-01..2013-01-03", strategy="range")
    attempts.intend_to_publish(attempt.row, [outlet_of(attempt, staged(attempt))])
    assert ending.fail_publishing(
        attempt.row,
        Failure(error="a folder is in the way"),
        {flights.pk: ["partition=2013-01-02"]},
    )
    states = dict(AssetPartition.objects.values_list("key", "state"))
    assert states == {
        "2013-01-01": "failed",
        "2013-01-02": "materialized",
        "2013-01-03": "failed",
    }
    assert Materialization.objects.get().partition.key == "2013-01-02"
    assert not AssetPartition.objects.filter(held_by__isnull=False).exists()
    assert counts_agree_with_partitions()
