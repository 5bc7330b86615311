"""The runs that one worker executes at the same time.

A run that has lost its worker again and again is executed beside fewer runs, and in the end alone:
a further loss then counts against the run itself, and runs that were lost with it by accident
succeed.
"""

import sys
import threading
from dataclasses import dataclass
from enum import Enum, auto

# Each further loss leaves a quarter of the concurrent runs: few steps, for any number of slots.
_SHARE = 4


class JoinResult(Enum):
    """The result for a run that is to begin."""

    JOINED = auto()
    WAITS = auto()
    """The run begins next: no other run begins before."""
    REFUSED = auto()
    KNOWN = auto()
    """Another thread of this worker has the run."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    run_id: int
    losses: int
    thread: int


class ConcurrentRuns:
    """The runs at work in a process with so many slots; threads ask before a run begins.

    ``suspect_after`` is the number of losses from which on a run is executed beside fewer runs.
    """

    def __init__(self, slots: int, suspect_after: int) -> None:
        self._slots, self._suspect_after = slots, suspect_after
        self._losses: dict[int, int] = {}
        self._waiting: _Waiting | None = None
        self._lock = threading.Lock()

    def join(self, run_id: int, losses: int) -> JoinResult:
        """Let a run begin if the run may be at work beside the present runs; return the result.

        One suspect at a time waits for its turn: the same thread asks again until the suspect
        joins, or `stop_waiting` is called.
        """
        with self._lock:
            waiting, thread = self._waiting, threading.get_ident()
            if run_id in self._losses:
                return JoinResult.KNOWN
            if waiting is not None and waiting.run_id == run_id and waiting.thread != thread:
                return JoinResult.KNOWN
            if waiting is not None and waiting.run_id != run_id:
                return JoinResult.REFUSED
            allowed = min(map(self._allowed, (losses, *self._losses.values())))
            if len(self._losses) < allowed:
                self._waiting = None
                self._losses[run_id] = losses
                return JoinResult.JOINED
            if losses < self._suspect_after:
                return JoinResult.REFUSED
            self._waiting = _Waiting(run_id, losses, thread)
            return JoinResult.WAITS

    def leave(self, run_id: int) -> None:
        """Note that the run is no longer at work."""
        with self._lock:
            self._losses.pop(run_id, None)

    def stop_waiting(self) -> None:
        """Note that this thread no longer asks for its run."""
        with self._lock:
            if self._waiting is not None and self._waiting.thread == threading.get_ident():
                self._waiting = None

    def is_alone(self, run_id: int) -> bool:
        """Return whether no other run is at work, nor can begin, while this run is at work."""
        with self._lock:
            return 1 in (self._slots, self._allowed(self._losses[run_id]))

    @property
    def closed_slots(self) -> int:
        """The number of slots that are kept free beside runs that have lost their workers."""
        with self._lock:
            losses = list(self._losses.values())
            if self._waiting is not None:
                losses.append(self._waiting.losses)
            return max(self._slots - min(map(self._allowed, losses), default=self._slots), 0)

    def _allowed(self, losses: int) -> int:
        """Return how many runs may be at work together with a run that has these losses."""
        if losses < self._suspect_after:
            return sys.maxsize  # as many as there are threads
        share: int = _SHARE ** (losses - self._suspect_after + 1)
        return max(1, self._slots // share)
