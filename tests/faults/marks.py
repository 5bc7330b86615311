"""Marks that the bundle's functions have left: the times at which the code of each attempt ran."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.faults.stack_processes import until


@dataclass(frozen=True)
class Mark:
    """The code of one attempt: its process, its first and last sign of life, and whether the code
    ended.
    """

    run: int
    attempt: int
    pid: int
    first: float
    last: float
    is_done: bool


def marks_of(lake: Path, run: int) -> list[Mark]:
    """Return the mark of each attempt at a run whose code has begun, in order."""
    marks = []
    for file in (lake / "faults" / "marks").glob(f"{run}-*"):
        pid, *lines = file.read_text().split() or [""]
        times = [float(line) for line in lines if line != "stop" and "." in line]
        if times:
            attempt = int(file.name.rpartition("-")[2])
            is_done = lines[-1] == "stop"
            marks.append(Mark(run, attempt, int(pid), times[0], times[-1], is_done))
    return sorted(marks, key=lambda mark: mark.attempt)


def await_attempts(lake: Path, run: int, count: int, *, seconds: float = 240.0) -> list[Mark]:
    """Return the marks of a run once the code of so many attempts has begun."""
    until(lambda: len(marks_of(lake, run)) >= count, f"run {run} began {count} x", seconds=seconds)
    return marks_of(lake, run)


def assert_never_twice_at_once(marks: list[Mark]) -> None:
    """Require that the code of an attempt had stopped before the code of the next attempt began."""
    for mark, next_mark in pairwise(marks):
        assert mark.last < next_mark.first, (mark, next_mark)


def let_end(lake: Path, name: str) -> None:
    """Let the code end that waits until the file of this name exists."""
    may_end = lake / "faults" / name
    may_end.parent.mkdir(parents=True, exist_ok=True)
    may_end.touch()


def number_of(address: str) -> int:
    """Return the number of a run from the run's address."""
    return int(address.rstrip("/").rpartition("/")[2])
