"""Celery's beat on a steady clock: intervals between messages, whatever the clock on the wall says.

Celery's own goes by the wall. Set back by an hour it would send nothing for an hour: no tick, no
recovery, no backfill would go on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from celery.beat import ScheduleEntry, Scheduler

log = logging.getLogger(__name__)

# Of a queue that nobody empties, beat fills no more: what is sent to it would come no earlier.
MOST_WAITING = 100
# Clocks are slewed by less than this between two looks, which are a second apart at most.
_STEP_SECONDS = 0.5


class SteadyScheduler(Scheduler):
    """Notices a step of the clock, and moves what it remembers by as much."""

    def __init__(self, *args: Any, wall: Callable[[], float] = time.time, **kwargs: Any) -> None:
        self._wall = wall
        self._offset = wall() - time.monotonic()
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due; seconds to the next look."""
        step = self._wall() - time.monotonic() - self._offset
        if abs(step) > _STEP_SECONDS:
            self._follow(step)
        seconds: float = super().tick(*args, **kwargs)
        return seconds

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send one message. A broker that is away takes a line of the log, not a hundred."""
        try:
            if self._waiting(entry, producer or self.producer) < MOST_WAITING:
                self.apply_async(entry, producer=producer, advance=False)
        except Exception as error:  # beat outlives whatever keeps one message from going out
            log.error("message not sent", extra={"task": entry.task, "error": str(error)})

    def _waiting(self, entry: ScheduleEntry, producer: Any) -> int:
        """Return how many messages wait in the queue of an entry."""
        queue = (entry.options or {}).get("queue") or self.app.conf.task_default_queue
        count: int = producer.channel.queue_declare(queue=queue).message_count
        return count

    def _follow(self, step: float) -> None:
        log.warning("the clock was set", extra={"by_seconds": round(step, 1)})
        self._offset += step
        for entry in self.schedule.values():
            if entry.last_run_at is not None:
                entry.last_run_at += timedelta(seconds=step)
        # The next times in it are of the old clock.
        self._heap = None
