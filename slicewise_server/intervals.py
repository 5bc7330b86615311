"""Intervals of Celery's beat that are aligned with the wall clock."""

from celery.schedules import schedule

# The clock of the host that evaluates a tick may be a little behind the clock of beat's host.
_AFTER = 0.005
# A message that was sent this little before its time was sent in time: the wall clock is slewed.
_MARGIN = 0.001


class AtMultiples(schedule):
    """An interval in seconds; messages are sent a moment after whole multiples of the interval.

    Time windows end with whole seconds, and a partition that is due with the end of a window waits
    for the next message: at any other moment, half of the interval on average.
    """

    def seconds_until_next(self, now: float) -> float:
        """Return the seconds from a wall clock's time, at which a message is sent, to the next."""
        every: float = self.seconds
        seconds = every - (now - _AFTER) % every
        return seconds if seconds > _MARGIN else seconds + every
