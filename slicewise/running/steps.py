"""The steps of a run: the set-up, the asset's function, and the tear-down."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from slicewise.declaring.signatures import wanted_names
from slicewise.declaring.step_functions import setup_name
from slicewise.running.context import RunContext, current_context, extended
from slicewise.running.handles import AssetHandle
from slicewise.running.invoke import Producer, invoke, write_returned
from slicewise.running.written_handles import Outlets, WritableHandle

SETUP, FUNCTION, TEARDOWN = STEPS = ("setup", "function", "teardown")
RUNNING, SUCCEEDED, FAILED, STOPPED = STATES = ("running", "succeeded", "failed", "stopped")
OUTCOMES = ("succeeded", "failed", "canceled", "timed_out", "stopped")
"""The values of ``context["outcome"]`` in a tear-down."""

StepReporter = Callable[[str, str, BaseException | None], str | None]
"""Takes a step, its new state and its error; returns the outcome of the run, if already known."""

_COMPLETE = "a tear-down runs after the data of the run is complete"


class RunStopped(BaseException):
    """The run is to end now: raised in the function of a run that is canceled or over time."""


def _report_nothing(step: str, state: str, error: BaseException | None) -> str | None:
    return None


class RunSteps:
    """The calls of a producer's set-up, function and tear-down in one run."""

    def __init__(
        self,
        producer: Producer,
        context: RunContext,
        own: WritableHandle | Outlets,
        session: Callable[[], Any],
        report: StepReporter = _report_nothing,
    ) -> None:
        self._producer, self._context, self._own = producer, context, own
        self._session = session
        self._report = report
        self._has_begun = False
        name = setup_name(producer.options)
        # The tear-down of a set-up that has failed gets None.
        self._set_up: dict[str, Any] = {} if name is None else {name: None}

    def make(self, upstream: Mapping[str, AssetHandle]) -> Any:
        """Call the set-up and the function, and write the returned data; return the data."""
        setup = self._producer.options.setup
        if setup is not None:
            with self._step(SETUP):
                self._set_up = {setup.__name__: self._call(setup, self._context, {})}
        with self._step(FUNCTION):
            returned = invoke(
                self._producer, self._context, self._own, upstream, self._session, self._set_up
            )
            write_returned(self._producer, self._own, returned)
        return returned

    def tear_down(self, outcome: str, error: str | None) -> BaseException | None:
        """Call the tear-down if a step has begun; return the error of the tear-down, or None.

        ``outcome`` is one of `OUTCOMES`, unless the receiver of `StepReporter` knows another one.
        """
        teardown = self._producer.options.teardown
        if teardown is None or not self._has_begun:
            return None
        self._close()
        outcome = self._report(TEARDOWN, RUNNING, None) or outcome
        error = error if outcome == "failed" else None
        context = extended(self._context, outcome=outcome, error=error)
        try:
            self._call(teardown, context, self._set_up)
        except KeyboardInterrupt:
            raise
        except BaseException as failure:
            self._report(TEARDOWN, FAILED, failure)
            return failure
        self._report(TEARDOWN, SUCCEEDED, None)
        return None

    @contextmanager
    def _step(self, step: str) -> Iterator[None]:
        self._has_begun = True
        try:
            self._report(step, RUNNING, None)
            yield
        except BaseException as error:
            self._report(step, STOPPED if isinstance(error, RunStopped) else FAILED, error)
            raise
        self._report(step, SUCCEEDED, None)

    def _call(
        self, function: Callable[..., Any], context: RunContext, set_up_values: Mapping[str, Any]
    ) -> Any:
        arguments = dict(set_up_values)
        names = wanted_names(function)
        if "spark" in names:
            arguments["spark"] = self._session()
        arguments |= {"self": self._own, "context": context}
        with current_context(context):
            return function(**{name: arguments[name] for name in names})

    def _close(self) -> None:
        """Refuse data and keys from now on: the run's output is already reported."""
        handles = self._own.values() if isinstance(self._own, Outlets) else [self._own]
        for handle in handles:
            handle.close(_COMPLETE)
        self._context.discoveries.close(_COMPLETE)
