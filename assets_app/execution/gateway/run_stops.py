"""The early end of a runner: on request if the run has a tear-down, else by force."""

import math
import time

from django.conf import settings

from assets_app.models import ProducerVersion
from slicewise.runner.parent_client import RunnerProcess

CANCELED, TIMED_OUT, STOPPED = "canceled", "timed_out", "stopped"
"""Outcomes of a run that the worker ends, for the tear-down."""

# Half of the shortest time that a worker has between SIGTERM and SIGKILL.
_WORKER_ENDS_SECONDS = 5.0
# Python handles a signal between two steps of the main thread, or when the signal ends a wait. A
# signal that comes as the wait begins, or to another thread, is not handled until the wait is over.
_REPEATED_AFTER_SECONDS = (1.0, 2.0, 4.0)


class RunStop:
    """The end of one runner, whose time begins now.

    A tear-down has TEARDOWN_SECONDS from the end of the function, or from the request to end the
    function. A worker that ends grants less time.
    """

    def __init__(self, process: RunnerProcess, version: ProducerVersion) -> None:
        self._process = process
        self._timeout: float | None = version.spec.timeout
        self._began = time.monotonic()
        self._tears_down = version.spec.teardown is not None
        self._until = math.inf
        self._seconds = 0.0
        self._repeats_at: list[float] = []
        self._has_heard = False
        self.outcome: str | None = None
        """The outcome for which the runner was asked to end."""
        self.is_late = False
        """Whether the runner was killed because the time was over."""

    @property
    def exceeded_timeout(self) -> float | None:
        """The timeout of the asset in seconds, once the timeout is over; None before."""
        is_over = self._timeout is not None and time.monotonic() > self._began + self._timeout
        return self._timeout if is_over else None

    def end(self, outcome: str) -> None:
        """Kill the runner, or ask it to end if it has a tear-down and was not asked yet."""
        if not self._tears_down:
            self._process.kill()
            return
        limit = settings.TEARDOWN_SECONDS
        self._limit(min(_WORKER_ENDS_SECONDS, limit) if outcome == STOPPED else limit)
        if self.outcome is None:
            self.outcome = outcome
            if not self._has_heard:
                self._process.stop()
                asked_at = time.monotonic()
                self._repeats_at = [asked_at + seconds for seconds in _REPEATED_AFTER_SECONDS]

    def note_end(self) -> None:
        """Take note that the function has ended: limit the time of the tear-down, and ask the
        runner no more.

        A handler of the function's own would hear each further request, also in the tear-down.
        """
        self._has_heard = True
        self._repeats_at.clear()
        self._limit(settings.TEARDOWN_SECONDS)

    def enforce(self) -> None:
        """Kill a runner that has not ended in time; ask a runner again that may not have heard."""
        now = time.monotonic()
        if now > self._until:
            self.is_late = True
            self._process.kill()
        elif self._repeats_at and now > self._repeats_at[0]:
            del self._repeats_at[0]
            self._process.stop()

    @property
    def late_sentence(self) -> str:
        """The reason why the tear-down has not ended."""
        return (
            f"The tear-down had not ended {self._seconds:g} s after the function had to end, and"
            " was stopped."
        )

    def _limit(self, seconds: float) -> None:
        """Limit the time that the runner has from now on, if it has a tear-down."""
        until = time.monotonic() + seconds
        if self._tears_down and until < self._until:
            self._until, self._seconds = until, seconds
