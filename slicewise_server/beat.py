"""Celery's beat on the monotonic clock: steps of the wall clock do not change intervals.

Celery's own scheduler goes by the wall clock. After a step back by an hour it would
send nothing for an hour: no tick, no recovery, no progress of backfills.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from celery.beat import ScheduleEntry, Scheduler

log = logging.getLogger(__name__)

# Beat sends nothing to a queue that is this long: further messages would not be handled earlier.
MOST_WAITING = 100
# Between two ticks of beat, a second apart at most, a clock is slewed by less than this.
_STEP_SECONDS = 0.5


class SteadyScheduler(Scheduler):
    """A scheduler that notices a step of the wall clock and shifts remembered times by it."""

    def __init__(self, *args: Any, wall: Callable[[], float] = time.time, **kwargs: Any) -> None:
        self._wall = wall
        self._offset = wall() - time.monotonic()
        super().__init__(*args, **kwargs)
        log.info("beat started", extra={"tasks": len(self.schedule)})

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send the messages that are due; return the seconds until the next tick."""
        step = self._wall() - time.monotonic() - self._offset
        if abs(step) > _STEP_SECONDS:
            self._follow(step)
        seconds: float = super().tick(*args, **kwargs)
        return seconds

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send one message; log one line, not a hundred, when the broker does not answer."""
        try:
            if self._waiting(entry, producer or self.producer) < MOST_WAITING:
                self.apply_async(entry, producer=producer, advance=False)
        except Exception as error:  # beat outlives each error of one message
            log.error(
                "task not sent to the broker", extra={"task": entry.task, "error": str(error)}
            )

    def _waiting(self, entry: ScheduleEntry, producer: Any) -> int:
        """Return the number of messages in the queue of an entry."""
        queue = (entry.options or {}).get("queue") or self.app.conf.task_default_queue
        count: int = producer.channel.queue_declare(queue=queue).message_count
        return count

    def _follow(self, step: float) -> None:
        log.warning("the clock was set", extra={"by_seconds": round(step, 1)})
        self._offset += step
        for entry in self.schedule.values():
            if entry.last_run_at is not None:
                entry.last_run_at += timedelta(seconds=step)
        # The heap holds next times of the old clock.
        self._heap = None
