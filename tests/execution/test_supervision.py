"""A worker's handling of one run; the runner and Spark are played."""

import json
import socket
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.conf import settings
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from accounts_app.models import User
from assets_app.execution.attempt import attempts
from assets_app.execution.attempt.inputs import UpstreamInput
from assets_app.execution.attempt.intending import DiscoveredKeysHeld
from assets_app.execution.attempt.retry_pauses import retry_delay
from assets_app.execution.gateway import clearing, recovery, supervision
from assets_app.execution.gateway.recovery import recover
from assets_app.execution.gateway.worker import Watched
from assets_app.execution.queue import messages
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.queue.dispatch import dispatch
from assets_app.models import FailureKind, Gateway, Lease, Run, RunAttempt, RunState
from assets_app.queries.clock import database_now
from slicewise import storage
from slicewise.plugins import PluginError
from slicewise.runner.parent_client import RequestTooLargeError
from slicewise.storage import StorageError, TryAgainError, UnfitFileSystemError
from tests.attempts import begin_next
from tests.clients import browser_of
from tests.execution.conftest import lose_the_worker, make_gateway
from tests.supervised_runs import (
    BY_CODE,
    BY_PLATFORM,
    ENDED,
    KILLED,
    SPARK,
    UNRENEWED,
    Message,
    Worker,
    change_options,
    execute,
    root,
    run,
    spark,
    worker,
)

__all__ = ["root", "run", "spark", "worker"]


def begin(run: Run, worker: Worker) -> RunAttempt:
    """Begin an attempt that sends no further heartbeat."""
    return begin_next(run, worker.gateway).row


def stage(root: Path, attempt: RunAttempt) -> Path:
    names = (attempt.run_id, attempt.name_on_disk, attempt.fence)
    folder = storage.staging_path(root, *names, partitioned=True)
    (folder / "partition=2013-01-01").mkdir(parents=True)
    return folder


def sessions() -> list[str]:
    ids = RunAttempt.objects.order_by("number").values_list("spark_session_id", flat=True)
    return [str(session) for session in ids]


def canceling(worker: Worker, run: Run, user: User) -> Callable[[], None]:
    """Return a function that cancels the run, as a person does while the code is at work."""

    def cancel() -> None:
        cancel_run(run, user=user)
        assert worker.watched is not None
        worker.watched.cancel_requested.set()

    return cancel


def test_a_canceled_run_is_canceled_once_its_session_is_stopped(
    run: Run, worker: Worker, alice: User
) -> None:
    worker.said, worker.meanwhile = [*SPARK, KILLED], canceling(worker, run, alice)
    assert execute(run).state == RunState.CANCELED
    assert worker.interrupted == sessions()


def test_a_run_that_opened_no_session_is_canceled_without_spark(
    run: Run, worker: Worker, alice: User
) -> None:
    worker.said, worker.meanwhile = [KILLED], canceling(worker, run, alice)
    worker.silent = True
    assert execute(run).state == RunState.CANCELED
    assert worker.interrupted == []


def test_with_its_spark_server_gone_a_run_is_canceled(
    run: Run, worker: Worker, alice: User, spark: socket.socket
) -> None:
    spark.close()
    worker.said, worker.meanwhile = [*SPARK, KILLED], canceling(worker, run, alice)
    worker.silent = True
    assert execute(run).state == RunState.CANCELED


def test_with_its_spark_server_gone_meanwhile_a_run_is_canceled(
    run: Run, worker: Worker, alice: User, spark: socket.socket
) -> None:
    worker.said, worker.meanwhile = [*SPARK, KILLED], canceling(worker, run, alice)
    worker.silent, worker.while_interrupted = True, spark.close
    assert execute(run).state == RunState.CANCELED


def test_a_spark_server_that_is_silent_keeps_a_run_canceling_until_it_speaks(
    run: Run, worker: Worker, alice: User
) -> None:
    worker.said, worker.meanwhile = [*SPARK, KILLED], canceling(worker, run, alice)
    worker.silent = True
    assert execute(run).state == RunState.CANCELING
    row = RunAttempt.objects.get()
    recovery.stop_lost_attempt(row.pk, str(row.token))
    assert Run.objects.get().state == RunState.CANCELING
    worker.silent = False
    # Who was asked before comes too late: it is not their turn any more.
    recovery.stop_lost_attempt(row.pk, str(row.token))
    assert Run.objects.get().state == RunState.CANCELING
    row.refresh_from_db()
    recovery.stop_lost_attempt(row.pk, str(row.token))
    assert Run.objects.get().state == RunState.CANCELED


def test_a_worker_that_goes_down_hands_back_whatever_spark_says(run: Run, worker: Worker) -> None:
    worker.said, worker.meanwhile = [*SPARK, KILLED], worker.going_down.set
    worker.silent = True
    assert execute(run).state == RunState.QUEUED
    assert RunAttempt.objects.get().outcome == "lost"


def test_a_session_that_the_platform_failed_in_is_stopped_before_the_next_attempt(
    run: Run, worker: Worker
) -> None:
    worker.said, worker.silent = [*SPARK, BY_PLATFORM, ENDED], True
    assert execute(run).state == RunState.QUEUED
    # Not stopped yet, and so nothing is launched.
    assert execute(run).state == RunState.QUEUED
    assert len(worker.launched) == 1
    worker.silent = False
    execute(run)
    assert len(worker.launched) == 2
    assert set(worker.interrupted[:3]) == {sessions()[0]}


def test_a_host_without_memory_for_a_process_is_no_failure_of_the_code(
    run: Run, worker: Worker
) -> None:
    worker.said = [{**ENDED, "error": "fork: Cannot allocate memory"}]
    assert execute(run).state == RunState.QUEUED
    assert run.error == "No process for the run could be started: fork: Cannot allocate memory"
    assert (run.platform_failures, run.code_failures) == (1, 0)


def test_a_process_that_is_killed_each_time_fails_in_the_end(run: Run, worker: Worker) -> None:
    worker.said = [KILLED]
    for lost in range(1, settings.LOST_ATTEMPTS_LIMIT):
        assert execute(run).state == RunState.QUEUED
        assert run.lost_attempts == lost
    assert execute(run).state == RunState.FAILED
    assert "SIGKILL" in run.error


def test_the_resources_of_an_attempt_are_on_the_page_and_in_the_api(
    run: Run, worker: Worker, alice: User
) -> None:
    worker.said = [{**ENDED, "usage": {"cpu_seconds": 42.5, "peak_memory": 300 << 20}}]
    assert execute(run).state == RunState.FAILED
    browser = browser_of(alice)
    page = browser.get(f"/runs/{run.pk}/").content.decode()
    for text in ("CPU time", "42\xa0s", "Peak memory", "300.0\xa0MB"):
        assert text in page
    (attempt,) = browser.get(f"/api/v1/runs/{run.pk}/").json()["attempts"]
    assert (attempt["cpu_seconds"], attempt["peak_memory"]) == (42.5, 300 << 20)


def test_an_attempt_whose_end_no_worker_saw_has_used_an_unknown_amount(
    run: Run, worker: Worker
) -> None:
    worker.said = [ENDED]
    assert execute(run).state == RunState.FAILED
    attempt = run.attempts.get()
    assert (attempt.cpu_seconds, attempt.peak_memory) == (None, None)


@pytest.mark.parametrize("timeout", [None, 0.01])
def test_a_worker_that_cannot_renew_its_lease_costs_the_run_no_loss(
    run: Run, worker: Worker, timeout: float | None
) -> None:
    """The timeout passes while the worker waits for the database."""
    change_options(timeout=timeout)
    worker.said, worker.meanwhile = [*SPARK, UNRENEWED], lambda: time.sleep(0.02)
    for tries in range(1, settings.LOST_ATTEMPTS_LIMIT + 2):
        assert execute(run).state == RunState.QUEUED
        assert (run.platform_failures, run.lost_attempts, run.code_failures) == (tries, 0, 0)
    assert run.error == (
        "The process of the run was ended, since its worker could not renew the lease of the run"
        " for 80 s: the database was away, or the worker was stopped."
    )
    assert set(worker.interrupted) == set(sessions())


def test_a_run_whose_database_is_away_for_hours_fails_in_the_end(
    run: Run, worker: Worker, settings: Any
) -> None:
    settings.PLATFORM_RETRY_HOURS = 3 / 3600
    worker.said = [UNRENEWED]
    while execute(run).state == RunState.QUEUED:
        assert run.platform_failures < 5
    assert (run.state, run.platform_failures, run.lost_attempts) == (RunState.FAILED, 3, 0)


@pytest.mark.parametrize("said_before", [[], [BY_PLATFORM]])
def test_a_run_that_had_more_than_its_limit_fails_by_its_own_fault(
    run: Run, worker: Worker, said_before: list[Message]
) -> None:
    worker.said = [
        *said_before,
        {**KILLED, "excess": "The run had 3 GiB in memory, and its limit is 2 GiB."},
    ]
    assert execute(run).state == RunState.FAILED
    assert run.error == "The run had 3 GiB in memory, and its limit is 2 GiB."
    assert (run.error_kind, run.lost_attempts) == (FailureKind.CODE, 0)


@pytest.mark.parametrize(
    ("own_limit", "server_s", "expected", "by"),
    [
        (None, None, None, "setting SLICEWISE_RUN_MEMORY of the server"),
        (100, None, 100, "memory= of the asset"),
        (None, 200, 200, "setting SLICEWISE_RUN_MEMORY of the server"),
        (100, 200, 100, "memory= of the asset"),
        (300, 200, 200, "setting SLICEWISE_RUN_MEMORY of the server"),
    ],
)
def test_the_lower_limit_of_memory_holds(
    run: Run,
    worker: Worker,
    settings: Any,
    own_limit: int | None,
    server_s: int | None,
    expected: int | None,
    by: str,
) -> None:
    settings.RUN_MEMORY = server_s
    version = run.producer_version
    version.definition |= {} if own_limit is None else {"memory": own_limit}
    version.save()
    execute(run)
    assert worker.launched[0]["limits"] == {
        "memory": expected,
        "memory_by": by,
        "processes": 4096,
        "open_files": 65_536,
        "in_group": False,
    }


def test_while_spark_is_away_nothing_begins_that_needs_it(
    run: Run, worker: Worker, gateway: Gateway
) -> None:
    worker.spark_away.set()
    assert execute(run).state == RunState.QUEUED
    assert (run.attempt_count, run.platform_failures, run.dispatched_at) == (0, 0, None)
    assert worker.launched == []
    # Once it is known of all gateways of the queue, it is not sent to any.
    Run.objects.update(not_before=None)
    Gateway.objects.update(spark_away_since=timezone.now())
    assert dispatch() == 0
    version = run.producer_version
    version.definition["engine"] = "submit"
    version.save()
    assert dispatch() == 1
    supervision.execute(run.pk)
    assert RunAttempt.objects.get().engine == "submit"


def test_one_gateway_that_reaches_spark_is_enough(run: Run, worker: Worker) -> None:
    Gateway.objects.update(spark_away_since=timezone.now())
    assert dispatch() == 0
    make_gateway("scheduled", name="second@test")
    assert dispatch() == 1


def test_a_failure_by_code_has_closed_its_session_itself(run: Run, worker: Worker) -> None:
    worker.said = [*SPARK, BY_CODE, ENDED]
    assert execute(run).state == RunState.FAILED
    assert worker.interrupted == []


def test_the_next_attempt_clears_away_what_a_lost_one_has_left(
    run: Run, worker: Worker, root: Path
) -> None:
    lost = begin(run, worker)
    staging = stage(root, lost)
    lose_the_worker()
    recover()
    execute(run)
    assert worker.interrupted[0] == str(lost.spark_session_id)
    assert not staging.exists()


def test_staged_data_of_a_lost_and_canceled_run_is_removed(
    run: Run, worker: Worker, root: Path, alice: User
) -> None:
    lost = begin(run, worker)
    staging = stage(root, lost)
    cancel_run(run, user=alice)
    recovery.stop_lost_attempt(lost.pk, str(lost.token))
    assert Run.objects.get().state == RunState.CANCELED
    assert not staging.exists()


def test_who_stops_a_lost_attempt_holds_it_and_finds_what_it_has_left_on_this_host(
    run: Run, worker: Worker, alice: User
) -> None:
    lost = begin(run, worker)
    cancel_run(run, user=alice)
    tokens: list[Any] = []
    real = clearing.clear_away

    def clear_away(parent: Any, attempt: RunAttempt, *rest: Any) -> None:
        tokens.append((attempt.token, worker.watched and worker.watched.attempt.token))
        real(parent, attempt, *rest)

    with patch.object(recovery, "clear_away", clear_away):
        recovery.stop_lost_attempt(lost.pk, str(lost.token))
    assert tokens == [(lost.token, RunAttempt.objects.get().token)]
    assert lost.token != RunAttempt.objects.get().token


def test_a_run_that_recovery_fails_is_cleared_away_by_a_gateway(
    run: Run,
    worker: Worker,
    root: Path,
    sent: list[Any],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    lost = begin(run, worker)
    staging = stage(root, lost)
    Run.objects.update(lost_attempts=settings.LOST_ATTEMPTS_LIMIT - 1)
    lose_the_worker()
    with django_capture_on_commit_callbacks(execute=True):
        recover()
    assert Run.objects.get().state == RunState.FAILED
    (clear_message,) = [row for row in sent if row[0] == messages.CLEAR_LOST_ATTEMPT]
    assert clear_message == (messages.CLEAR_LOST_ATTEMPT, (lost.pk,), "scheduled")
    recovery.clear_lost_attempt(lost.pk)
    assert worker.interrupted == [str(lost.spark_session_id)]
    assert not staging.exists()


def test_a_run_whose_found_partition_another_one_makes_is_tried_until_that_has_ended(
    run: Run, worker: Worker
) -> None:
    worker.said = [{"type": "finished"}, ENDED]
    refusal = DiscoveredKeysHeld("Another run is materializing raw_flights acme.")
    with patch.object(attempts, "intend_to_publish", side_effect=refusal):
        for _ in range(9):
            assert execute(run).state == RunState.QUEUED
        assert (run.platform_failures, run.code_failures) == (0, 0)
        assert run.error == str(refusal)
        assert run.not_before is not None
        assert run.queued_at is not None
        assert run.not_before >= run.queued_at + timedelta(seconds=5)
        Run.objects.update(
            started_at=timezone.now() - timedelta(hours=7),
            platform_failures=1_000_000,
        )
        assert execute(run).state == RunState.FAILED


def test_nothing_is_launched_once_the_lease_is_lost(run: Run, worker: Worker) -> None:
    begin(run, worker)
    lose_the_worker()
    recover()
    worker.while_interrupted = lambda: void(
        RunAttempt.objects.filter(ended_at=None).update(token=uuid4())
    )
    assert execute(run).state == RunState.RUNNING
    assert worker.launched == []


def test_the_lease_is_renewed_before_there_is_a_runner(run: Run, worker: Worker) -> None:
    begin(run, worker)
    lose_the_worker()
    recover()
    watched_attempts: list[Watched | None] = []
    worker.while_interrupted = lambda: watched_attempts.append(worker.watched)
    take_inputs = attempts.take_inputs

    def take(attempt: attempts.Attempt) -> list[UpstreamInput]:
        watched_attempts.append(worker.watched)
        return take_inputs(attempt)

    with patch.object(attempts, "take_inputs", take):
        execute(run)
    current = RunAttempt.objects.latest("number")
    assert [watched and watched.attempt for watched in watched_attempts] == [current, current]
    assert worker.watched is None


def test_the_lease_begins_anew_when_the_runner_is_launched(run: Run, worker: Worker) -> None:
    begin(run, worker)
    lose_the_worker()
    recover()
    worker.while_interrupted = lose_the_worker
    remaining_times: list[timedelta] = []
    worker.meanwhile = lambda: remaining_times.append(Lease.objects.get().until - timezone.now())
    execute(run)
    assert remaining_times[0] > timedelta(seconds=5)


@pytest.mark.parametrize(
    ("error", "state", "kind"),
    [
        (OverflowError("cannot convert float infinity to integer"), RunState.FAILED, "code"),
        (LookupError("no mapping 'fiscal'"), RunState.QUEUED, "platform"),
        (
            PluginError("the package that has 'fiscal' is not installed"),
            RunState.QUEUED,
            "platform",
        ),
    ],
)
def test_whatever_keeps_the_inputs_from_being_read_is_a_failure_with_a_sentence(
    run: Run, worker: Worker, error: Exception, state: str, kind: str
) -> None:
    with patch.object(attempts, "read_inputs", side_effect=error):
        assert execute(run).state == state
    assert str(error) in run.error
    assert run.error_kind == kind
    assert worker.launched == []
    assert RunAttempt.objects.get().outcome == "failed"


def test_a_run_of_which_a_runner_cannot_be_told_fails_at_once_with_the_reason(
    run: Run, worker: Worker
) -> None:
    with patch.object(worker, "launch", side_effect=RequestTooLargeError(100_000_000)):
        assert execute(run).state == "failed"
    assert "take 100,000,000 bytes" in run.error
    assert run.error_kind == "code"


def test_a_message_that_no_worker_understands_fails_the_run_and_not_its_thread(
    run: Run, worker: Worker
) -> None:
    spoiled = {"type": "validated", "when": [], "asset": {}, "results": [1]}
    worker.said = [*SPARK, {**BY_CODE, "kind": "no such kind"}, spoiled, KILLED]
    assert execute(run).state == RunState.QUEUED
    assert "'no such kind' is not a valid FailureKind" in run.error
    assert run.platform_failures == 1


@pytest.mark.parametrize(
    "message",
    [
        {"type": "discovered", "set": "\ud800", "keys": ["k"]},
        {"type": "discovered", "set": "\0", "keys": ["k"]},
        {"type": "discovered", "set": "s", "keys": [10**4000]},
        {"type": "discovered", "set": "s", "keys": [{"float": "nan"}, {"tuple": ["\ud800"]}]},
        {"type": "unmade", "partitions": [{"key": "\ud800", "error": "\ud800"}]},
        {"type": "step", "step": "function", "state": "running", "error": "\ud800"},
    ],
    ids=lambda message: json.dumps(message)[:50],
)
def test_values_that_a_message_may_have_and_the_database_may_not_are_the_code_s_fault(
    run: Run, worker: Worker, message: Message
) -> None:
    worker.said = [*SPARK, message, {**BY_CODE, "error": "\ud800\0"}, KILLED]
    assert execute(run).state == RunState.FAILED
    assert run.error_kind == FailureKind.CODE


def test_the_pause_before_a_retry_has_an_end_however_many_there_were(run: Run) -> None:
    definition = run.producer_version.definition
    definition["retries"], definition["retry_delay"] = 10_000, 30
    for failures in (0, 7, 43, 5000):
        run.code_failures = failures
        delay = retry_delay(run, FailureKind.CODE)
        assert delay == min(timedelta(seconds=30 * 2 ** min(failures, 20)), timedelta(hours=1))


@pytest.mark.parametrize("seconds", [1e30, timedelta.max.total_seconds(), 7200.0])
def test_a_version_on_record_whose_pause_is_too_long_ends_its_attempts(
    run: Run, worker: Worker, seconds: float
) -> None:
    version = run.producer_version
    version.definition |= {"retries": 1, "retry_delay": seconds}
    version.save()
    worker.said = [*SPARK, BY_CODE, KILLED]
    assert execute(run).state == RunState.QUEUED
    attempt = RunAttempt.objects.get()
    assert attempt.outcome == "failed"
    assert attempt.ended_at is not None
    assert run.not_before is not None
    assert timedelta() < run.not_before - attempt.ended_at <= timedelta(hours=1)


def test_a_runner_is_told_the_time_of_the_database(run: Run, worker: Worker) -> None:
    execute(run)
    (request,) = worker.launched
    clock, passed_since = request["clock"], time.monotonic() - request["clock"]["monotonic"]
    assert 0 <= passed_since < 60
    now = datetime.fromisoformat(clock["database"]) + timedelta(seconds=passed_since)
    assert abs(now - database_now()) < timedelta(minutes=1)


def void(_: object) -> None:
    """Return None: this function replaces functions without a result."""


def test_a_run_whose_file_system_cannot_publish_fails_before_its_code_runs(
    run: Run, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(place: Any) -> None:
        raise UnfitFileSystemError("exchange two folders in one step", Path("/mnt/lake"))

    monkeypatch.setattr("slicewise.io.file.FileStorage.refuse_unfit_location", refuse)
    assert execute(run).state == RunState.FAILED
    assert run.error.startswith(
        "Nothing could be published: the file system of /mnt/lake cannot exchange two folders"
    )
    assert worker.launched == []


@pytest.mark.parametrize("error", [StorageError("s3://lake: 403"), TryAgainError("s3://lake: 503")])
def test_a_run_whose_place_cannot_be_tried_is_begun_again_by_the_platform(
    run: Run, worker: Worker, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(place: Any) -> None:
        raise error

    monkeypatch.setattr("slicewise.io.file.FileStorage.refuse_unfit_location", refuse)
    assert execute(run).state == RunState.QUEUED
    attempt = RunAttempt.objects.get()
    assert attempt.error.startswith("Slicewise cannot determine whether data could be published: ")
    assert "s3://lake" in attempt.error
    assert worker.launched == []
