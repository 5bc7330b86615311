"""Kills random processes of a stack by SIGKILL, by process id."""

import os
import random
import signal
from collections import Counter
from contextlib import suppress

from bench.processes import children, is_warm_parent
from slicewise_server.stack.stack import Stack

# What is killed, and how often in comparison.
_VICTIMS = {
    "runner": 4,
    "worker-scheduled": 2,
    "parent of worker-scheduled": 2,
    "worker-control": 2,
    "worker-bulk": 1,
    "beat": 2,
    "worker-backfill": 1,
    "parent of worker-backfill": 1,
}
_LEAST_SECONDS, _MOST_SECONDS = 3.0, 15.0


class Killer:
    """Kills one process of the stack after the other; supervisors start the processes again."""

    def __init__(self, stack: Stack, dice: random.Random) -> None:
        self._stack = stack
        self._dice = dice
        self._killed: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """The number of killed processes."""
        return self._killed.total()

    @property
    def summary(self) -> str:
        """The numbers of killed processes by kind."""
        return ", ".join(f"{count} {name}" for name, count in sorted(self._killed.items()))

    def pause(self) -> float:
        """Return the seconds until the next kill."""
        return self._dice.uniform(_LEAST_SECONDS, _MOST_SECONDS)

    def strike(self) -> str:
        """Kill one process of a random kind; return the kind, or that no such process exists."""
        (kind,) = self._dice.choices(list(_VICTIMS), list(_VICTIMS.values()))
        pids = self._pids(kind)
        if not pids:
            return f"no {kind} to kill"
        pid = self._dice.choice(pids)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self._killed[kind] += 1
            return f"killed {kind} {pid}"
        return f"{kind} {pid} had ended"

    def _pids(self, kind: str) -> list[int]:
        if kind == "runner":
            queues = ("worker-scheduled", "worker-backfill")
            parents = [pid for name in queues for pid in self._parents(name)]
            return [pid for parent in parents for pid in children(parent)]
        if kind.startswith("parent of "):
            return self._parents(kind.removeprefix("parent of "))
        pid = self._stack.pid_of(kind)
        return [pid] if pid else []

    def _parents(self, worker: str) -> list[int]:
        """Return the warm parent of a worker, from which runners are forked."""
        pid = self._stack.pid_of(worker)
        return [child for child in children(pid) if is_warm_parent(child)]
