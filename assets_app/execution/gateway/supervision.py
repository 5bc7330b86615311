"""Supervision of one run by a thread of the worker, from the start of the runner to the end."""

import logging
import math
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, DataError, InterfaceError

from assets_app.catalogue.texts import storable
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.engines import WorkMayContinueError, engine_of
from assets_app.execution.attempt.intending import DiscoveredKeysHeld, PartialFailure
from assets_app.execution.attempt.logs import LogKeeper
from assets_app.execution.attempt.outputs import Output
from assets_app.execution.attempt.phases import AttemptPhase, attempt_phase, attempt_work
from assets_app.execution.attempt.questions import Questions
from assets_app.execution.attempt.retry_pauses import retry_delay
from assets_app.execution.attempt.steps import StepReports, settle_steps
from assets_app.execution.attempt.validations import ResultKeeper
from assets_app.execution.data.run_locations import UnknownLocationError
from assets_app.execution.database import (
    borrowed_connection,
    is_passing,
    persist,
    release_connection,
)
from assets_app.execution.gateway.clearing import clear_away
from assets_app.execution.gateway.concurrent_runs import JoinResult
from assets_app.execution.gateway.launching import launch
from assets_app.execution.gateway.publishing import (
    UntriedLocationError,
    discard_staging,
    publish,
    refuse_unfit_locations,
)
from assets_app.execution.gateway.run_stops import CANCELED, STOPPED, TIMED_OUT, RunStop
from assets_app.execution.gateway.worker import GatewayWorker, Watched, current
from assets_app.models import FailureKind, RunAttempt, StepKind, StepState
from slicewise.plugins import PluginError
from slicewise.runner.parent_client import RequestTooLargeError, RunnerProcess

log = logging.getLogger(__name__)

_LISTEN_SECONDS = 0.2
# Errors that malformed keys cause, and keys that the database cannot store.
_UNFIT_OUTPUT = (
    ArithmeticError, AttributeError, DataError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
# Pause of a run that this gateway has declined: another gateway may reach Spark.
_SPARK_PAUSE = timedelta(seconds=5)
# Pause of a run that may not run beside the present runs of this worker.
_REFUSAL_PAUSE = timedelta(seconds=5)
# How often a run that waits for the end of concurrent runs is checked.
_WAIT_SECONDS = 1.0
# How long the database may take to come back after the worker was asked to end.
_DATABASE_GRACE_SECONDS = 20.0


def execute(run_id: int) -> None:
    """Execute a dispatched run on this worker; leave a run alone that is no longer dispatched."""
    worker = current()
    if worker.going_down.is_set():
        return
    if worker.spark_away.is_set() and attempts.needs_spark_server(run_id):
        attempts.decline(run_id, _SPARK_PAUSE)
        return
    if not _join_concurrent_runs(worker, run_id):
        return
    try:
        is_alone = worker.concurrent_runs.is_alone(run_id)
        attempt = attempts.begin(run_id, worker.gateway, is_alone=is_alone)
        if attempt is None:
            return
        with (
            attempt_work(attempt.row, is_new=True),
            worker.watching(attempt.row) as watched,
        ):
            _run_attempt(worker, attempt, watched)
    finally:
        worker.concurrent_runs.leave(run_id)


def _join_concurrent_runs(worker: GatewayWorker, run_id: int) -> bool:
    """Let the run join the runs at work on this worker; return whether the run has joined.

    A run that has lost its worker several times may have to wait until other runs have ended. A
    refused run is requeued.
    """
    try:
        while (losses := attempts.losses_of(run_id)) is not None:
            match worker.concurrent_runs.join(run_id, losses):
                case JoinResult.JOINED:
                    return True
                case JoinResult.KNOWN:
                    return False
                case JoinResult.REFUSED:
                    attempts.decline(run_id, _REFUSAL_PAUSE)
                    return False
            attempts.note_waiting(run_id)
            release_connection()
            if worker.going_down.wait(_WAIT_SECONDS):
                return False
        return False
    finally:
        worker.concurrent_runs.stop_waiting()


class _Hold:
    """The answer to whether an attempt still belongs to this worker, as far as the worker can know.

    A lease that expired while the database was away is no reason to give up the attempt: without
    the database no other worker can have taken over, and each statement checks the token.
    """

    def __init__(self, worker: GatewayWorker, watched: Watched) -> None:
        self._worker, self._watched = worker, watched
        self._until = math.inf

    def __call__(self) -> bool:
        now = time.monotonic()
        if self._worker.going_down.is_set():
            self._until = min(self._until, now + _DATABASE_GRACE_SECONDS)
        return not self._watched.lease_lost.is_set() and now < self._until


def _run_attempt(worker: GatewayWorker, attempt: Attempt, watched: Watched) -> None:
    hold = _Hold(worker, watched)
    with attempt_phase(attempt.row, AttemptPhase.PREPARE):
        supervision = _started(worker, attempt, watched, hold)
    if supervision is not None:
        supervision.follow()


def _started(
    worker: GatewayWorker, attempt: Attempt, watched: Watched, hold: _Hold
) -> "_Supervision | None":
    """Start the runner; return None if the attempt has failed, or its lease was lost."""
    try:
        spark = engine_of(attempt.row).facts(attempt)
        refuse_unfit_locations(attempt.run.producer_version)
        output = _output_of(attempt)
        output.compute_locations()
        inputs = persist(lambda: attempts.take_inputs(attempt), goes_on=hold)
    except Exception as error:
        _fail_attempt(attempt, _failure_before_start(error), hold)
        return None
    try:
        process = launch(worker, attempt, inputs, spark, hold)
    except RequestTooLargeError as error:  # another try would be as large
        _fail_attempt(attempt, Failure(error=str(error)), hold)
        return None
    except Exception as error:  # any other reason is a failure of the platform
        log.exception("runner not started", extra={"run": attempt.run.pk})
        message = f"The runner could not be started: {error}"
        _fail_attempt(attempt, Failure(error=message, kind=FailureKind.PLATFORM), hold)
        return None
    if process is None:
        log.warning("lease lost before the runner was started", extra={"run": attempt.run.pk})
        return None
    watched.process = process
    return _Supervision(worker, attempt, process, watched, hold, output)


def _output_of(attempt: Attempt) -> Output:
    keys = None if attempt.is_discovering else attempt.keys
    return Output(attempt.run, attempt.row, keys)


def _fail_attempt(attempt: Attempt, failure: Failure, hold: _Hold) -> None:
    persist(lambda: ending.fail(attempt.row, failure), goes_on=hold)


def _failure_before_start(error: Exception) -> Failure:
    """Return the failure of an attempt that ends before a runner is started."""
    if isinstance(error, ValueError) and not isinstance(error, PluginError):
        # No such engine on this server, definitions that do not fit each other, or invalid keys:
        # another try would end in the same way.
        return Failure(error=str(error))
    if isinstance(error, UntriedLocationError | UnknownLocationError):
        log.warning("location not tried", extra={"error": str(error)})
        return Failure(error=str(error), kind=FailureKind.PLATFORM)
    log.error("inputs not read", exc_info=error)
    # A package that is missing here may be installed on the next gateway.
    elsewhere = isinstance(error, DatabaseError | InterfaceError | LookupError | PluginError)
    return Failure(
        error=f"The inputs of the run could not be determined: {type(error).__name__}: {error}",
        kind=FailureKind.PLATFORM if elsewhere else FailureKind.CODE,
    )


def _deadline(attempt: Attempt) -> float:
    """Return when the timeout of the asset ends the attempt, on the monotonic clock."""
    timeout = attempt.run.producer_version.spec.timeout
    return math.inf if timeout is None else time.monotonic() + timeout


class _Supervision:
    """The supervision of one attempt while its runner lives."""

    def __init__(
        self,
        worker: GatewayWorker,
        attempt: Attempt,
        process: RunnerProcess,
        watched: Watched,
        hold: _Hold,
        output: Output,
    ) -> None:
        self.worker = worker
        self.hold = hold
        self.attempt: RunAttempt = attempt.row
        self.process = process
        self.watched = watched
        self.log = LogKeeper(attempt.row)
        self.questions = Questions(attempt)
        self.validations = ResultKeeper(attempt, hold)
        self.steps = StepReports(attempt.row)
        self.version = attempt.run.producer_version
        self.stop = RunStop(process, self.version)
        self.deadline = _deadline(attempt)
        self.output = output
        self.failure: Failure | None = None
        # The runner has reported impossible output: no output of the run is published.
        self.is_spoiled = False
        self.finished = False
        self.session_opened = False
        # Id and pages of the Spark application, until both are stored.
        self.application: dict[str, str] = {}
        self.exited: dict[str, Any] = {}

    def follow(self) -> None:
        """Handle messages until the runner's process is gone, then conclude the attempt.

        The database may be away meanwhile: the attempt is concluded when the database is back, as
        long as the attempt belongs to this worker.
        """
        release_connection()
        try:
            with attempt_phase(self.attempt, AttemptPhase.RUNNER):
                self._hear_all()
            self.log.flush()
            self._settle_steps()
            persist(self._conclude, goes_on=self.hold)
        finally:
            self.process.kill()
            engine_of(self.attempt).tidy(self.attempt)

    def _hear_all(self) -> None:
        try:
            for message in self.process.messages(timeout=_LISTEN_SECONDS):
                self._hear(message)
                self._obey()
        except Exception as error:
            if is_passing(error):
                raise
            self._break_off(error)

    def _break_off(self, error: Exception) -> None:
        """Kill a runner that this worker cannot follow, so that its error does not end this
        thread.
        """
        log.error("runner not understood", extra={"run": self.attempt.run_id}, exc_info=error)
        self.process.kill()
        self.failure = Failure(
            error=f"The worker could not follow the run: {type(error).__name__}: {error}",
            kind=FailureKind.PLATFORM,
        )

    def _hear(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "log":
                self.log.add(message["text"])
            case "spark":
                self.session_opened = True
                self._keep_application(message)
            case "ask":
                answer = persist(lambda: self.questions.answer(message), goes_on=self.hold)
                self.process.answer(answer)
            case "validated":
                self.validations.hear(message)
            case "staged" | "discovered" | "unmade":
                self._take_output(message)
            case "step":
                self._take_step(message)
            case "failed":
                self._take_failure(message)
            case "finished":
                self.finished = True
                self.stop.note_end()
                self._take(self.output.refuse_incomplete)
            case "exited":
                self.exited = message
                usage = message.get("usage") or {}
                self.attempt.cpu_seconds = usage.get("cpu_seconds")
                self.attempt.peak_memory = usage.get("peak_memory")
            case _:
                self.log.flush_if_due()
                self._store_application()

    def _take_step(self, message: dict[str, Any]) -> None:
        """Store that a step begins or ends, and let the runner go on."""
        self._take(lambda: self.steps.note(message))
        if self.is_spoiled:
            return
        persist(lambda: self.steps.store(message), goes_on=self.hold)
        step, is_beginning = message["step"], message["state"] == StepState.RUNNING
        if is_beginning:
            self.log.begin_step(step, self.steps.names[step])
        else:
            self.log.end_step()
        outcome = None
        if is_beginning and step == StepKind.TEARDOWN:
            self.stop.note_end()
            outcome = self._outcome_to_tell()
        elif message["state"] == StepState.STOPPED:
            self.stop.note_end()
        self.process.answer({"type": "answer", "outcome": outcome})

    def _take_failure(self, message: dict[str, Any]) -> None:
        self.stop.note_end()
        if self.is_spoiled or self.stop.outcome is not None:
            return
        self.failure = Failure(
            error=message["error"],
            traceback=message["traceback"],
            kind=FailureKind(message["kind"]),
        )

    def _outcome_to_tell(self) -> str:
        """Return the outcome of the run for its tear-down, as the attempt will be concluded."""
        if self.watched.cancel_requested.is_set():
            return CANCELED
        # The request to end may come after the end.
        if self.failure is not None:
            return "failed"
        if self.finished:
            return "succeeded"
        if self.worker.going_down.is_set():
            return STOPPED
        # Somebody else may have sent the signal.
        return self.stop.outcome or "failed"

    def _settle_steps(self) -> None:
        if self.steps.names and not self.watched.lease_lost.is_set():
            reason = self._reason_of_steps()
            persist(lambda: settle_steps(self.attempt, reason), goes_on=self.hold)

    def _reason_of_steps(self) -> str:
        """Return why steps have not ended or not begun; empty if the error of the run says so."""
        if self.stop.is_late:
            return self.stop.late_sentence
        number = self.exited.get("signal")
        if excess := self.exited.get("excess"):
            return str(excess)
        if "no_renewal" in self.exited:
            return self._unrenewed_sentence()
        if number == signal.SIGKILL:
            return "The process of the run was ended by SIGKILL."
        return ""

    def _take_output(self, message: dict[str, Any]) -> None:
        takes = {
            "staged": self.output.take_staged,
            "discovered": self.output.take_found,
            "unmade": self.output.take_unmade,
        }
        self._take(lambda: takes[message["type"]](message))

    def _take(self, step: Callable[[], None]) -> None:
        """Call a step that depends on reported output; end the run if the output is impossible."""
        try:
            persist(step, goes_on=self.hold)
        except _UNFIT_OUTPUT as error:  # user code shares the runner's channel
            self.failure = self.failure or Failure(error=str(error))
            self.is_spoiled = True
            self.process.kill()

    def _keep_application(self, message: dict[str, Any]) -> None:
        if not message["application_id"]:
            return  # the session is yet to be opened
        self.application = {
            "application_id": storable(message["application_id"])[:200],
            "application_ui": storable(message["ui"] or settings.SPARK_UI_URL)[:500],
        }
        self._store_application()

    def _store_application(self) -> None:
        """Store id and pages of the Spark application, or do so later if the database is away."""
        if not self.application:
            return
        rows = RunAttempt.objects.filter(pk=self.attempt.pk)
        try:
            with borrowed_connection():
                rows.update(**self.application)
            self.application = {}
        except (DatabaseError, InterfaceError) as error:
            if not is_passing(error):
                raise
            log.warning(
                "application not stored yet",
                extra={"run": self.attempt.run_id, "error": str(error)},
            )

    def _obey(self) -> None:
        """End the runner if the run is canceled or over time, or this worker may not go on."""
        if self.watched.lease_lost.is_set():
            self.process.kill()  # another worker may begin the run at any moment
        elif self.watched.cancel_requested.is_set():
            self.stop.end(CANCELED)
        elif self.worker.going_down.is_set() and not self.finished:
            self.stop.end(STOPPED)
        elif time.monotonic() > self.deadline and not self.finished:
            self.stop.end(TIMED_OUT)
        self.stop.enforce()

    def _conclude(self) -> None:
        if self.watched.lease_lost.is_set():
            # Another worker has the run, and interrupts its Spark session. The staging is left to
            # this worker.
            discard_staging(self.attempt, self.version)
        elif self.watched.cancel_requested.is_set():
            # If work goes on, the lease runs out, and recovery tries the cancellation again.
            if self._clear_away():
                ending.cancel(self.attempt)
        elif self.finished and self.failure is None:
            self._publish()
        elif self.failure is None and self.worker.going_down.is_set():
            self._hand_back()
        elif self.failure is not None and self._publishes_partly(self.failure):
            self._publish_partly(self.failure)
        else:
            self._fail(self._cause())

    def _publishes_partly(self, failure: Failure) -> bool:
        """Return whether a failed run publishes partitions: its asset says so, no retry is left."""
        return (
            self.version.spec.on_partial == "publish"
            and not self.is_spoiled
            and failure.kind is FailureKind.CODE
            and bool(self.output.unmade)
            and self._is_complete()
            and any(outlet.partitions for outlet in self.output.outlets())
            and retry_delay(self.attempt.run, failure.kind) is None
        )

    def _is_complete(self) -> bool:
        try:
            self.output.refuse_incomplete()
        except ValueError as error:  # user code shares the runner's channel
            log.warning("nothing kept", extra={"run": self.attempt.run_id, "error": str(error)})
            return False
        return True

    def _publish_partly(self, failure: Failure) -> None:
        outlets = self.output.outlets()
        partly = PartialFailure(
            error=failure.error, traceback=failure.traceback, reasons=self.output.unmade
        )
        if attempts.intend_to_publish(self.attempt, outlets, partly=partly):
            publish(self.attempt, outlets)
        else:
            self._discard()

    def _publish(self) -> None:
        outlets = self.output.outlets()
        try:
            intended = attempts.intend_to_publish(self.attempt, outlets, self.output.found)
        except DiscoveredKeysHeld as error:
            self._step_back(str(error))
            return
        if intended:
            publish(self.attempt, outlets)
        else:
            self._discard()

    def _discard(self) -> None:
        """Discard the output of a run that was canceled or taken over at the last moment.

        The staging is discarded first: once the run is canceled, no worker comes back to the
        staging.
        """
        discard_staging(self.attempt, self.version)
        ending.cancel(self.attempt)

    def _hand_back(self) -> None:
        # The run is requeued in any case: the next attempt stops work that could not be stopped
        # here.
        is_cleared = self._clear_away()
        reason = "The worker was asked to stop."
        if not ending.requeue_lost(self.attempt, reason, is_cleared=is_cleared) and is_cleared:
            # The run was canceled meanwhile.
            ending.cancel(self.attempt)

    def _step_back(self, reason: str) -> None:
        is_cleared = self._clear_away()
        if not ending.requeue_conflicted(self.attempt, reason) and is_cleared:
            # The run was canceled meanwhile.
            ending.cancel(self.attempt)

    def _fail(self, failure: Failure) -> None:
        is_cleared = self._clear_away()
        if not ending.fail(self.attempt, failure) and is_cleared:
            # The run was canceled while it failed.
            ending.cancel(self.attempt)

    def _clear_away(self) -> bool:
        """Clear away the work and the data of the attempt; return whether no work goes on."""
        try:
            clear_away(
                self.worker.parent,
                self.attempt,
                self.version,
                has_session=self._may_have_session(),
            )
        except WorkMayContinueError as error:
            log.warning(
                "work on Spark not stopped", extra={"run": self.attempt.run_id, "error": str(error)}
            )
            return False
        return True

    def _may_have_session(self) -> bool:
        """Return whether the attempt's Spark session may be open.

        A runner whose code fails closes the session, unless the runner is killed before.
        """
        failure = self.failure
        by_platform = failure is None or failure.kind is FailureKind.PLATFORM
        return self.session_opened and (by_platform or bool(self.exited.get("signal")))

    def _cause(self) -> Failure:
        """Return why the run failed; a limit that the run has reached explains a failure of the
        platform.
        """
        excess = self.exited.get("excess")
        if self.failure is not None and self.failure.kind is FailureKind.PLATFORM and excess:
            return Failure(error=excess)
        return self.failure or self._unexplained_end()

    def _unrenewed_sentence(self) -> str:
        return (
            f"The process of the run was ended, since its worker could not renew the lease of the"
            f" run for {self.exited['no_renewal']:g} s: the database was away, or the worker was"
            " stopped."
        )

    def _unexplained_end(self) -> Failure:
        if "no_renewal" in self.exited:
            # First: the timeout may have passed while the worker waited for the database. No loss,
            # since the run does not keep its worker from renewing leases.
            return Failure(error=self._unrenewed_sentence(), kind=FailureKind.PLATFORM)
        if time.monotonic() > self.deadline:
            limit = self.attempt.run.producer_version.spec.timeout
            return Failure(error=f"The run exceeded its timeout of {limit:g} s and was stopped.")
        if excess := self.exited.get("excess"):
            return Failure(error=excess)
        if reason := self.exited.get("error"):
            # No memory or no process was available.
            return Failure(
                error=f"No process for the run could be started: {reason}",
                kind=FailureKind.PLATFORM,
            )
        number = self.exited.get("signal")
        if number:
            name = signal.Signals(number).name
            # User code does not end its process so: the machine was out of memory, or a person sent
            # the signal.
            killed = number == signal.SIGKILL
            return Failure(
                error=f"The process of the run was ended by {name} before it had finished.",
                kind=FailureKind.PLATFORM if killed else FailureKind.CODE,
                is_loss=killed,
            )
        status = self.exited.get("status")
        return Failure(error=f"The process of the run ended by itself with status {status}.")
