"""The progress of a request or backfill, as commands follow it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far some work is; what failed, was canceled or skipped is done as well."""

    total: int
    done: int
    failed: int
    state: str
    ended: bool
