"""The headings of attempts in the log of a run, on pages and in text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from assets_app.models import Run, RunAttempt, RunLog

_RULE = "=" * 8


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A chunk of a log, with the attempt if the chunk is the first shown chunk of the attempt."""

    text: str
    attempt: RunAttempt | None


def chunks_with_attempts(blocks: Sequence[RunLog], previous_number: int = 0) -> Iterator[LogChunk]:
    """Yield the chunks of a log in order; ``previous_number`` is the number of the attempt whose
    chunks the reader has.
    """
    for block in blocks:
        attempt = block.attempt
        yield LogChunk(block.text, attempt if attempt.number != previous_number else None)
        previous_number = attempt.number


class AttemptLines:
    """The headings of the attempts at a run in a log that is written as text.

    A log of one attempt has no heading, so that the text is the output and nothing else.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._attempts = self._read()
        self._number = 0 if len(self._attempts) > 1 else 1
        self._last_text = "\n"

    def before(self, number: int, text: str) -> str:
        """Return the heading before a chunk of this attempt; empty within an attempt."""
        is_at_line_start, self._last_text = self._last_text.endswith("\n"), text or self._last_text
        if number == self._number:
            return ""
        self._number = number
        if number not in self._attempts:
            self._attempts = self._read()
        attempt = self._attempts.get(number)
        heading = f"Attempt {number}" if attempt is None else _sentence(attempt)
        return f"{'' if is_at_line_start else chr(10)}{_RULE} {heading} {_RULE}\n"

    def with_heading(self, entry: Mapping[str, Any]) -> str:
        """Return the text of an entry of the API, after the heading if there is one."""
        return self.before(entry["attempt"], entry["text"]) + str(entry["text"])

    def _read(self) -> dict[int, RunAttempt]:
        rows = self._run.attempts.only("run", "number", "started_at", "ended_at", "outcome")
        return {attempt.number: attempt for attempt in rows}


def _sentence(attempt: RunAttempt) -> str:
    started = f"Attempt {attempt.number}, started {_utc(attempt.started_at)}"
    if not attempt.outcome or attempt.ended_at is None:
        return f"{started}, running"
    return f"{started}, {attempt.get_outcome_display().lower()} {_utc(attempt.ended_at)}"


def _utc(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
