"""Supervision of one run by a thread of the worker, from the start of the runner to the end."""

import logging
from datetime import timedelta

from django.db import DatabaseError, InterfaceError

from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.engines import engine_of
from assets_app.execution.attempt.outputs import Output
from assets_app.execution.attempt.phases import AttemptPhase, attempt_phase, attempt_work
from assets_app.execution.data.run_locations import UnknownLocationError
from assets_app.execution.database import is_passing, persist, release_connection
from assets_app.execution.gateway.conclusion import Conclusion
from assets_app.execution.gateway.concurrent_runs import JoinResult
from assets_app.execution.gateway.launching import launch
from assets_app.execution.gateway.publishing import UntriedLocationError, refuse_unfit_locations
from assets_app.execution.gateway.run_stops import CANCELED, STOPPED, TIMED_OUT, RunStop
from assets_app.execution.gateway.runner_reports import RunnerReports
from assets_app.execution.gateway.supervised_run import Hold, SupervisedRun
from assets_app.execution.gateway.worker import GatewayWorker, Watched, current
from assets_app.models import FailureKind
from slicewise.plugins import PluginError
from slicewise.runner.parent_client import RequestTooLargeError

log = logging.getLogger(__name__)

_LISTEN_SECONDS = 0.2
# Pause of a run that this gateway has declined: another gateway may reach Spark.
_SPARK_PAUSE = timedelta(seconds=5)
# Pause of a run that may not run beside the present runs of this worker.
_REFUSAL_PAUSE = timedelta(seconds=5)
# How often a run that waits for the end of concurrent runs is checked.
_WAIT_SECONDS = 1.0


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


def _run_attempt(worker: GatewayWorker, attempt: Attempt, watched: Watched) -> None:
    hold = Hold(worker, watched)
    with attempt_phase(attempt.row, AttemptPhase.PREPARE):
        supervision = _started(worker, attempt, watched, hold)
    if supervision is not None:
        supervision.follow()


def _started(
    worker: GatewayWorker, attempt: Attempt, watched: Watched, hold: Hold
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
    stop = RunStop(process, attempt.run.producer_version)
    return _Supervision(SupervisedRun(worker, attempt, process, stop, watched, hold), output)


def _output_of(attempt: Attempt) -> Output:
    keys = None if attempt.is_discovering else attempt.keys
    return Output(attempt.run, attempt.row, keys)


def _fail_attempt(attempt: Attempt, failure: Failure, hold: Hold) -> None:
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


class _Supervision:
    """The supervision of one attempt while its runner lives."""

    def __init__(self, run: SupervisedRun, output: Output) -> None:
        self._run = run
        self._reports = RunnerReports(run, output)

    def follow(self) -> None:
        """Handle messages until the runner's process is gone, then conclude the attempt.

        The database may be away meanwhile: the attempt is concluded when the database is back, as
        long as the attempt belongs to this worker.
        """
        release_connection()
        try:
            with attempt_phase(self._run.row, AttemptPhase.RUNNER):
                self._hear_all()
            self._reports.settle()
            conclusion = Conclusion(self._run, self._reports)
            persist(conclusion.conclude, goes_on=self._run.hold)
        finally:
            self._run.process.kill()
            engine_of(self._run.row).tidy(self._run.row)

    def _hear_all(self) -> None:
        try:
            for message in self._run.process.messages(timeout=_LISTEN_SECONDS):
                self._reports.hear(message)
                self._obey()
        except Exception as error:
            if is_passing(error):
                raise
            self._reports.break_off(error)

    def _obey(self) -> None:
        """End the runner if the run is canceled or over time, or this worker may not go on."""
        run, has_finished = self._run, self._reports.finished
        if run.is_lost:
            run.process.kill()  # another worker may begin the run at any moment
        elif run.is_canceled:
            run.stop.end(CANCELED)
        elif run.goes_down and not has_finished:
            run.stop.end(STOPPED)
        elif not has_finished and run.stop.exceeded_timeout is not None:
            run.stop.end(TIMED_OUT)
        run.stop.enforce()
