"""The steps of a run in the runner: reported to the worker, and stopped on request."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from slicewise import spark
from slicewise.runner.channel import Channel
from slicewise.runner.function_arguments import FunctionArguments
from slicewise.runner.session import LazySession
from slicewise.runner.stop_signal import StopSignal
from slicewise.running.invoke import Producer
from slicewise.running.steps import RUNNING, STOPPED, RunSteps, RunStopped
from slicewise.texts.tracebacks import one_line, user_traceback

# The JVM passes the output of an application on, and may be a moment behind.
_OUTPUT_PAUSE_SECONDS = 0.1
# From the request to stop to the end of the wait for the first interrupt, and for the late ones: a
# worker that ends gives 5 s, and a tear-down may need no Spark.
_FIRST_INTERRUPT_SECONDS, _LAST_INTERRUPT_SECONDS = 3.0, 4.5
# An operation that a call has just sent is not among those that Spark interrupts.
_LATE_WORK_SECONDS, _MOST_LATE_WORK_SECONDS, _LATE_WORK_PAUSE = 0.3, 1.2, 0.1

_logger = logging.getLogger("slicewise")


class StepsOfRun:
    """The steps of one run, reported to the worker if there is a set-up or a tear-down."""

    def __init__(self, worker: Channel, session: LazySession, root: Path) -> None:
        self._worker, self._session, self._root = worker, session, root
        self._stop = StopSignal(self._interrupt_spark)
        self._is_interrupted = threading.Event()
        self._has_interrupted = False
        # What a tear-down does on Spark is not to be interrupted.
        self._may_interrupt = True
        self._steps: RunSteps | None = None
        self._reports_steps = False
        # The step that was reported as begun and not as ended.
        self._running: str | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether the worker has asked the run to end."""
        return self._stop.is_asked

    @contextmanager
    def around(self, producer: Producer, arguments: FunctionArguments) -> Iterator[RunSteps]:
        """Yield the steps; in the block the worker can stop a run that has a tear-down."""
        options = producer.options
        self._reports_steps = options.setup is not None or options.teardown is not None
        self._steps = steps = RunSteps(
            producer, arguments.context, arguments.own, self._session.get, self._report
        )
        if options.teardown is None:
            yield steps
            return
        self._worker.uninterrupted = self._stop.held
        with self._stop.raising():
            yield steps

    def tear_down(self, error: BaseException | None) -> None:
        """Call the tear-down if a step has begun; report a failure of the tear-down."""
        steps = self._steps
        if steps is None:
            return
        self._may_interrupt = self.is_stopped
        # Read once more: a stop that came before the line above may interrupt work on Spark.
        is_stopped = self.is_stopped
        outcome = "stopped" if is_stopped else "succeeded" if error is None else "failed"
        sentence = None if error is None else _sentence(error)
        call = partial(self._tear_down, steps, outcome, sentence)
        if not is_stopped:
            call()
            return
        # In a thread of its own: the answer to a call of the JVM that was cut short would be taken
        # for the answer to the next call of the same thread.
        thread = threading.Thread(target=self._tear_down_after_stop, args=(call,), name="teardown")
        try:
            thread.start()
        except RuntimeError:  # the run may have no further thread
            self._tear_down_after_stop(call)
        else:
            thread.join()

    def _tear_down_after_stop(self, call: Callable[[], None]) -> None:
        """Call the tear-down once the work of the function on Spark is interrupted."""
        first = self._stop.asked_at + _FIRST_INTERRUPT_SECONDS
        last = self._stop.asked_at + _LAST_INTERRUPT_SECONDS
        if self._is_interrupted.wait(_seconds_until(first)) and self._has_interrupted:
            late = threading.Thread(target=self._interrupt_late_work, name="interrupt", daemon=True)
            with suppress(RuntimeError):  # the run may have no further thread
                late.start()
                late.join(_seconds_until(last))
        self._may_interrupt = False
        call()

    def _tear_down(self, steps: RunSteps, outcome: str, error: str | None) -> None:
        try:
            steps.tear_down(outcome, error)
        except Exception:  # the worker is gone, or refuses the step
            _logger.exception("the tear-down was not called")

    def _interrupt_spark(self) -> None:
        """Stop the work of the function, in all threads, on Spark."""
        session = self._session.opened
        with _warned("work on Spark not interrupted"):
            if session is not None and self._may_interrupt:
                self._renew_connection()
                spark.interrupt_work(session)
                self._has_interrupted = True
        self._is_interrupted.set()

    def _interrupt_late_work(self) -> None:
        """Stop work of the function that Spark began while the first interrupt came."""
        session = self._session.opened
        if session is None:
            return
        began = time.monotonic()
        with _warned("late work on Spark not interrupted"):
            self._renew_connection()
            while self._may_interrupt:
                had_work = spark.interrupt_work(session)
                time.sleep(_LATE_WORK_PAUSE)
                # Another thread of the function may go on and on.
                limit = _MOST_LATE_WORK_SECONDS if had_work else _LATE_WORK_SECONDS
                if time.monotonic() - began > limit:
                    break

    def _renew_connection(self) -> None:
        # Another version of pyspark may refuse this; most channels are of use.
        with _warned("connection to Spark not renewed"):
            if self._session.opened is not None:
                spark.renew_connection(self._session.opened)

    def _report(self, step: str, state: str, error: BaseException | None) -> str | None:
        """Report a step to the worker; the request to stop the run waits until that is done."""
        if not self._reports_steps:
            return None
        with self._stop.held():
            # A stop may have come between a step and its report.
            if state == RUNNING and self._running is not None:
                self._send_report(self._running, STOPPED, None)
            if state != RUNNING and self._running != step:
                return None
            self._running = step if state == RUNNING else None
            return self._send_report(step, state, error)

    def _send_report(self, step: str, state: str, error: BaseException | None) -> str | None:
        sentence = ""
        if error is not None and not isinstance(error, RunStopped):
            sentence = one_line(error)
            if step == "teardown":  # no other message has the traceback
                sys.stderr.write(user_traceback(error, self._root))
        sys.stdout.flush()
        sys.stderr.flush()
        if self._session.is_submitted:
            time.sleep(_OUTPUT_PAUSE_SECONDS)
        answer = self._worker.confirm(
            {"type": "step", "step": step, "state": state, "error": sentence}
        )
        return answer.get("outcome") if (step, state) == ("teardown", RUNNING) else None


@contextmanager
def _warned(failure: str) -> Iterator[None]:
    """Log an error in the block as a warning: the worker stops the work on Spark too."""
    try:
        yield
    except Exception as error:
        _logger.warning("%s: %s", failure, one_line(error))


def _seconds_until(moment: float) -> float:
    return max(0.0, moment - time.monotonic())


def _sentence(error: BaseException) -> str:
    if isinstance(error, RunStopped):
        return "The process of the run was asked to end by SIGTERM."
    return one_line(error)
