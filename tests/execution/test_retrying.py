"""Ended runs once more: in another attempt, or as a new run."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

import slicewise
from accounts_app.models import AuditEntry, User
from accounts_app.policy import Role
from assets_app.execution.attempt import ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue import messages
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.request import patience
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.execution.request.retrying import rerun, retry_group, retry_run, retry_runs
from assets_app.models import (
    Asset,
    AssetPartition,
    FailureKind,
    Gateway,
    Materialization,
    ProducerVersion,
    Run,
    RunAttempt,
    RunState,
)
from assets_app.signals import retry_requested, runs_retried
from partitions_app.models import PartitionDefinition
from slicewise_server.web.request_errors import ConflictingRequest, InvalidRequest
from tests.attempts import begin_next, begun, publish
from tests.factories import DAILY_2013, asset, person, together
from tests.partition_records import counts_agree_with_partitions
from tests.threads import elsewhere, wait_for_end_or_lock

THREE_DAYS = "2013-01-01..2013-01-03"


@pytest.fixture
def flights(db: None) -> Asset:
    return asset("raw_flights", DAILY_2013, params={"limit": 10})


def failed(
    flights: Asset, alice: User, gateway: Gateway, selection: str = THREE_DAYS, **more: Any
) -> Run:
    """Return a run that has failed for good."""
    attempt = begun(flights, alice, gateway, selection, strategy="range", **more)
    assert ending.fail(attempt.row, Failure(error="ValueError: no", traceback="…"))
    return Run.objects.get(pk=attempt.run.pk)


def new_version(of: Asset, **definition: Any) -> ProducerVersion:
    """Change the code of the asset."""
    producer = of.producer
    assert producer
    assert producer.current_version
    producer.current_version = ProducerVersion.objects.create(
        producer=producer,
        bundle_version=producer.current_version.bundle_version,
        digest="f" * 64,
        definition=producer.current_version.definition | definition,
        source="def raw_flights(): return None",
        file="flights.py",
    )
    producer.save()
    return producer.current_version


def test_a_failed_run_is_queued_again_with_its_history_and_its_partitions(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    run = failed(flights, alice, gateway)
    again = retry_run(run, user=alice)
    assert again.pk == run.pk
    assert (again.state, again.error, again.error_kind) == (RunState.QUEUED, "", "")
    assert (again.ended_at, again.started_at, again.code_failures) == (None, None, 0)
    assert set(AssetPartition.objects.values_list("held_by", flat=True)) == {run.pk}
    assert list(again.attempts.values_list("number", "error")) == [(1, "ValueError: no")]
    attempt = begin_next(again, gateway)
    assert attempt.row.number == 2
    publish(attempt)
    assert set(AssetPartition.objects.values_list("state", "version")) == {("materialized", 1)}
    assert counts_agree_with_partitions()


def test_a_retry_that_fails_leaves_counts_and_partitions_right(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    run = retry_run(failed(flights, alice, gateway), user=alice)
    assert counts_agree_with_partitions()
    ending.fail(begin_next(run, gateway).row, Failure(error="ValueError: no again"))
    assert set(AssetPartition.objects.values_list("state", flat=True)) == {"failed"}
    assert not AssetPartition.objects.filter(held_by__isnull=False).exists()
    assert counts_agree_with_partitions()


def test_a_canceled_run_is_retried_and_may_be_canceled_again(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    group = materialize(MaterializeRequest(asset=flights, selection="2013-01-01"), user=alice)
    run = cancel_run(group.runs.get(), user=alice)
    run = cancel_run(retry_run(run, user=alice), user=alice)
    assert run.state == RunState.CANCELED
    assert AssetPartition.objects.get().state == "canceled"
    assert counts_agree_with_partitions()


def test_retries_of_the_code_begin_anew(alice: User, gateway: Gateway) -> None:
    flights = asset("raw_flights", DAILY_2013, options={"retries": 1, "retry_delay": 0})
    attempt = begun(flights, alice, gateway)
    ending.fail(attempt.row, Failure(error="ValueError: no"))
    Run.objects.update(not_before=None)
    ending.fail(begin_next(attempt.run, gateway).row, Failure(error="ValueError: no"))
    run = retry_run(Run.objects.get(), user=alice)
    ending.fail(begin_next(run, gateway).row, Failure(error="ValueError: no"))
    run.refresh_from_db()
    assert (run.state, run.attempt_count, run.code_failures) == (RunState.QUEUED, 3, 1)


def test_partitions_published_before_the_failure_stay_unchanged(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    run = failed(flights, alice, gateway)
    first = run.partitions.order_by("position").first()
    assert first
    run.partitions.filter(pk=first.pk).update(state="succeeded", path="partition=x", rows=7)
    retry_run(run, user=alice)
    first_partition, *rest = run.partitions.order_by("position").values_list(
        "state", "path", "rows"
    )
    assert first_partition == ("succeeded", "partition=x", 7)
    assert rest == [("pending", "", None)] * 2
    assert list(begin_next(run, gateway).keys) == ["2013-01-02", "2013-01-03"]


def test_a_run_of_which_another_makes_a_partition_is_not_retried(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    run = failed(flights, alice, gateway)
    other_group = materialize(MaterializeRequest(asset=flights, selection="2013-01-02"), user=alice)
    with pytest.raises(
        ConflictingRequest, match="another run is materializing raw_flights 2013-01-02"
    ):
        retry_run(run, user=alice)
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    held_partitions = AssetPartition.objects.filter(held_by__isnull=False)
    assert list(held_partitions.values_list("key", "held_by")) == [
        ("2013-01-02", other_group.runs.get().pk)
    ]


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        (RunState.SUCCEEDED, "has succeeded"),
        (RunState.QUEUED, "it has not ended yet"),
        (RunState.RUNNING, "it has not ended yet"),
    ],
)
def test_only_what_has_ended_without_success_is_retried(
    alice: User, gateway: Gateway, flights: Asset, state: RunState, sentence: str
) -> None:
    if state == RunState.QUEUED:
        run = materialize(
            MaterializeRequest(asset=flights, selection="2013-01-01"), user=alice
        ).runs.get()
    else:
        attempt = begun(flights, alice, gateway)
        run = attempt.run
        if state == RunState.SUCCEEDED:
            publish(attempt)
    with pytest.raises(ConflictingRequest, match=sentence):
        retry_run(run, user=alice)


def test_whoever_counts_a_run_may_object_to_its_retry_and_hears_of_one(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    run = failed(flights, alice, gateway)
    objections: dict[int, str] = {}
    retried_runs: list[tuple[list[int], str]] = []

    def object_to(run_ids: list[int], **_: Any) -> dict[int, str]:
        return dict(objections)

    def hear(run_ids: list[int], **_: Any) -> None:
        retried_runs.append((run_ids, Run.objects.get(pk=run_ids[0]).state))

    retry_requested.connect(object_to)
    runs_retried.connect(hear)
    objections[run.pk] = "It is counted elsewhere."
    with pytest.raises(ConflictingRequest, match="It is counted elsewhere"):
        retry_run(run, user=alice)
    assert (Run.objects.get().state, retried_runs) == (RunState.FAILED, [])
    objections.clear()
    retry_run(run, user=alice)
    assert retried_runs == [([run.pk], RunState.QUEUED)]


def test_a_retry_takes_the_code_it_had_or_the_newest(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    run = failed(flights, alice, gateway, params={"limit": 3})
    old, new = run.producer_version, new_version(flights, params={"limit": 10, "depth": 1})
    again = retry_run(run, user=alice)
    assert (again.producer_version, again.params) == (old, {"limit": 3})
    cancel_run(again, user=alice)
    newest = retry_run(again, code="newest", user=alice)
    assert (newest.producer_version, newest.params) == (new, {"limit": 3, "depth": 1})
    entry = AuditEntry.objects.filter(action="retry").first()
    assert entry
    assert entry.subject == str(run.pk)
    assert (entry.detail["code before"], entry.detail["code now"]) == (old.digest[:12], "f" * 12)


def test_a_retry_keeps_a_param_whose_default_has_another_type_by_now(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    run = failed(flights, alice, gateway)
    new_version(flights, params={"limit": "ten"})
    assert retry_run(run, code="newest", user=alice).params == run.params


def test_params_that_the_newest_code_does_not_know_are_refused(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    run = failed(flights, alice, gateway)
    new_version(flights, params={})
    with pytest.raises(ConflictingRequest, match="Unknown params: limit"):
        retry_run(run, code="newest", user=alice)
    assert retry_run(run, user=alice).state == RunState.QUEUED


def test_a_retry_with_newer_code_that_no_longer_writes_an_asset_of_the_run_is_refused(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    train, test = together("split", ["train", "test"], DAILY_2013)
    whole, of_train, of_flights = (
        failed(train, alice, gateway, "2013-01-01"),
        failed(train, alice, gateway, "2013-01-02"),
        failed(flights, alice, gateway, "2013-01-01"),
    )
    # As if the asset had been written alone when the run was created.
    of_train.partitions.filter(partition__asset=test).delete()
    newest = new_version(train, outlets=[{"name": "train"}])
    Asset.objects.filter(pk=test.pk).update(producer=flights.producer)
    sentence = (
        f"Run {whole.pk} materializes test too, and the newest code of train does not:"
        " re-run the run instead."
    )
    with pytest.raises(ConflictingRequest, match=sentence):
        retry_run(whole, code="newest", user=alice)
    run_ids = [whole.pk, of_train.pk, of_flights.pk]
    retried = retry_runs(run_ids, code="newest", user=alice)
    assert (retried.runs, retried.refused) == (run_ids[1:], {whole.pk: sentence})
    assert not AssetPartition.objects.filter(key="2013-01-01", asset=test).exclude(held_by=None)
    again = rerun(whole, code="newest", user=alice).runs.get()
    publish(begin_next(again, gateway))
    assert Materialization.objects.get().partition.asset == train
    assert again.producer_version == newest
    # The code of the run writes both assets.
    assert retry_run(whole, user=alice).state == RunState.QUEUED


def test_a_rerun_with_its_code_writes_an_asset_that_other_code_writes_by_now(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    train, test = together("split", ["train", "test"], DAILY_2013)
    run = failed(test, alice, gateway, "2013-01-01")
    Asset.objects.filter(pk__in=[train.pk, test.pk]).update(producer=flights.producer)
    newest = new_version(flights, outlets=[{"name": "raw_flights"}, {"name": "test"}])
    again = rerun(run, user=alice).runs.get()
    assert again.producer_version == run.producer_version
    assert [row.partition.asset for row in again.partitions.all()] == [test]
    cancel_run(again, user=alice)
    again = rerun(run, code="newest", user=alice).runs.get()
    assert again.producer_version == newest
    assert {row.partition.asset for row in again.partitions.all()} == {flights, test}


def test_runs_of_an_earlier_definition_are_neither_retried_nor_rerun(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    run = failed(flights, alice, gateway)
    hourly = slicewise.PartitionByInterval("@hourly", start="2013-01-01")
    Asset.objects.update(partition_definition=PartitionDefinition.of(hourly.to_json()))
    for again in (retry_run, rerun):
        with pytest.raises(ConflictingRequest, match="partitioned differently since run"):
            again(run, user=alice)


def test_retries_of_removed_assets_are_refused(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    run = failed(flights, alice, gateway)
    Asset.objects.update(active=False)
    with pytest.raises(InvalidRequest, match="not declared by any loaded file any more"):
        retry_run(run, user=alice)


def test_an_unknown_choice_of_code_is_refused(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    run = failed(flights, alice, gateway)
    for again in (retry_run, rerun):
        with pytest.raises(InvalidRequest, match="'older' is none of same, newest"):
            again(run, code="older", user=alice)


def test_of_several_runs_those_that_can_be_are_retried_and_the_others_named(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    runs = [failed(flights, alice, gateway, f"2013-01-0{day}") for day in (1, 2, 3)]
    earlier, ended = (
        failed(flights, alice, gateway, "2013-01-01"),
        begun(flights, alice, gateway),
    )
    publish(ended)
    earlier, latest = runs[0], earlier
    retried = retry_runs([*(run.pk for run in runs), latest.pk, ended.run.pk], user=alice)
    assert retried.runs == [runs[1].pk, runs[2].pk, latest.pk]
    assert retried.refused == {
        earlier.pk: f"Run {earlier.pk} is left out: run {latest.pk} covers raw_flights 2013-01-01"
        " too.",
        ended.run.pk: f"Run {ended.run.pk} has succeeded: to materialize the partitions"
        " again, re-run the run.",
    }
    assert AuditEntry.objects.filter(action="retry").count() == 3


def test_the_failed_runs_of_a_request_are_retried_at_once(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    group = materialize(MaterializeRequest(asset=flights, selection=THREE_DAYS), user=alice)
    first, second, third = group.runs.order_by("id")
    cancel_run(third, user=alice)
    for run in (first, second):
        ending.fail(begin_next(run, gateway).row, Failure(error="no"))
    assert retry_group(group, user=alice).runs == [first.pk, second.pk]
    with pytest.raises(ConflictingRequest, match="no run of the group has failed"):
        retry_group(group, user=alice)


def test_many_runs_are_retried_in_as_many_statements_as_two(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    def statements(selection: str, many: int) -> int:
        request = MaterializeRequest(asset=flights, selection=selection)
        group = materialize(request, user=alice)
        for run in group.runs.all():
            cancel_run(run, user=alice)
        ids = list(group.runs.values_list("id", flat=True))
        assert len(ids) == many
        with CaptureQueriesContext(connection) as statements:
            assert len(retry_runs(ids, user=alice).runs) == many
        return len(statements)

    assert statements("2013-01-01..2013-01-02", 2) == statements("2013-02", 28) <= 15


def test_a_run_that_lost_its_worker_too_often_is_tried_again_after_clearing_up(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    attempt = begun(flights, alice, gateway)
    RunAttempt.objects.update(application_id="app-1")
    Run.objects.update(lost_attempts=settings.LOST_ATTEMPTS_LIMIT - 1)
    ending.fail(attempt.row, Failure(error="gone", kind=FailureKind.PLATFORM, is_loss=True))
    run = retry_run(Run.objects.get(), user=alice)
    assert (run.platform_failures, run.lost_attempts) == (0, 0)
    assert [lost_attempt.number for lost_attempt in begin_next(run, gateway).unstopped] == [1]


def test_a_succeeded_run_is_run_again_as_a_new_one(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    attempt = begun(flights, alice, gateway, THREE_DAYS, strategy="range", params={"limit": 3})
    publish(attempt)
    new_version(flights)
    again = rerun(attempt.run, user=alice).runs.get()
    assert again.pk != attempt.run.pk
    assert (again.producer_version, again.params, again.partition_count, again.selection) == (
        attempt.run.producer_version,
        {"limit": 3},
        3,
        THREE_DAYS,
    )
    publish(begin_next(again, gateway))
    assert Materialization.objects.count() == 6
    assert set(AssetPartition.objects.values_list("version", flat=True)) == {2}
    assert counts_agree_with_partitions()
    newest = rerun(attempt.run, code="newest", user=alice).runs.get()
    assert newest.producer_version.digest == "f" * 64


def test_a_rerun_leaves_out_partitions_held_by_another_run(
    alice: User, gateway: Gateway, flights: Asset
) -> None:
    run = failed(flights, alice, gateway)
    materialize(MaterializeRequest(asset=flights, selection="2013-01-02"), user=alice)
    group = rerun(run, user=alice)
    assert (group.in_flight, group.runs.get().partition_count) == (["2013-01-02"], 2)
    with pytest.raises(
        ConflictingRequest, match="another run is materializing raw_flights 2013-01-01"
    ):
        rerun(run, user=alice)


def test_a_run_that_goes_on_is_not_run_again(alice: User, gateway: Gateway, flights: Asset) -> None:
    attempt = begun(flights, alice, gateway)
    with pytest.raises(ConflictingRequest, match="has not ended yet"):
        rerun(attempt.run, user=alice)


def test_a_viewer_retries_nothing(alice: User, gateway: Gateway, flights: Asset) -> None:
    run, vera = failed(flights, alice, gateway), person("vera", Role.VIEWER)
    for again in (retry_run, rerun):
        with pytest.raises(PermissionDenied, match="needs the role operator"):
            again(run, user=vera)


@pytest.mark.django_db(transaction=True)
def test_dispatch_is_told_of_a_retry(
    alice: User, gateway: Gateway, flights: Asset, sent: list[tuple[str, Any, str]]
) -> None:
    run = failed(flights, alice, gateway)
    sent.clear()
    retry_run(run, user=alice)
    assert messages.SEND_QUEUED in [task for task, *_ in sent]
    assert run.queued_at
    assert run.queued_at <= timezone.now()


@pytest.mark.django_db(transaction=True)
def test_of_two_that_retry_a_run_at_once_one_does(
    alice: User, gateway: Gateway, flights: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a slow machine the first retry keeps the run locked for longer than a request waits.
    monkeypatch.setattr(patience, "_LONGEST_WAIT", "60s")
    run = failed(flights, alice, gateway)

    def retry(_: int) -> str:
        try:
            retry_run(Run.objects.get(pk=run.pk), user=alice)
        except ConflictingRequest as refused:
            return str(refused)
        finally:
            connection.close()
        return "queued"

    with ThreadPoolExecutor(4) as threads:
        answers = sorted(threads.map(retry, range(4)))
    assert answers[0] == f"Run {run.pk} is queued: it has not ended yet."
    assert answers.count("queued") == 1
    assert AuditEntry.objects.filter(action="retry").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_retry_beside_a_retry_with_newer_code_still_finds_the_run(
    alice: User, gateway: Gateway, flights: Asset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_LONGEST_WAIT", "60s")
    run = failed(flights, alice, gateway)
    newest = new_version(flights)
    refusals: list[str] = []

    def retry() -> None:
        try:
            retry_run(Run.objects.get(pk=run.pk), user=alice)
        except ConflictingRequest as refusal:
            refusals.append(str(refusal))

    with transaction.atomic():
        assert retry_run(run, code="newest", user=alice).producer_version == newest
        thread = elsewhere(retry)
        wait_for_end_or_lock(thread)
    thread.join()
    assert refusals == [f"Run {run.pk} is queued: it has not ended yet."]
