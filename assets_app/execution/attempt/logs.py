"""Storage of an attempt's printed text, so that the web shows the log without a shared disk."""

import logging
import time

from django.db import DatabaseError, InterfaceError

from assets_app.catalogue.texts import storable
from assets_app.execution.database import borrowed_connection, is_passing
from assets_app.models import RunAttempt, RunLog

log = logging.getLogger(__name__)

_FLUSH_SECONDS = 0.5
_FLUSH_CHARACTERS = 64 * 1024
_PAUSE_SECONDS = 5.0


class LogKeeper:
    """A writer of log text in blocks: often enough to be followed, seldom enough to be cheap.

    A block ends with a line where possible: secrets are masked block by block when a log is shown.
    Block numbers begin after ``after``, and give the order in which blocks are shown. A database
    that is away stops no run: text that the database does not accept is offered again with later
    text.
    """

    def __init__(self, attempt: RunAttempt, *, after: int = 0) -> None:
        self._attempt = attempt
        self._sequence = after
        self._texts: list[str] = []
        self._size = 0
        self._step = ""
        self._flushed_at = 0.0
        self._pause = _FLUSH_SECONDS
        # A block that was offered, and is not known to be written. The block may be written, and so
        # is offered again unchanged.
        self._offered: RunLog | None = None

    def add(self, text: str) -> None:
        """Add text as it was printed."""
        self._texts.append(storable(text))
        self._size += len(text)
        self.flush_if_due()

    def begin_step(self, step: str, name: str) -> None:
        """Begin the log of a step of the run, whose function has this name."""
        self.flush()
        self._step = step
        self.add(f"[{step}: {name} is called]\n")

    def end_step(self) -> None:
        """End the log of the step."""
        self.flush()
        self._step = ""

    def flush_if_due(self) -> None:
        """Write the gathered text if the text is old or long enough."""
        waited = time.monotonic() - self._flushed_at
        is_long = self._size > _FLUSH_CHARACTERS and self._pause == _FLUSH_SECONDS
        if (self._texts or self._offered) and (waited > self._pause or is_long):
            self._flush(only_lines=True)

    def flush(self) -> None:
        """Write the gathered text, as far as the database accepts it."""
        self._flush(only_lines=False)

    def _flush(self, *, only_lines: bool) -> None:
        try:
            with borrowed_connection():
                if self._offered is not None:
                    self._write(self._offered)
                if self._texts:
                    self._write(self._take(only_lines=only_lines))
            self._pause = _FLUSH_SECONDS
        except (DatabaseError, InterfaceError) as error:
            if not is_passing(error):
                raise
            log.warning(
                "log not written yet", extra={"run": self._attempt.run_id, "error": str(error)}
            )
            self._pause = _PAUSE_SECONDS
        self._flushed_at = time.monotonic()

    def _take(self, *, only_lines: bool) -> RunLog:
        """Return the next block.

        An unfinished line after whole lines waits for its end, but not beyond the next block.
        """
        text = "".join(self._texts)
        end = text.rfind("\n") + 1 if only_lines else 0
        end = end or len(text)
        self._texts = [text[end:]] if end < len(text) else []
        self._size = len(text) - end
        self._sequence += 1
        return RunLog(
            attempt=self._attempt, sequence=self._sequence, step=self._step, text=text[:end]
        )

    def _write(self, block: RunLog) -> None:
        self._offered = block
        RunLog.objects.bulk_create([block], ignore_conflicts=True)
        self._offered = None
