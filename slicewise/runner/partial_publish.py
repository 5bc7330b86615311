"""The partial publication of a run that fails, for assets with ``on_partial="publish"``."""

from collections.abc import Callable
from dataclasses import dataclass, field

from slicewise.io.frames import RowsError
from slicewise.platform_failures import is_platform_failure
from slicewise.runner.channel import Channel
from slicewise.runner.function_arguments import FunctionArguments
from slicewise.runner.validating import RunValidations
from slicewise.running.invoke import Producer
from slicewise.texts.tracebacks import one_line
from slicewise.validations import ValidationFailedError

_PER_MESSAGE = 250
_ERROR_LENGTH = 950


@dataclass
class UnpublishedPartitions:
    """The partitions that a run does not materialize, by key text, each with the reason."""

    reasons: dict[str, str] = field(default_factory=dict)
    error: Exception | None = None
    """The error with which the run fails; None if all partitions are materialized."""

    def report(self, worker: Channel) -> None:
        """Report the partitions to the worker, page by page."""
        entries = [{"key": key, "error": reason} for key, reason in self.reasons.items()]
        for start in range(0, len(entries), _PER_MESSAGE):
            worker.say({"type": "unmade", "partitions": entries[start : start + _PER_MESSAGE]})


def write_and_validate(
    producer: Producer,
    arguments: FunctionArguments,
    validating: RunValidations,
    write: Callable[[], object],
) -> UnpublishedPartitions:
    """Call the function and validate the data; return the partitions that are not to be published.

    A partition is complete once the `self.write` with its rows has returned, and the partition
    passes the outlet validations. Raises the error if nothing may be kept: that is always so
    without ``on_partial="publish"``.
    """
    unmade = UnpublishedPartitions()
    try:
        write()
    except Exception as error:
        if not _may_keep(producer, arguments) or _spoils_all(error):
            raise
        unmade.error = error
        unmade.reasons = _not_written(arguments, error)
    try:
        validating.outlets(arguments)
    except ValidationFailedError as failed:
        refused_partitions = (
            validating.failing_partitions(arguments) if _may_keep(producer, arguments) else {}
        )
        if not refused_partitions:
            raise unmade.error or failed from None
        unmade.reasons |= refused_partitions
        unmade.error = unmade.error or failed
    return unmade


def _may_keep(producer: Producer, arguments: FunctionArguments) -> bool:
    """Return whether partitions may be published alone: several of one asset, some of them
    written.
    """
    return (
        producer.options.on_partial == "publish"
        and len(arguments.keys) > 1
        and len(arguments.outlets) == 1
        and bool(arguments.outlets[0].staged)
    )


def _spoils_all(error: Exception) -> bool:
    """Return whether an error concerns all partitions of a run.

    Rows of no partition show that the function is wrong about all partitions; a run that has lost
    its server is tried again.
    """
    return isinstance(error, RowsError) or is_platform_failure(error)


def _not_written(arguments: FunctionArguments, error: Exception) -> dict[str, str]:
    written = {partition.key for partition in arguments.outlets[0].staged}
    reason = f"It was not written: {one_line(error)}"[:_ERROR_LENGTH]
    return {key.text: reason for key in arguments.keys if key.text not in written}
