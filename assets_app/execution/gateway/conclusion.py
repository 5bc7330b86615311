"""The conclusion of an attempt whose runner has ended: publication, failure, or another try."""

import logging

from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.engines import WorkMayContinueError
from assets_app.execution.attempt.intending import DiscoveredKeysHeld, PartialFailure
from assets_app.execution.attempt.retry_pauses import retry_delay
from assets_app.execution.gateway.clearing import clear_away
from assets_app.execution.gateway.publishing import discard_staging, publish
from assets_app.execution.gateway.runner_reports import RunnerReports
from assets_app.execution.gateway.supervised_run import SupervisedRun
from assets_app.models import FailureKind

log = logging.getLogger(__name__)


class Conclusion:
    """The conclusion of one attempt; a further call goes on where the database was away."""

    def __init__(self, run: SupervisedRun, reports: RunnerReports) -> None:
        self._run, self._reports = run, reports
        self._attempt, self._version = run.row, run.version

    def conclude(self) -> None:
        """Publish the output, or end or requeue the run."""
        failure = self._reports.failure
        if self._run.is_lost:
            # Another worker has the run, and interrupts its Spark session. The staging is left to
            # this worker.
            discard_staging(self._attempt, self._version)
        elif self._run.is_canceled:
            # If work goes on, the lease runs out, and recovery tries the cancellation again.
            if self._clear_away():
                ending.cancel(self._attempt)
        elif self._reports.finished and failure is None:
            self._publish()
        elif failure is None and self._run.goes_down:
            self._hand_back()
        elif failure is not None and self._publishes_partly(failure):
            self._publish_partly(failure)
        else:
            self._fail(self._cause())

    def _publishes_partly(self, failure: Failure) -> bool:
        """Return whether a failed run publishes partitions: its asset says so, no retry is left."""
        return (
            self._version.spec.on_partial == "publish"
            and not self._reports.is_spoiled
            and failure.kind is FailureKind.CODE
            and bool(self._reports.output.unmade)
            and self._is_complete()
            and any(outlet.partitions for outlet in self._reports.output.outlets())
            and retry_delay(self._attempt.run, failure.kind) is None
        )

    def _is_complete(self) -> bool:
        try:
            self._reports.output.refuse_incomplete()
        except ValueError as error:  # user code shares the runner's channel
            log.warning("nothing kept", extra={"run": self._attempt.run_id, "error": str(error)})
            return False
        return True

    def _publish_partly(self, failure: Failure) -> None:
        outlets = self._reports.output.outlets()
        partly = PartialFailure(
            error=failure.error, traceback=failure.traceback, reasons=self._reports.output.unmade
        )
        if attempts.intend_to_publish(self._attempt, outlets, partly=partly):
            publish(self._attempt, outlets)
        else:
            self._discard()

    def _publish(self) -> None:
        output = self._reports.output
        outlets = output.outlets()
        try:
            intended = attempts.intend_to_publish(self._attempt, outlets, output.found)
        except DiscoveredKeysHeld as error:
            self._step_back(str(error))
            return
        if intended:
            publish(self._attempt, outlets)
        else:
            self._discard()

    def _discard(self) -> None:
        """Discard the output of a run that was canceled or taken over at the last moment.

        The staging is discarded first: once the run is canceled, no worker comes back to the
        staging.
        """
        discard_staging(self._attempt, self._version)
        ending.cancel(self._attempt)

    def _hand_back(self) -> None:
        # The run is requeued in any case: the next attempt stops work that could not be stopped
        # here.
        is_cleared = self._clear_away()
        reason = "The worker was asked to stop."
        if not ending.requeue_lost(self._attempt, reason, is_cleared=is_cleared) and is_cleared:
            # The run was canceled meanwhile.
            ending.cancel(self._attempt)

    def _step_back(self, reason: str) -> None:
        is_cleared = self._clear_away()
        if not ending.requeue_conflicted(self._attempt, reason) and is_cleared:
            # The run was canceled meanwhile.
            ending.cancel(self._attempt)

    def _fail(self, failure: Failure) -> None:
        is_cleared = self._clear_away()
        if not ending.fail(self._attempt, failure) and is_cleared:
            # The run was canceled while it failed.
            ending.cancel(self._attempt)

    def _clear_away(self) -> bool:
        """Clear away the work and the data of the attempt; return whether no work goes on."""
        try:
            clear_away(
                self._run.worker.parent,
                self._attempt,
                self._version,
                has_session=self._may_have_session(),
            )
        except WorkMayContinueError as error:
            facts = {"run": self._attempt.run_id, "error": str(error)}
            log.warning("work on Spark not stopped", extra=facts)
            return False
        return True

    def _may_have_session(self) -> bool:
        """Return whether the attempt's Spark session may be open.

        A runner whose code fails closes the session, unless the runner is killed before.
        """
        failure = self._reports.failure
        by_platform = failure is None or failure.kind is FailureKind.PLATFORM
        return self._reports.session_opened and (by_platform or bool(self._reports.exit.signal))

    def _cause(self) -> Failure:
        """Return why the run failed; a limit that the run has reached explains a failure of the
        platform.
        """
        failure, runner_exit = self._reports.failure, self._reports.exit
        if failure is not None and failure.kind is FailureKind.PLATFORM and runner_exit.excess:
            return Failure(error=runner_exit.excess)
        return failure or runner_exit.failure(self._run.stop.exceeded_timeout)
