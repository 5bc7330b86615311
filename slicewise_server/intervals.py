"""Intervals of Celery's beat that are aligned with the wall clock."""

from datetime import datetime
from math import floor

from celery.schedules import schedstate, schedule

# The clock of the host that evaluates a tick may be a little behind the clock of beat's host.
_AFTER = 0.005


class AtMultiples(schedule):
    """An interval in seconds; messages are sent a moment after whole multiples of the interval.

    Time windows end with whole seconds, and a partition that is due with the end of a window waits
    for the next message: at any other moment, half of the interval on average.
    """

    def is_due(self, last_run_at: datetime) -> schedstate:
        """Return whether to send now, and the seconds until the next check."""
        now = self.now().timestamp()
        due = self._after(last_run_at.timestamp())
        if now < due:
            return schedstate(False, due - now)
        return schedstate(True, self._after(now) - now)

    def _after(self, moment: float) -> float:
        every: float = self.seconds
        return (floor((moment - _AFTER) / every) + 1) * every + _AFTER
