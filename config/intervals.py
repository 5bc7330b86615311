"""Intervals of Celery's beat that go by the wall."""

from datetime import datetime
from math import floor

from celery.schedules import schedstate, schedule

# By the clock of the host that looks, which may be a little behind that of the one that sends.
_AFTER = 0.005


class AtMultiples(schedule):
    """Every so many seconds, a moment after whole multiples of them.

    Windows end with whole seconds, and what is due with the end of one waits for the next look:
    sent at any other moment, for half of the interval on average.
    """

    def is_due(self, last_run_at: datetime) -> schedstate:
        """Whether to send now, and in how many seconds to look again."""
        now = self.now().timestamp()
        due = self._after(last_run_at.timestamp())
        if now < due:
            return schedstate(False, due - now)
        return schedstate(True, self._after(now) - now)

    def _after(self, moment: float) -> float:
        every: float = self.seconds
        return (floor((moment - _AFTER) / every) + 1) * every + _AFTER
