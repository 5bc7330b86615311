"""What is kept of a run that fails in part, for assets with ``on_partial="publish"``."""

from collections.abc import Callable
from dataclasses import dataclass, field

from slicewise.frames import RowsError
from slicewise.invoke import Producer
from slicewise.platform_failures import is_platform_failure
from slicewise.runner.channel import Channel
from slicewise.runner.given import Given
from slicewise.runner.validating import Validating
from slicewise.tracebacks import one_line
from slicewise.validations import ValidationFailedError

_PER_MESSAGE = 250
_ERROR_LENGTH = 950


@dataclass
class Unmade:
    """The partitions of a run that it leaves unmade, by key text, each with the reason."""

    reasons: dict[str, str] = field(default_factory=dict)
    error: Exception | None = None
    """What the run fails with; None where it has made all."""

    def tell(self, worker: Channel) -> None:
        """Says them, page by page."""
        said = [{"key": key, "error": why} for key, why in self.reasons.items()]
        for start in range(0, len(said), _PER_MESSAGE):
            worker.say({"type": "unmade", "partitions": said[start : start + _PER_MESSAGE]})


def make(
    producer: Producer, given: Given, validating: Validating, write: Callable[[], None]
) -> Unmade:
    """Has the function write and what it wrote validated; what of it is not to be published.

    A partition is complete once the `self.write` that holds it has returned, and it passes the
    outlet validations. Raises what went wrong where nothing may be kept: that is always so without
    ``on_partial="publish"``.
    """
    unmade = Unmade()
    try:
        write()
    except Exception as error:
        if not _may_keep(producer, given) or _spoils_all(error):
            raise
        unmade.error = error
        unmade.reasons = _not_written(given, error)
    try:
        validating.outlets(given)
    except ValidationFailedError as failed:
        refused = validating.apart(given) if _may_keep(producer, given) else {}
        if not refused:
            raise unmade.error or failed from None
        unmade.reasons |= refused
        unmade.error = unmade.error or failed
    return unmade


def _may_keep(producer: Producer, given: Given) -> bool:
    """Of several partitions of one asset, some of which are written."""
    return (
        producer.options.on_partial == "publish"
        and len(given.keys) > 1
        and len(given.outlets) == 1
        and bool(given.outlets[0].staged)
    )


def _spoils_all(error: Exception) -> bool:
    """Rows that belong to no partition say that the function is wrong about all of them; a lost
    server is tried again.
    """
    return isinstance(error, RowsError) or is_platform_failure(error)


def _not_written(given: Given, error: Exception) -> dict[str, str]:
    written = {piece.key for piece in given.outlets[0].staged}
    why = f"It was not written: {one_line(error)}"[:_ERROR_LENGTH]
    return {key.text: why for key in given.keys if key.text not in written}
