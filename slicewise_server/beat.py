"""Celery's beat on the monotonic clock: steps of the wall clock do not change intervals.

Celery's own scheduler goes by the wall clock. After a step back by an hour it would
send nothing for an hour: no tick, no recovery, no progress of backfills.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from celery.beat import ScheduleEntry, Scheduler

from slicewise_server.intervals import AtMultiples

log = logging.getLogger(__name__)

# Beat sends nothing to a queue that is this long: further messages would not be handled earlier.
MOST_WAITING = 100


class SteadyScheduler(Scheduler):
    """A scheduler of intervals, the first of which begin with beat."""

    max_interval: int
    producer: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # When each message is due, by the monotonic clock.
        self._due: dict[str, float] = {}
        super().__init__(*args, **kwargs)
        self._due = {name: _next(entry) for name, entry in self.schedule.items()}
        log.info("beat started", extra={"tasks": len(self.schedule)})

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send the messages that are due; return the seconds until the next tick."""
        now = time.monotonic()
        waiting: dict[str, int] = {}
        for name, entry in self.schedule.items():
            if self._due[name] <= now:
                self._send(entry, waiting)
                self._due[name] = _next(entry)
        first = min(self._due.values(), default=float("inf"))
        return min(max(first - time.monotonic(), 0.0), self.max_interval)

    def _send(self, entry: ScheduleEntry, waiting: dict[str, int]) -> None:
        """Send one message; log one line, not a hundred, when the broker does not answer.

        `waiting` keeps how many messages each queue has, for the next messages of the same tick.
        """
        queue = (entry.options or {}).get("queue") or self.app.conf.task_default_queue
        try:
            if queue not in waiting:
                waiting[queue] = self._waiting(queue)
            if waiting[queue] < MOST_WAITING:
                self.apply_async(entry, producer=self.producer, advance=False)
                waiting[queue] += 1
        except Exception as error:  # beat outlives each error of one message
            log.error(
                "task not sent to the broker", extra={"task": entry.task, "error": str(error)}
            )

    def _waiting(self, queue: str) -> int:
        """Return the number of messages in a queue."""
        count: int = self.producer.channel.queue_declare(queue=queue).message_count
        return count


def _next(entry: ScheduleEntry) -> float:
    """Return when a message is due next, by the monotonic clock."""
    interval: Any = entry.schedule
    if isinstance(interval, AtMultiples):
        return time.monotonic() + interval.seconds_until_next(time.time())
    seconds: float = interval.seconds
    return time.monotonic() + seconds
