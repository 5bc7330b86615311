"""Ids of traces and spans, which follow from the run.

Each process derives the same ids: no message and no column carries the ids. The time at which the
run was created tells runs with the same number of other databases apart.
"""

from dataclasses import dataclass
from hashlib import sha256

from assets_app.models import Run


@dataclass(frozen=True, slots=True)
class RunTrace:
    """The ids of the trace of one run."""

    trace_id: int

    @classmethod
    def of(cls, run: Run) -> "RunTrace":
        """Return the ids of a run's trace."""
        return cls(_number(f"run {run.pk} {run.created_at.timestamp():.6f}", 16))

    def span_id(self, name: str) -> int:
        """Return the id of a span; the name of a span occurs once in the trace."""
        return _number(f"{self.trace_id:032x} {name}", 8)

    @property
    def root(self) -> int:
        """The id of the span of the run itself."""
        return self.span_id("run")

    def attempt(self, number: int) -> int:
        """Return the id of the span of an attempt."""
        return self.span_id(f"attempt {number}")

    def phase(self, number: int, phase: str) -> int:
        """Return the id of the span of a phase of an attempt."""
        return self.span_id(f"attempt {number} {phase}")

    def traceparent(self, number: int) -> str:
        """Return the parent of spans that user code makes, in the form of W3C Trace Context."""
        return f"00-{self.trace_id:032x}-{self.phase(number, 'runner'):016x}-01"


def _number(text: str, size: int) -> int:
    """Return a number of so many bytes, never 0, which is no id."""
    return int.from_bytes(sha256(text.encode()).digest()[:size], "big") or 1
