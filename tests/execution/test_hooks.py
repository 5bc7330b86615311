"""Hooks after a run: the time and number of calls, and the harmlessness of failures."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.intending import PartialFailure
from assets_app.execution.gateway import calling, recovery
from assets_app.execution.queue import hooks, messages
from assets_app.execution.queue.control import cancel_run
from assets_app.execution.request.retrying import retry_run
from assets_app.models import Gateway, Run, RunAttempt, RunHook, RunLog, RunState
from slicewise.runner.parent_client import WarmParentError
from tests.attempts import begin_next, begun, publish, staged
from tests.execution.conftest import lose_the_worker, make_gateway
from tests.factories import DAILY_2013, asset, outlet_of

Message = dict[str, Any]
Sent = list[tuple[str, tuple[Any, ...], str]]
BOTH = {"on_success": "cheer", "on_failure": "mourn"}
NO = Failure(error="ValueError: no", traceback="…")
FINISHED: list[Message] = [{"type": "finished"}, {"type": "exited", "status": 0, "signal": None}]


class Runner:
    """The runner of a call: it sends the given messages, and then ends or is killed."""

    def __init__(self, messages: list[Message]) -> None:
        self._said, self.killed, self.pings = messages, False, 0

    def messages(self, timeout: float) -> Iterator[Message]:
        for message in self._said:
            if self.killed:
                yield {"type": "exited", "status": -9, "signal": 9}
                return
            yield message

    def ping(self) -> None:
        self.pings += 1

    def kill(self) -> None:
        self.killed = True


class Worker:
    """A worker whose warm parent forks nothing, and remembers the requests."""

    def __init__(self) -> None:
        self.parent, self.going_down, self.spark_away = self, Event(), Event()
        self.called: list[Message] = []
        self.said = FINISHED
        self.refuses: Callable[[], None] = lambda: None
        self.runner = Runner([])

    def start(self) -> None:
        """Do nothing: the warm parent is ready."""

    def call_hook(self, request: Message) -> Runner:
        self.called.append(request)
        self.refuses()
        self.runner = Runner(self.said)
        return self.runner


@pytest.fixture
def worker(settings: Any, tmp_path: Path) -> Iterator[Worker]:
    settings.DATA_FOLDER = tmp_path
    played = Worker()
    with patch.object(calling, "current", lambda: played):
        yield played


@pytest.fixture
def attempt(alice: User, gateway: Gateway) -> Attempt:
    return begin(alice, gateway)


def begin(alice: User, gateway: Gateway, **options: Any) -> Attempt:
    flights = asset("raw_flights", DAILY_2013, options={**BOTH, **options})
    return begun(flights, alice, gateway, "2013-01-01..2013-01-03", strategy="range")


def begin_again(run: Run, gateway: Gateway) -> Attempt:
    Run.objects.update(not_before=None)
    return begin_next(run, gateway)


def left() -> list[tuple[int, str]]:
    """Return the hooks that are left to call, by the number of the attempt."""
    return list(RunHook.objects.order_by("pk").values_list("attempt__number", "option"))


def log_of(attempt: RunAttempt) -> str:
    return "".join(RunLog.objects.filter(attempt=attempt).values_list("text", flat=True))


def test_a_recorded_run_has_its_success_told_to_its_workers(
    attempt: Attempt, sent: Sent, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        publish(attempt)
    hook = RunHook.objects.get()
    assert left() == [(1, "on_success")]
    assert [row for row in sent if row[0] == messages.CALL_HOOK] == [
        (messages.CALL_HOOK, (hook.pk,), "scheduled")
    ]


def test_nothing_is_left_to_call_where_nothing_is_declared(alice: User, gateway: Gateway) -> None:
    ending.fail(begun(asset("raw_flights", DAILY_2013), alice, gateway).row, NO)
    assert Run.objects.get().state == RunState.FAILED
    assert left() == []


def test_a_failure_is_told_after_the_last_attempt_alone(alice: User, gateway: Gateway) -> None:
    first = begin(alice, gateway, retries=1)
    assert ending.fail(first.row, NO)
    assert left() == []
    assert ending.fail(begin_again(first.run, gateway).row, NO)
    assert left() == [(2, "on_failure")]


def test_an_attempt_that_is_told_to_fail_twice_leaves_one_call(attempt: Attempt) -> None:
    assert [ending.fail(attempt.row, NO), ending.fail(attempt.row, NO)] == [True, False]
    assert left() == [(1, "on_failure")]


def test_nothing_is_called_after_a_cancellation(attempt: Attempt, alice: User) -> None:
    cancel_run(attempt.run, user=alice)
    assert ending.cancel(attempt.row)
    assert Run.objects.get().state == RunState.CANCELED
    assert left() == []


def test_a_run_that_keeps_a_part_of_what_it_made_has_failed(attempt: Attempt) -> None:
    partly = PartialFailure(error="ValueError: no", traceback="…", reasons={"2013-01-02": "fog"})
    published_partitions = [
        partition for partition in staged(attempt) if partition["key"] != "2013-01-02"
    ]
    assert attempts.intend_to_publish(
        attempt.row, [outlet_of(attempt, published_partitions)], partly=partly
    )
    published = {attempt.run.asset_id: [partition["path"] for partition in published_partitions]}
    assert ending.fail_publishing(attempt.row, NO, published)
    assert left() == [(1, "on_failure")]


def test_a_run_that_loses_its_worker_too_often_has_its_failure_told(attempt: Attempt) -> None:
    Run.objects.update(lost_attempts=settings.LOST_ATTEMPTS_LIMIT - 1)
    lose_the_worker()
    assert recovery.recover() == 1
    assert left() == [(1, "on_failure")]


def test_each_end_of_a_retried_run_is_told(attempt: Attempt, alice: User, gateway: Gateway) -> None:
    ending.fail(attempt.row, NO)
    retry_run(Run.objects.get(), user=alice)
    publish(begin_again(attempt.run, gateway))
    assert left() == [(1, "on_failure"), (2, "on_success")]


def test_it_is_called_once_whatever_it_is_told(attempt: Attempt, worker: Worker) -> None:
    ending.fail(attempt.row, NO)
    hook = RunHook.objects.get()
    calling.call_hook(hook.pk)
    calling.call_hook(hook.pk)
    (request,) = worker.called
    days = [f"2013-01-0{day}" for day in (1, 2, 3)]
    assert (request["hook"], request["error"]) == ("on_failure", "ValueError: no")
    assert (request["partitions"], request["asset"]) == (days, "raw_flights")
    assert (request["run_id"], request["attempt"]) == (attempt.run.pk, 1)


def test_of_two_workers_that_are_told_one_calls_it(attempt: Attempt, worker: Worker) -> None:
    publish(attempt)
    hook = RunHook.objects.get()
    # The other one was as far as this one when this one took it.
    with patch.object(worker, "start", lambda: RunHook.objects.update(begun_at=timezone.now())):
        calling.call_hook(hook.pk)
    assert worker.called == []


def test_a_worker_that_goes_down_leaves_it_to_others(attempt: Attempt, worker: Worker) -> None:
    publish(attempt)
    worker.going_down.set()
    calling.call_hook(RunHook.objects.get().pk)
    assert (worker.called, RunHook.objects.get().begun_at) == ([], None)


def test_output_of_a_hook_follows_the_output_of_the_run(attempt: Attempt, worker: Worker) -> None:
    RunLog.objects.create(attempt=attempt.row, sequence=7, text="the run\n")
    publish(attempt)
    worker.said = [{"type": "log", "text": "hurrah\n"}, *FINISHED]
    calling.call_hook(RunHook.objects.get().pk)
    # A worker that was taken for lost may still have something to write.
    RunLog.objects.create(attempt=attempt.row, sequence=8, text="late\n")
    assert log_of(attempt.row) == "the run\nlate\n[on_success: cheer is called]\nhurrah\n"


@pytest.mark.parametrize(
    ("messages", "shown"),
    [
        (
            [
                {
                    "type": "failed",
                    "kind": "code",
                    "error": "OSError: no",
                    "traceback": "lines of it",
                }
            ],
            "lines of it\n[on_success failed: OSError: no]\n",
        ),
        (
            [{"type": "exited", "status": 3, "signal": None}],
            "[on_success ended its process with status 3 before it had finished]\n",
        ),
        (
            [{"type": "exited", "status": -9, "signal": 9}],
            "[on_success was ended by SIGKILL before it had finished]\n",
        ),
    ],
)
def test_its_failure_stands_in_the_log_and_changes_nothing_else(
    attempt: Attempt, worker: Worker, messages: list[Message], shown: str
) -> None:
    publish(attempt)
    before = Run.objects.values().get(), RunAttempt.objects.values().get()
    worker.said = messages
    calling.call_hook(RunHook.objects.get().pk)
    assert log_of(attempt.row) == f"[on_success: cheer is called]\n{shown}"
    assert (Run.objects.values().get(), RunAttempt.objects.values().get()) == before
    hooks.resend_hooks()
    calling.call_hook(RunHook.objects.get().pk)
    assert len(worker.called) == 1


def test_one_that_takes_too_long_is_stopped(
    attempt: Attempt, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "CALL_SECONDS", 0.0)
    publish(attempt)
    worker.said = [{"type": "idle"}] * 100
    calling.call_hook(RunHook.objects.get().pk)
    assert worker.runner.killed
    assert log_of(attempt.row).endswith("[on_success took longer than 0 s and was stopped]\n")


def test_it_is_pinged_as_long_as_it_may_take(
    attempt: Attempt, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "_PING_SECONDS", 0.0)
    publish(attempt)
    worker.said = [{"type": "idle"}, {"type": "idle"}, *FINISHED]
    calling.call_hook(RunHook.objects.get().pk)
    assert (worker.runner.pings >= 2, worker.runner.killed) == (True, False)


def test_a_warm_parent_that_takes_no_request_is_told_in_the_log(
    attempt: Attempt, worker: Worker
) -> None:
    def refuse() -> None:
        raise WarmParentError("it takes no request")

    publish(attempt)
    worker.refuses = refuse
    calling.call_hook(RunHook.objects.get().pk)
    assert "[on_success could not be called: it takes no request]" in log_of(attempt.row)


def test_a_hook_that_fails_before_its_start_is_tried_again(
    attempt: Attempt, worker: Worker
) -> None:
    publish(attempt)
    with (
        patch.object(worker, "start", side_effect=WarmParentError("not now")),
        pytest.raises(WarmParentError),
    ):
        calling.call_hook(RunHook.objects.get().pk)
    calling.call_hook(RunHook.objects.get().pk)
    assert len(worker.called) == 1


def test_a_call_that_cannot_be_put_together_is_given_up_after_an_hour(
    attempt: Attempt, worker: Worker
) -> None:
    publish(attempt)
    hook = RunHook.objects.get()
    with patch.object(calling, "_request", side_effect=LookupError("no such definition")):
        with pytest.raises(LookupError):
            calling.call_hook(hook.pk)
        assert not RunHook.objects.get().begun_at
        RunAttempt.objects.update(ended_at=timezone.now() - timedelta(hours=2))
        RunHook.objects.update(sent_at=timezone.now() - 2 * hooks.RESEND_AFTER)
        assert hooks.resend_hooks() == 1
        calling.call_hook(hook.pk)
    RunHook.objects.update(sent_at=timezone.now() - 2 * hooks.RESEND_AFTER)
    assert hooks.resend_hooks() == 0
    log_line = "[on_success was not called: LookupError: no such definition]\n"
    assert (log_of(attempt.row), worker.called) == (log_line, [])


def test_workers_are_told_again_of_what_nobody_has_begun(
    attempt: Attempt, worker: Worker, sent: Sent
) -> None:
    publish(attempt)
    hook = RunHook.objects.get()
    assert hooks.resend_hooks() == 0
    for off in (-2, 2):  # lost, or sent before the clock was set back
        RunHook.objects.update(sent_at=timezone.now() + off * hooks.RESEND_AFTER)
        sent.clear()
        assert hooks.resend_hooks() == 1
        assert sent == [(messages.CALL_HOOK, (hook.pk,), "scheduled")]
        assert hooks.resend_hooks() == 0
    calling.call_hook(hook.pk)
    RunHook.objects.update(sent_at=timezone.now() - 2 * hooks.RESEND_AFTER)
    assert hooks.resend_hooks() == 0


def test_nobody_is_told_where_no_worker_is(attempt: Attempt, sent: Sent) -> None:
    publish(attempt)
    RunHook.objects.update(sent_at=timezone.now() - 2 * hooks.RESEND_AFTER)
    Gateway.objects.all().update(draining=True)
    make_gateway("backfill")
    assert hooks.resend_hooks() == 0
    Gateway.objects.all().update(draining=False)
    assert hooks.resend_hooks() == 1
