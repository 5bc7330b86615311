"""What a worker's thread does with one run: start the runner, listen to it, and bring the run to
its end.
"""

import math
import signal
import time
from typing import Any

import structlog
from django.conf import settings

from assets_app.catalogue.texts import storable
from assets_app.execution import attempts, ending
from assets_app.execution.attempts import Attempt
from assets_app.execution.clearing import clear_away
from assets_app.execution.ending import Failure
from assets_app.execution.engines import MayGoOn, engine_of
from assets_app.execution.intending import FoundKeysHeld, Partly
from assets_app.execution.launching import launch
from assets_app.execution.logs import LogKeeper
from assets_app.execution.outputs import Output
from assets_app.execution.past import PastPartitions
from assets_app.execution.publishing import discard_staging, publish
from assets_app.execution.validations import ResultKeeper
from assets_app.execution.worker import GatewayWorker, Watched, current
from assets_app.models import FailureKind, RunAttempt
from slicewise.runner.client import RunnerProcess

log = structlog.get_logger(__name__)

_LISTEN_SECONDS = 0.2


def execute(run_id: int) -> None:
    """Execute a dispatched run on this worker; nothing happens if it is no longer dispatched."""
    worker = current()
    if worker.going_down.is_set():
        return
    attempt = attempts.begin(run_id, worker.gateway)
    if attempt is None:
        return
    with worker.watching(attempt.row) as watched:
        _make(worker, attempt, watched)


def _make(worker: GatewayWorker, attempt: Attempt, watched: Watched) -> None:
    try:
        spark = engine_of(attempt.row).facts(attempt)
        inputs = attempts.take_inputs(attempt)
    except ValueError as error:
        # No such engine here, definitions that do not fit each other, or the keys: another try
        # would say the same.
        ending.fail(attempt.row, Failure(error=str(error)))
        return
    try:
        process = launch(worker, attempt, inputs, spark)
    except Exception as error:  # whatever kept the runner from starting is the platform's
        log.exception("runner not started", run=attempt.run.pk)
        ending.fail(
            attempt.row,
            Failure(error=f"The runner could not be started: {error}", kind=FailureKind.PLATFORM),
        )
        return
    if process is None:
        log.warning("lease lost before the runner was started", run=attempt.run.pk)
        return
    watched.process = process
    _Supervision(worker, attempt, process, watched).follow()


def _deadline(attempt: Attempt) -> float:
    """When the attempt has run for as long as its asset allows, on the monotonic clock."""
    allowed = attempt.run.producer_version.definition.get("timeout")
    return math.inf if allowed is None else time.monotonic() + float(allowed)


class _Supervision:
    """One attempt while its runner lives."""

    def __init__(
        self, worker: GatewayWorker, attempt: Attempt, process: RunnerProcess, watched: Watched
    ) -> None:
        self.worker = worker
        self.attempt: RunAttempt = attempt.row
        self.process = process
        self.watched = watched
        self.log = LogKeeper(attempt.row)
        self.past = PastPartitions(attempt)
        self.validations = ResultKeeper(attempt)
        self.version = attempt.run.producer_version
        self.deadline = _deadline(attempt)
        self.output = Output(attempt.run, attempt.row)
        self.failure: Failure | None = None
        self.finished = False
        self.session_opened = False
        self.exited: dict[str, Any] = {}

    def follow(self) -> None:
        """Listen until the runner's process is gone, then conclude."""
        try:
            for message in self.process.messages(timeout=_LISTEN_SECONDS):
                self._hear(message)
                self._obey()
            self.log.flush()
            self._conclude()
        finally:
            self.process.kill()
            engine_of(self.attempt).tidy(self.attempt)

    def _hear(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "log":
                self.log.add(message["text"])
            case "spark":
                self.session_opened = True
                self._keep_application(message)
            case "ask":
                self.process.answer(self.past.answer(message))
            case "validated":
                self.validations.hear(message)
            case "staged" | "discovered" | "unmade":
                self._take_output(message)
            case "failed":
                self.failure = Failure(
                    error=message["error"],
                    traceback=message["traceback"],
                    kind=FailureKind(message["kind"]),
                )
            case "finished":
                self.finished = True
            case "exited":
                self.exited = message
            case _:
                self.log.flush_if_due()

    def _take_output(self, message: dict[str, Any]) -> None:
        takes = {
            "staged": self.output.take_staged,
            "discovered": self.output.take_found,
            "unmade": self.output.take_unmade,
        }
        try:
            takes[message["type"]](message)
        except (ValueError, TypeError, KeyError) as error:  # user code shares the runner's channel
            self.failure = self.failure or Failure(error=str(error))

    def _keep_application(self, message: dict[str, Any]) -> None:
        if not message["application_id"]:
            return  # the session is only about to be opened
        RunAttempt.objects.filter(pk=self.attempt.pk).update(
            application_id=storable(message["application_id"])[:200],
            application_ui=storable(message["ui"] or settings.SPARK_UI_URL)[:500],
        )

    def _obey(self) -> None:
        """Stop the runner if its run was canceled or is taking too long, or this worker may not."""
        watched = self.watched
        if (
            (time.monotonic() > self.deadline and not self.finished)
            or watched.cancel_requested.is_set()
            or watched.lease_lost.is_set()
            or (self.worker.going_down.is_set() and not self.finished)
        ):
            self.process.kill()

    def _conclude(self) -> None:
        if self.watched.lease_lost.is_set():
            # Somebody else has the run. Its Spark session is theirs to interrupt; the staging is
            # not.
            discard_staging(self.attempt, self.version)
        elif self.watched.cancel_requested.is_set():
            # Else its lease runs out, and recovery has it tried again.
            if self._clear_away():
                ending.cancel(self.attempt)
        elif self.finished and self.failure is None:
            self._publish()
        elif self.failure is None and self.worker.going_down.is_set():
            self._hand_back()
        elif self.failure is not None and self._keeps_part(self.failure):
            self._publish_part(self.failure)
        else:
            self._fail(self.failure or self._unexplained_end())

    def _keeps_part(self, failure: Failure) -> bool:
        """Whether what it has made is published though it fails: asked for, and its last try."""
        return (
            self.version.definition.get("on_partial") == "publish"
            and failure.kind is FailureKind.CODE
            and bool(self.output.unmade)
            and any(outlet.partitions for outlet in self.output.outlets())
            and ending.retry_delay(self.attempt.run, failure.kind) is None
        )

    def _publish_part(self, failure: Failure) -> None:
        outlets = self.output.outlets()
        partly = Partly(
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
        except FoundKeysHeld as error:
            self._step_back(str(error))
            return
        if intended:
            publish(self.attempt, outlets)
        else:
            self._discard()

    def _discard(self) -> None:
        """Canceled at the last moment, or taken over. In this order: once it is canceled nobody
        comes back to what it has staged.
        """
        discard_staging(self.attempt, self.version)
        ending.cancel(self.attempt)

    def _hand_back(self) -> None:
        # In any case: what could not be stopped is stopped by the next attempt.
        is_cleared = self._clear_away()
        if not ending.hand_back(self.attempt, "Its worker was asked to end.") and is_cleared:
            # It was canceled meanwhile.
            ending.cancel(self.attempt)

    def _step_back(self, reason: str) -> None:
        is_cleared = self._clear_away()
        if not ending.step_back(self.attempt, reason) and is_cleared:
            # It was canceled meanwhile.
            ending.cancel(self.attempt)

    def _fail(self, failure: Failure) -> None:
        is_cleared = self._clear_away()
        if not ending.fail(self.attempt, failure) and is_cleared:
            # It was canceled while it failed.
            ending.cancel(self.attempt)

    def _clear_away(self) -> bool:
        """Whether nothing of the attempt goes on any more."""
        try:
            clear_away(
                self.worker.parent,
                self.attempt,
                self.version,
                has_session=self._may_have_session(),
            )
        except MayGoOn as error:
            log.warning("work on Spark not stopped", run=self.attempt.run_id, error=str(error))
            return False
        return True

    def _may_have_session(self) -> bool:
        """A runner whose code fails closes its session itself, unless it is killed before."""
        failure = self.failure
        by_code = failure is not None and failure.kind is FailureKind.CODE
        return self.session_opened and not (by_code and not self.exited.get("signal"))

    def _unexplained_end(self) -> Failure:
        if time.monotonic() > self.deadline:
            limit = self.attempt.run.producer_version.definition["timeout"]
            return Failure(error=f"It ran longer than its timeout of {limit:g} s and was stopped.")
        if reason := self.exited.get("error"):
            # No memory, or no process to be had.
            return Failure(
                error=f"No process for the run could be started: {reason}",
                kind=FailureKind.PLATFORM,
            )
        number = self.exited.get("signal")
        if number:
            name = signal.Signals(number).name
            # Nobody's code ends itself so: the machine was out of memory, or somebody did it.
            killed = number == signal.SIGKILL
            return Failure(
                error=f"The process of the run was ended by {name} before it had finished.",
                kind=FailureKind.PLATFORM if killed else FailureKind.CODE,
            )
        status = self.exited.get("status")
        return Failure(error=f"The process of the run ended by itself with status {status}.")
