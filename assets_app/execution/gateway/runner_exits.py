"""The end of the process of a runner, and the failure of an attempt that nothing else explains."""

import signal
from collections.abc import Mapping
from typing import Any

from assets_app.execution.attempt.ending import Failure
from assets_app.models import FailureKind


class RunnerExit:
    """The end of the process of a runner, as the warm parent reports it; empty before the end."""

    def __init__(self, message: Mapping[str, Any]) -> None:
        usage = message.get("usage") or {}
        self.cpu_seconds: float | None = usage.get("cpu_seconds")
        self.peak_memory: int | None = usage.get("peak_memory")
        self.excess: str | None = message.get("excess")
        """The limit that the run has reached, as a sentence."""
        self.signal: int | None = message.get("signal")
        self._status = message.get("status")
        self._start_error: str | None = message.get("error")
        # The seconds for which the worker could not renew the lease.
        self._no_renewal: float | None = message.get("no_renewal")

    @property
    def reason_of_steps(self) -> str:
        """Why steps have not ended or not begun; empty if the error of the run says so."""
        if self.excess:
            return self.excess
        if self._no_renewal is not None:
            return self._unrenewed_sentence
        if self.signal == signal.SIGKILL:
            return "The process of the run was ended by SIGKILL."
        return ""

    def failure(self, exceeded_timeout: float | None) -> Failure:
        """Return the failure of an attempt whose runner has reported none.

        ``exceeded_timeout`` is the timeout in seconds if the timeout is over.
        """
        if self._no_renewal is not None:
            # First: the timeout may have passed while the worker waited for the database. No loss,
            # since the run does not keep its worker from renewing leases.
            return Failure(error=self._unrenewed_sentence, kind=FailureKind.PLATFORM)
        if exceeded_timeout is not None:
            sentence = f"The run exceeded its timeout of {exceeded_timeout:g} s and was stopped."
            return Failure(error=sentence)
        if self.excess:
            return Failure(error=self.excess)
        if self._start_error:
            # No memory or no process was available.
            return Failure(
                error=f"No process for the run could be started: {self._start_error}",
                kind=FailureKind.PLATFORM,
            )
        if self.signal:
            name = signal.Signals(self.signal).name
            # User code does not end its process so: the machine was out of memory, or a person sent
            # the signal.
            killed = self.signal == signal.SIGKILL
            return Failure(
                error=f"The process of the run was ended by {name} before it had finished.",
                kind=FailureKind.PLATFORM if killed else FailureKind.CODE,
                is_loss=killed,
            )
        return Failure(error=f"The process of the run ended by itself with status {self._status}.")

    @property
    def _unrenewed_sentence(self) -> str:
        return (
            f"The process of the run was ended, since its worker could not renew the lease of the"
            f" run for {self._no_renewal:g} s: the database was away, or the worker was stopped."
        )
