"""Receivers of the signals of attempts, which write the spans of runs.

The times of a run before its attempt are on record, so that the tick and the dispatch do nothing
for traces: the worker of the attempt sends the spans of these times too.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any

from assets_app.execution.attempt.phases import AttemptEnd
from assets_app.models import TERMINAL_STATES, AttemptOutcome, Run, RunAttempt, RunState
from assets_app.signals import attempt_closed, attempt_opened, phase_ended, runner_starting
from slicewise.texts import masked_text
from slicewise_server.tracing.exporting import Exporter, Span
from slicewise_server.tracing.ids import RunTrace

_ERROR_LENGTH = 1_000


@cache
def exporter() -> Exporter:
    """Return the exporter of this process, which is created with the first span."""
    return Exporter()


def connect() -> None:
    """Receive the signals of attempts."""
    attempt_opened.connect(receive_opened, dispatch_uid="tracing.opened")
    runner_starting.connect(receive_runner, dispatch_uid="tracing.runner")
    phase_ended.connect(receive_phase, dispatch_uid="tracing.phase")
    attempt_closed.connect(receive_ended, dispatch_uid="tracing.ended")


def disconnect() -> None:
    """Receive no signals any more."""
    for signal, name in (
        (attempt_opened, "opened"),
        (runner_starting, "runner"),
        (phase_ended, "phase"),
        (attempt_closed, "ended"),
    ):
        signal.disconnect(dispatch_uid=f"tracing.{name}")


def receive_opened(attempt: RunAttempt, is_new: bool, **_: Any) -> dict[str, str]:
    """Send the spans of the times before an attempt; return the trace for log lines."""
    run, trace = attempt.run, RunTrace.of(attempt.run)
    if is_new:
        for span in _spans_before(run, trace, attempt):
            exporter().export(span)
    return {"trace_id": f"{trace.trace_id:032x}"}


def receive_runner(attempt: RunAttempt, **_: Any) -> dict[str, str]:
    """Return the variable by which user code continues the trace."""
    trace = RunTrace.of(attempt.run)
    if not exporter().is_sampled(trace.trace_id):
        return {}
    return {"TRACEPARENT": trace.traceparent(attempt.number)}


def receive_phase(attempt: RunAttempt, phase: str, began: int, ended: int, **_: Any) -> None:
    """Send the span of a phase."""
    trace, number = RunTrace.of(attempt.run), attempt.number
    exporter().export(
        Span(
            name=str(phase),
            trace_id=trace.trace_id,
            span_id=trace.phase(number, str(phase)),
            parent_id=trace.attempt(number),
            began=began,
            ended=ended,
            attributes={"slicewise.run": attempt.run_id, "slicewise.attempt": number},
        )
    )


def receive_ended(attempt: RunAttempt, end: AttemptEnd, **_: Any) -> None:
    """Send the span of an attempt and, if the run has ended with it, the span of the run."""
    trace, number = RunTrace.of(attempt.run), attempt.number
    gateway = {"slicewise.gateway": attempt.gateway.name} if attempt.gateway else {}
    has_failed = end.outcome in (AttemptOutcome.FAILED, AttemptOutcome.LOST)
    exporter().export(
        Span(
            name=f"attempt {number}",
            trace_id=trace.trace_id,
            span_id=trace.attempt(number),
            parent_id=trace.root,
            began=_nanoseconds(attempt.started_at),
            ended=_nanoseconds(end.ended_at),
            attributes={
                "slicewise.run": attempt.run_id,
                "slicewise.attempt": number,
                "slicewise.outcome": str(end.outcome),
                "slicewise.engine": attempt.engine,
                **gateway,
            },
            error=_shown(end.error) or str(end.outcome) if has_failed else "",
        )
    )
    if end.run_state in TERMINAL_STATES:
        exporter().export(_root(attempt.run, trace, end))


def _root(run: Run, trace: RunTrace, end: AttemptEnd) -> Span:
    """Return the span of an ended run."""
    if not run.partition_count:
        # The run has discovered its partitions since the attempt began.
        run.refresh_from_db(fields=["selection", "partition_count"])
    state = str(end.run_state)
    return Span(
        name=f"run {run.asset.name}",
        trace_id=trace.trace_id,
        span_id=trace.root,
        parent_id=None,
        began=_nanoseconds(run.tick.at if run.tick else run.created_at),
        ended=_nanoseconds(end.ended_at),
        attributes={
            "slicewise.run": run.pk,
            "slicewise.asset": run.asset.name,
            "slicewise.state": state,
            "slicewise.trigger": run.trigger,
            "slicewise.queue": run.queue,
            "slicewise.selection": run.selection[:200],
            "slicewise.partitions": run.partition_count,
        },
        error=(_shown(end.error) or state) if end.run_state == RunState.FAILED else "",
    )


def _spans_before(run: Run, trace: RunTrace, attempt: RunAttempt) -> Iterator[Span]:
    """Return the spans of the tick, of the queue and of the dispatch before an attempt."""
    number = attempt.number
    queued_at = run.queued_at or run.created_at
    dispatched_at = run.dispatched_at or attempt.started_at
    times = [
        (f"queue {number}", queued_at, dispatched_at),
        (f"dispatch {number}", dispatched_at, attempt.started_at),
    ]
    if run.tick is not None and number == 1:
        times.insert(0, ("tick", run.tick.at, run.created_at))
    for name, began_at, ended_at in times:
        yield Span(
            name=name.partition(" ")[0],
            trace_id=trace.trace_id,
            span_id=trace.span_id(name),
            parent_id=trace.root,
            began=_nanoseconds(began_at),
            ended=_nanoseconds(ended_at),
            attributes={"slicewise.run": run.pk, "slicewise.queue": run.queue},
        )


def _shown(error: str) -> str:
    return masked_text(error)[:_ERROR_LENGTH]


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1_000
