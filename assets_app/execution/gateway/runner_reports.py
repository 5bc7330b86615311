"""The messages of one runner: each is stored or answered, and tells how the attempt ends.

User code shares the runner's channel: an impossible message fails the attempt.
"""

import logging
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import DatabaseError, DataError, InterfaceError

from assets_app.catalogue.texts import storable
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.logs import LogKeeper
from assets_app.execution.attempt.outputs import Output
from assets_app.execution.attempt.questions import Questions
from assets_app.execution.attempt.steps import StepReports, settle_steps
from assets_app.execution.attempt.validations import ResultKeeper
from assets_app.execution.database import borrowed_connection, is_passing, persist
from assets_app.execution.gateway.run_stops import CANCELED, STOPPED
from assets_app.execution.gateway.runner_exits import RunnerExit
from assets_app.execution.gateway.supervised_run import SupervisedRun
from assets_app.models import FailureKind, RunAttempt, StepKind, StepState

log = logging.getLogger(__name__)

# Errors that malformed keys cause, and keys that the database cannot store.
_UNFIT_OUTPUT = (
    ArithmeticError, AttributeError, DataError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip


class RunnerReports:
    """The facts that a runner has reported so far."""

    def __init__(self, run: SupervisedRun, output: Output) -> None:
        self._run = run
        self._log = LogKeeper(run.row)
        self._questions = Questions(run.attempt)
        self._validations = ResultKeeper(run.attempt, run.hold)
        self._steps = StepReports(run.row)
        # Id and pages of the Spark application, until both are stored.
        self._application: dict[str, str] = {}
        self.output = output
        self.failure: Failure | None = None
        self.is_spoiled = False
        """Whether the runner has reported impossible output: no output of the run is published."""
        self.finished = False
        self.session_opened = False
        self.exit = RunnerExit({})

    def hear(self, message: dict[str, Any]) -> None:
        """Handle one message."""
        match message["type"]:
            case "log":
                self._log.add(message["text"])
            case "spark":
                self.session_opened = True
                self._keep_application(message)
            case "ask":
                answer = persist(lambda: self._questions.answer(message), goes_on=self._run.hold)
                self._run.process.answer(answer)
            case "validated":
                self._validations.hear(message)
            case "staged" | "discovered" | "unmade":
                self._take_output(message)
            case "step":
                self._take_step(message)
            case "failed":
                self._take_failure(message)
            case "finished":
                self.finished = True
                self._run.stop.note_end()
                self._take(self.output.refuse_incomplete)
            case "exited":
                self.exit = RunnerExit(message)
                self._run.row.cpu_seconds = self.exit.cpu_seconds
                self._run.row.peak_memory = self.exit.peak_memory
            case _:
                self._log.flush_if_due()
                self._store_application()

    def break_off(self, error: Exception) -> None:
        """Kill a runner that this worker cannot follow, so that its error does not end this
        thread.
        """
        log.error("runner not understood", extra={"run": self._run.row.run_id}, exc_info=error)
        self._run.process.kill()
        self.failure = Failure(
            error=f"The worker could not follow the run: {type(error).__name__}: {error}",
            kind=FailureKind.PLATFORM,
        )

    def settle(self) -> None:
        """Store the last lines of the log, and the steps that have not ended or not begun."""
        self._log.flush()
        if self._steps.names and not self._run.is_lost:
            reason = self._reason_of_steps()
            persist(lambda: settle_steps(self._run.row, reason), goes_on=self._run.hold)

    def _reason_of_steps(self) -> str:
        stop = self._run.stop
        return stop.late_sentence if stop.is_late else self.exit.reason_of_steps

    def _take_step(self, message: dict[str, Any]) -> None:
        """Store that a step begins or ends, and let the runner go on."""
        self._take(lambda: self._steps.note(message))
        if self.is_spoiled:
            return
        persist(lambda: self._steps.store(message), goes_on=self._run.hold)
        step, is_beginning = message["step"], message["state"] == StepState.RUNNING
        if is_beginning:
            self._log.begin_step(step, self._steps.names[step])
        else:
            self._log.end_step()
        outcome = None
        if is_beginning and step == StepKind.TEARDOWN:
            self._run.stop.note_end()
            outcome = self._outcome_to_tell()
        elif message["state"] == StepState.STOPPED:
            self._run.stop.note_end()
        self._run.process.answer({"type": "answer", "outcome": outcome})

    def _outcome_to_tell(self) -> str:
        """Return the outcome of the run for its tear-down, as the attempt will be concluded."""
        if self._run.is_canceled:
            return CANCELED
        # The request to end may come after the end.
        if self.failure is not None:
            return "failed"
        if self.finished:
            return "succeeded"
        if self._run.goes_down:
            return STOPPED
        # Somebody else may have sent the signal.
        return self._run.stop.outcome or "failed"

    def _take_failure(self, message: dict[str, Any]) -> None:
        self._run.stop.note_end()
        if self.is_spoiled or self._run.stop.outcome is not None:
            return
        self.failure = Failure(
            error=message["error"],
            traceback=message["traceback"],
            kind=FailureKind(message["kind"]),
        )

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
            persist(step, goes_on=self._run.hold)
        except _UNFIT_OUTPUT as error:  # user code shares the runner's channel
            self.failure = self.failure or Failure(error=str(error))
            self.is_spoiled = True
            self._run.process.kill()

    def _keep_application(self, message: dict[str, Any]) -> None:
        if not message["application_id"]:
            return  # the session is yet to be opened
        self._application = {
            "application_id": storable(message["application_id"])[:200],
            "application_ui": storable(message["ui"] or settings.SPARK_UI_URL)[:500],
        }
        self._store_application()

    def _store_application(self) -> None:
        """Store id and pages of the Spark application, or do so later if the database is away."""
        if not self._application:
            return
        row = self._run.row
        try:
            with borrowed_connection():
                RunAttempt.objects.filter(pk=row.pk).update(**self._application)
            self._application = {}
        except (DatabaseError, InterfaceError) as error:
            if not is_passing(error):
                raise
            log.warning(
                "application not stored yet", extra={"run": row.run_id, "error": str(error)}
            )
