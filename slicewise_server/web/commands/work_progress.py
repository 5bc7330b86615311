"""The progress of a request or backfill that a command waits for."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkProgress:
    """The progress of some work; ``done`` includes failed, canceled and skipped items."""

    total: int
    done: int
    failed: int
    state: str
    ended: bool
