"""Steps of a run with a set-up and a tear-down, as a worker records what the runner reports."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from django.db import IntegrityError, transaction

from accounts_app.models import User
from assets_app.execution.attempt import ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.outputs import Output
from assets_app.execution.attempt.steps import StepReports, settle_steps
from assets_app.execution.gateway import recovery, run_stops, supervised_run
from assets_app.models import (
    AttemptStep,
    FailureKind,
    Gateway,
    Run,
    RunAttempt,
    RunLog,
    RunState,
    StepKind,
    StepState,
)
from slicewise.running.steps import STATES, STEPS
from tests.attempts import begun, publish
from tests.execution.conftest import lose_the_worker
from tests.factories import DAILY_2013, asset
from tests.supervised_runs import (
    BY_CODE,
    ENDED,
    KILLED,
    UNRENEWED,
    Message,
    Worker,
    change_options,
    execute,
    request_day,
    root,
    spark,
    worker,
)

__all__ = ["root", "spark", "worker"]

BOTH = {"setup": "cluster", "teardown": "close"}
TERMINATED = {"type": "exited", "status": -15, "signal": 15}
Script = list[Message | Callable[[], None]]


def step(name: str, state: str, error: str = "") -> Message:
    return {"type": "step", "step": name, "state": state, "error": error}


def done(*names: str) -> list[Message]:
    return [step(name, state) for name in names for state in ("running", "succeeded")]


IDLE: Message = {"type": "idle"}
AT_WORK: Script = [*done("setup"), step("function", "running")]
FAILS: Script = [step("function", "failed", "no"), BY_CODE]
FINISHES: Script = [step("function", "succeeded"), {"type": "finished"}]


class Runner:
    """A runner that follows a script: it sends messages, and calls functions in between."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.answers: list[Message] = []
        self.requests, self.is_killed, self._has_ended = 0, False, False

    def messages(self, timeout: float) -> Iterator[Message]:
        for action in self._script:
            if callable(action):
                action()
            else:
                yield action
        self._has_ended = True

    def answer(self, message: Message) -> None:
        self.answers.append(message)

    def stop(self) -> None:
        self.requests += 1

    def kill(self) -> None:
        # The worker kills what is left of each runner at last.
        self.is_killed = self.is_killed or not self._has_ended


def follow(run: Run, worker: Worker, *script: Message | Callable[[], None]) -> Runner:
    """Execute the run with a runner that follows the script."""
    runner = Runner(list(script))
    with patch.object(worker, "launch", lambda request: runner):
        execute(run)
    return runner


def steps_of(run: Run, number: int = 1) -> list[tuple[str, str, str]]:
    rows = AttemptStep.objects.filter(attempt__run=run, attempt__number=number)
    return list(rows.values_list("kind", "state", "error"))


class Clock:
    """The clock of the worker's deadlines, which a script puts forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._seconds = 0.0
        for module in (supervised_run, run_stops):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self._seconds))

    def later(self, seconds: float) -> Callable[[], None]:
        """Return an action that puts the clock forward."""

        def put_forward() -> None:
            self._seconds += seconds

        return put_forward


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, run: Run) -> Clock:
    change_options(timeout=60.0)
    return Clock(monkeypatch)


@pytest.fixture
def unchecked_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run finish without data."""
    monkeypatch.setattr(Output, "refuse_incomplete", lambda output: None)


def canceling(worker: Worker) -> Callable[[], None]:
    """Return an action by which a person cancels the run."""

    def cancel() -> None:
        assert worker.watched is not None
        Run.objects.update(state=RunState.CANCELING)
        worker.watched.cancel_requested.set()

    return cancel


@pytest.fixture
def run(alice: User, root: Path, worker: Worker) -> Run:
    made = request_day(root, alice)
    change_options(name="raw_flights", **BOTH)
    return made


def test_servers_and_runners_have_the_same_words() -> None:
    assert tuple(StepKind.values) == STEPS
    assert (*STATES, "not_run") == tuple(StepState.values)


def test_each_step_is_recorded_with_time_and_log(run: Run, worker: Worker) -> None:
    runner = follow(
        run,
        worker,
        step("setup", "running"),
        {"type": "log", "text": "four nodes\n"},
        step("setup", "succeeded"),
        {"type": "log", "text": "between\n"},
        step("function", "running"),
        {"type": "log", "text": "at work\n"},
        step("function", "failed", "ValueError: fog"),
        BY_CODE,
        *done("teardown"),
        ENDED,
    )
    assert steps_of(run) == [
        ("setup", "succeeded", ""),
        ("function", "failed", "ValueError: fog"),
        ("teardown", "succeeded", ""),
    ]
    rows = AttemptStep.objects.order_by("position")
    assert all(row.started_at and row.ended_at and row.started_at <= row.ended_at for row in rows)
    assert [row.name for row in rows] == ["cluster", "raw_flights", "close"]
    assert list(RunLog.objects.values_list("step", "text")) == [
        ("setup", "[setup: cluster is called]\nfour nodes\n"),
        ("", "between\n"),
        ("function", "[function: raw_flights is called]\nat work\n"),
        ("teardown", "[teardown: close is called]\n"),
    ]
    answers = [answer["outcome"] for answer in runner.answers]
    assert answers == [None, None, None, None, "failed", None]
    assert run.error == "no"


def test_a_process_that_is_killed_in_its_function_has_not_torn_down(
    run: Run, worker: Worker
) -> None:
    follow(run, worker, *done("setup"), step("function", "running"), KILLED)
    killed = "The process of the run was ended by SIGKILL."
    assert steps_of(run) == [
        ("setup", "succeeded", ""),
        ("function", "stopped", killed),
        ("teardown", "not_run", killed),
    ]


def test_a_process_whose_lease_was_not_renewed_has_not_torn_down(run: Run, worker: Worker) -> None:
    follow(run, worker, *done("setup"), step("function", "running"), UNRENEWED)
    _, (_, _, of_function), (_, _, of_teardown) = steps_of(run)
    assert "could not renew the lease of the run for 80 s" in of_function
    assert of_teardown == of_function


def test_a_lost_worker_has_not_torn_down(alice: User, gateway: Gateway) -> None:
    flights = asset("raw_flights", DAILY_2013, options={**BOTH, "name": "raw_flights"})
    attempt = begun(flights, alice, gateway, "2013-01-01")
    reports = StepReports(attempt.row)
    for message in (*done("setup"), step("function", "running")):
        reports.note(message)
        reports.store(message)
    lose_the_worker()
    assert recovery.recover() == 1
    lost = RunAttempt.objects.get().error
    assert lost
    assert steps_of(attempt.run) == [
        ("setup", "succeeded", ""),
        ("function", "stopped", lost),
        ("teardown", "not_run", lost),
    ]


def test_an_attempt_that_ends_before_its_code_runs_has_run_no_step(
    run: Run, worker: Worker
) -> None:
    follow(run, worker, {**BY_CODE, "error": "an inlet does not pass"}, ENDED)
    sentence = "The attempt ended before this step."
    assert steps_of(run) == [(kind, "not_run", sentence) for kind in STEPS]


def test_an_asset_without_them_has_no_steps(alice: User, root: Path, worker: Worker) -> None:
    run = request_day(root, alice)
    follow(run, worker, BY_CODE, ENDED)
    assert not AttemptStep.objects.exists()


def test_a_canceled_run_is_asked_to_end_and_tears_down(run: Run, worker: Worker) -> None:
    runner = follow(
        run, worker, *AT_WORK, canceling(worker), IDLE,
        step("function", "stopped"), BY_CODE, *done("teardown"), TERMINATED,
    )  # fmt: skip
    assert (runner.requests, runner.answers[-2]["outcome"]) == (1, "canceled")
    assert Run.objects.get().state == RunState.CANCELED
    assert [state for _, state, _ in steps_of(run)] == ["succeeded", "stopped", "succeeded"]


def test_a_run_that_somebody_else_ends_has_failed(run: Run, worker: Worker) -> None:
    ends = [step("function", "stopped"), *done("teardown"), TERMINATED]
    runner = follow(run, worker, *AT_WORK, *ends)
    assert (runner.requests, runner.answers[-2]["outcome"]) == (0, "failed")
    assert Run.objects.get().state == RunState.FAILED


def test_a_canceled_run_without_tear_down_is_killed_at_once(run: Run, worker: Worker) -> None:
    change_options(teardown=None)
    runner = follow(run, worker, step("setup", "running"), canceling(worker), IDLE, KILLED)
    assert (runner.requests, runner.is_killed) == (0, True)


def test_a_run_over_time_says_so_whatever_its_code_says_then(run: Run, worker: Worker) -> None:
    change_options(timeout=0.01)
    runner = follow(
        run, worker, *AT_WORK, lambda: time.sleep(0.02), IDLE, *FAILS, *done("teardown"),
        TERMINATED,
    )  # fmt: skip
    assert (runner.requests, runner.answers[-2]["outcome"]) == (1, "timed_out")
    assert run.error == "The run exceeded its timeout of 0.01 s and was stopped."


def test_a_run_that_has_failed_before_its_time_is_over_has_failed(
    run: Run, worker: Worker, clock: Clock
) -> None:
    early: Script = [clock.later(30), IDLE]
    late: Script = [clock.later(31), IDLE]
    runner = follow(run, worker, *AT_WORK, *early, *FAILS, *late, *done("teardown"), TERMINATED)
    assert (runner.requests, runner.answers[-2]["outcome"]) == (0, "failed")
    assert not runner.is_killed
    assert run.error == "no"


@pytest.mark.usefixtures("unchecked_output")
def test_a_run_that_is_asked_to_end_as_it_finishes_has_succeeded(
    run: Run, worker: Worker, clock: Clock
) -> None:
    late: Script = [clock.later(61), IDLE]
    runner = follow(run, worker, *AT_WORK, *late, *FINISHES, *done("teardown"), TERMINATED)
    assert (runner.requests, runner.answers[-2]["outcome"]) == (1, "succeeded")
    assert Run.objects.get().state == RunState.SUCCEEDED


@pytest.mark.usefixtures("unchecked_output")
def test_a_run_that_is_canceled_as_it_finishes_is_canceled(run: Run, worker: Worker) -> None:
    late: Script = [canceling(worker), IDLE]
    runner = follow(run, worker, *AT_WORK, *FINISHES, *late, *done("teardown"), TERMINATED)
    assert (runner.requests, runner.answers[-2]["outcome"]) == (0, "canceled")
    assert Run.objects.get().state == RunState.CANCELED


def test_a_run_that_is_canceled_after_its_time_is_over_is_canceled(
    run: Run, worker: Worker, clock: Clock
) -> None:
    late: Script = [clock.later(61), IDLE, canceling(worker), IDLE, step("function", "stopped")]
    runner = follow(run, worker, *AT_WORK, *late, *done("teardown"), TERMINATED)
    assert (runner.requests, runner.answers[-2]["outcome"]) == (1, "canceled")
    assert Run.objects.get().state == RunState.CANCELED


def test_a_run_over_time_whose_worker_ends_is_queued_again(
    run: Run, worker: Worker, clock: Clock
) -> None:
    late: Script = [clock.later(61), IDLE, worker.going_down.set, IDLE, step("function", "stopped")]
    runner = follow(run, worker, *AT_WORK, *late, *done("teardown"), TERMINATED)
    assert runner.answers[-2]["outcome"] == "stopped"
    assert Run.objects.get().state == RunState.QUEUED


@pytest.mark.parametrize(
    ("shown", "requests"),
    [
        ([IDLE], 4),
        ([step("function", "stopped")], 1),
        ([BY_CODE], 1),
        ([step("function", "succeeded"), step("teardown", "running")], 1),
    ],
)
def test_a_run_that_shows_that_it_has_ended_is_asked_no_more(
    run: Run, worker: Worker, clock: Clock, shown: Script, requests: int
) -> None:
    waits: Script = [action for _ in range(10) for action in (clock.later(1.01), IDLE)]
    cancels: Script = [canceling(worker), IDLE]
    assert follow(run, worker, *AT_WORK, *cancels, *shown, *waits, TERMINATED).requests == requests


def test_a_tear_down_that_does_not_end_is_killed_and_fails_nothing(
    run: Run, worker: Worker, settings: Any
) -> None:
    settings.TEARDOWN_SECONDS = 0.0
    runner = follow(
        run, worker, *done("setup"), step("function", "running"),
        step("function", "failed", "ValueError: fog"), BY_CODE, step("teardown", "running"),
        {"type": "idle"}, KILLED,
    )  # fmt: skip
    assert runner.is_killed
    assert (run.error, run.error_kind) == ("no", FailureKind.CODE)
    (_, _, (kind, state, error)) = steps_of(run)
    assert (kind, state) == ("teardown", "stopped")
    assert error.startswith("The tear-down had not ended 0 s after the function had to end")


def test_a_worker_that_ends_grants_little_time(
    run: Run, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_stops, "_WORKER_ENDS_SECONDS", 0.0)
    runner = follow(
        run, worker, *AT_WORK, worker.going_down.set, IDLE, IDLE, KILLED,
    )  # fmt: skip
    assert (runner.requests, runner.is_killed) == (1, True)
    assert Run.objects.get().state == RunState.QUEUED
    assert [state for _, state, _ in steps_of(run)] == ["succeeded", "stopped", "not_run"]


def test_a_run_whose_lease_is_lost_is_killed_without_tear_down(run: Run, worker: Worker) -> None:
    def lose() -> None:
        assert worker.watched is not None
        worker.watched.lease_lost.set()

    runner = follow(run, worker, *done("setup"), lose, {"type": "idle"}, KILLED)
    assert (runner.requests, runner.is_killed) == (0, True)


@pytest.mark.parametrize(
    "forged",
    [
        [step("setup", "succeeded")],
        [step("setup", "running"), step("setup", "running")],
        [step("setup", "running"), step("function", "running")],
        [*done("setup"), step("setup", "running")],
        [*done("setup"), step("setup", "failed")],
        [*done("setup", "teardown"), step("function", "running")],
        [step("setup", "running"), step("teardown", "succeeded")],
    ],
)
def test_an_impossible_report_ends_the_run(run: Run, worker: Worker, forged: list[Message]) -> None:
    runner = follow(run, worker, *forged, BY_CODE, ENDED)
    assert runner.is_killed
    assert "at the wrong time" in run.error
    assert len(runner.answers) == len(forged) - 1


def test_a_step_that_the_asset_does_not_have_ends_the_run(run: Run, worker: Worker) -> None:
    change_options(setup=None)
    runner = follow(run, worker, step("setup", "running"), ENDED)
    assert runner.is_killed
    assert run.error == "the run reports the step 'setup', which its asset does not have"


def test_an_error_is_stored_as_far_as_it_can_be(run: Run, worker: Worker) -> None:
    error = "\x00" + "x" * 5000
    follow(run, worker, step("setup", "running"), step("setup", "failed", error), BY_CODE, ENDED)
    (_, _, stored), *_ = steps_of(run)
    assert len(stored) == 1000
    assert "\x00" not in stored


def test_the_end_of_a_step_is_told_once(alice: User, gateway: Gateway) -> None:
    flights = asset("raw_flights", DAILY_2013, options={**BOTH, "name": "raw_flights"})
    attempt = begun(flights, alice, gateway, "2013-01-01")
    publish(attempt)
    before = list(AttemptStep.objects.order_by("position").values())
    settle_steps(attempt.row)
    ending.fail(attempt.row, Failure(error="too late"))
    assert list(AttemptStep.objects.order_by("position").values()) == before
    assert len(before) == 3


def test_the_database_refuses_a_step_whose_times_do_not_fit_its_state(
    alice: User, gateway: Gateway
) -> None:
    attempt = begun(asset("raw_flights", DAILY_2013), alice, gateway, "2013-01-01")
    with pytest.raises(IntegrityError), transaction.atomic():
        AttemptStep.objects.create(
            attempt=attempt.row, position=0, kind="setup", name="x", state="succeeded"
        )
