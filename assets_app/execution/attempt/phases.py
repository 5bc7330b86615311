"""Phases of an attempt, for those who follow attempts: log lines and traces."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any

from django.db import transaction
from django.dispatch import Signal

from assets_app.models import AttemptOutcome, RunAttempt, RunState
from assets_app.signals import attempt_closed, attempt_opened, phase_ended, runner_starting
from slicewise_server.web.log_context import log_facts


class AttemptPhase(StrEnum):
    """The phases of an attempt that take time."""

    PREPARE = "prepare"
    RUNNER = "runner"
    PUBLISH = "publish"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """The end of an attempt and the state of the run from then on, as recorded: those who follow
    attempts need not read a row.

    The error of an attempt is the error of a run that fails with the attempt.
    """

    outcome: AttemptOutcome
    ended_at: datetime
    error: str
    run_state: RunState


@contextmanager
def attempt_work(attempt: RunAttempt, *, is_new: bool) -> Iterator[None]:
    """Announce that this worker works on the attempt; log lines in the block name the attempt."""
    answers = _answers(attempt_opened, attempt, is_new=is_new)
    run = attempt.run
    facts = {"run": run.pk, "attempt": attempt.number, "asset": run.asset.name}
    with log_facts({**facts, **answers}):
        yield


@contextmanager
def attempt_phase(attempt: RunAttempt, phase: AttemptPhase) -> Iterator[None]:
    """Announce the time of one phase, once the phase has ended; without receivers, do nothing."""
    began = time.time_ns()
    try:
        yield
    finally:
        if phase_ended.has_listeners():
            ended = time.time_ns()
            phase_ended.send_robust(
                sender=None, attempt=attempt, phase=phase, began=began, ended=ended
            )


def runner_variables(attempt: RunAttempt) -> dict[str, str]:
    """Return the variables that receivers add to the environment of the runner."""
    return _answers(runner_starting, attempt)


def announce_end(attempt: RunAttempt, end: AttemptEnd) -> None:
    """Announce the end of an attempt once the transaction has committed."""
    if attempt_closed.has_listeners():
        announce = partial(attempt_closed.send_robust, sender=None, attempt=attempt, end=end)
        transaction.on_commit(announce, robust=True)


def _answers(signal: Signal, attempt: RunAttempt, **more: Any) -> dict[str, Any]:
    """Return the answers of all receivers; an error of a receiver is logged by Django alone."""
    answers = signal.send_robust(sender=None, attempt=attempt, **more)
    return {
        name: value
        for _, answer in answers
        if isinstance(answer, dict)
        for name, value in answer.items()
    }
