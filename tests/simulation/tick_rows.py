"""The rows that ticks of schedules leave, as `docs/guides/schedules.md` describes the rows."""

from collections.abc import Sequence
from datetime import datetime

from tests.simulation.entries import TickEntry

_IDLE = ("nothing_ended", "upstream")


class TickRows:
    """The rows of all schedules of a reference deployment."""

    def __init__(self) -> None:
        self._rows: dict[str, list[TickEntry]] = {}

    def entries(self) -> list[TickEntry]:
        """Return all rows."""
        return [row for rows in self._rows.values() for row in rows]

    def add(
        self,
        name: str,
        moments: Sequence[datetime],
        *,
        queued: int,
        existing: int = 0,
        in_flight: int = 0,
        superseded: int = 0,
        waiting: int = 0,
    ) -> None:
        """Add the row of the ticks that were handled together, or join it to the row before, if
        both queued nothing for the same reason, which is no partition's.
        """
        reason = "nothing_ended"
        if queued:
            reason = ""
        elif in_flight:
            reason = "in_flight"
        elif waiting:
            reason = "upstream"
        elif existing:
            reason = "exists"
        rows, at = self._rows.setdefault(name, []), moments[-1]
        if reason in _IDLE and rows and rows[-1][4] == reason:
            _, first, _, count, _, numbers = rows.pop()
            rows.append((name, first, at, count + len(moments), reason, numbers))
            return
        numbers = queued, existing, in_flight, superseded
        rows.append((name, at, at, len(moments), reason, numbers))
