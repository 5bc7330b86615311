"""An attempt with its runner on this worker, for those who listen to the runner and conclude."""

import math
import time
from dataclasses import dataclass

from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.gateway.run_stops import RunStop
from assets_app.execution.gateway.worker import GatewayWorker, Watched
from assets_app.models import ProducerVersion, RunAttempt
from slicewise.runner.parent_client import RunnerProcess

# How long the database may take to come back after the worker was asked to end.
_DATABASE_GRACE_SECONDS = 20.0


class Hold:
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


@dataclass(frozen=True, slots=True)
class SupervisedRun:
    """One attempt, the process of its runner, and the requests to end the process."""

    worker: GatewayWorker
    attempt: Attempt
    process: RunnerProcess
    stop: RunStop
    watched: Watched
    hold: Hold

    @property
    def row(self) -> RunAttempt:
        """The row of the attempt."""
        return self.attempt.row

    @property
    def version(self) -> ProducerVersion:
        """The code of the run."""
        return self.attempt.run.producer_version

    @property
    def is_lost(self) -> bool:
        """Whether another worker may begin the run, or has done so."""
        return self.watched.lease_lost.is_set()

    @property
    def is_canceled(self) -> bool:
        """Whether the run is to be canceled."""
        return self.watched.cancel_requested.is_set()

    @property
    def goes_down(self) -> bool:
        """Whether the worker was asked to end."""
        return self.worker.going_down.is_set()
