"""Keeps what an attempt prints, so that the web shows it without sharing a disk."""

import time

from assets_app.catalogue.texts import storable
from assets_app.models import RunAttempt, RunLog

_FLUSH_SECONDS = 0.5
_FLUSH_CHARACTERS = 64 * 1024


class LogKeeper:
    """Writes text in pieces: often enough to be followed, seldom enough to be cheap.

    Their numbers begin ``after`` one, and say in which order they are shown.
    """

    def __init__(self, attempt: RunAttempt, *, after: int = 0) -> None:
        self._attempt = attempt
        self._sequence = after
        self._pieces: list[str] = []
        self._size = 0
        self._flushed_at = 0.0

    def add(self, text: str) -> None:
        """Take a piece of text as it was printed."""
        self._pieces.append(storable(text))
        self._size += len(text)
        self.flush_if_due()

    def flush_if_due(self) -> None:
        """Write what has gathered if it is old or long enough."""
        waited = time.monotonic() - self._flushed_at
        if self._pieces and (waited > _FLUSH_SECONDS or self._size > _FLUSH_CHARACTERS):
            self.flush()

    def flush(self) -> None:
        """Write what has gathered."""
        if not self._pieces:
            return
        self._sequence += 1
        RunLog.objects.create(
            attempt=self._attempt, sequence=self._sequence, text="".join(self._pieces)
        )
        self._pieces.clear()
        self._size = 0
        self._flushed_at = time.monotonic()
