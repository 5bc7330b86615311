"""Storage of the steps that a runner reports, and of the steps that were not run.

User code shares the runner's process: a report counts only for the attempt of the runner's worker,
and only for steps that the producer declares, each once and in order.
"""

from collections.abc import Mapping
from typing import Any, cast

from assets_app.catalogue.texts import storable
from assets_app.models import AttemptStep, RunAttempt, StepState
from assets_app.queries.clock import database_now

_ERROR_LENGTH = 1000
_PROCESS_ENDED = "The process of the attempt ended before the step."
_NOT_REACHED = "The attempt ended before this step."


class StepReports:
    """The steps of one attempt, as far as the runner has reported them."""

    def __init__(self, attempt: RunAttempt) -> None:
        self._attempt = attempt
        self.names: Mapping[str, str] = attempt.run.producer_version.spec.step_names
        """The names of the functions by step; empty if no step is reported."""
        self._kinds = list(self.names)
        # The position of the last step that has begun, and the step that runs.
        self._begun, self._running = -1, cast("str | None", None)

    def note(self, message: Mapping[str, Any]) -> None:
        """Take note of one message. Raises ValueError for an impossible report."""
        kind, state = message["step"], message["state"]
        if kind not in self.names:
            raise ValueError(f"the run reports the step {kind!r}, which its asset does not have")
        if not (self._may_begin(kind) if state == StepState.RUNNING else self._running == kind):
            raise ValueError(f"the run reports the step {kind!r} as {state} at the wrong time")
        self._running = kind if state == StepState.RUNNING else None
        self._begun = self._kinds.index(kind)

    def _may_begin(self, kind: str) -> bool:
        return self._running is None and self._kinds.index(kind) > self._begun

    def store(self, message: Mapping[str, Any]) -> None:
        """Store one noted message; a second call changes nothing."""
        kind, state, now = message["step"], message["state"], database_now()
        if state == StepState.RUNNING:
            row = AttemptStep(
                attempt=self._attempt,
                position=self._kinds.index(kind),
                kind=kind,
                name=self.names[kind],
                state=state,
                started_at=now,
            )
            AttemptStep.objects.bulk_create([row], ignore_conflicts=True)
            return
        running = AttemptStep.objects.filter(
            attempt=self._attempt, kind=kind, state=StepState.RUNNING
        )
        error = storable(message["error"])[:_ERROR_LENGTH]
        running.update(state=state, error=error, ended_at=now)


def settle_steps(attempt: RunAttempt, reason: str = "") -> None:
    """End the steps of an attempt whose process has ended: a running step was stopped, and the
    others were not run. ``reason`` is the reason, as a sentence.
    """
    names = attempt.run.producer_version.spec.step_names
    if not names:
        return
    steps = AttemptStep.objects.filter(attempt=attempt)
    error = storable(reason)[:_ERROR_LENGTH]
    steps.filter(state=StepState.RUNNING).update(
        state=StepState.STOPPED, error=error or _PROCESS_ENDED, ended_at=database_now()
    )
    rows = [
        AttemptStep(
            attempt=attempt,
            position=position,
            kind=kind,
            name=name,
            state=StepState.NOT_RUN,
            error=error or _NOT_REACHED,
        )
        for position, (kind, name) in enumerate(names.items())
    ]
    AttemptStep.objects.bulk_create(rows, ignore_conflicts=True)
