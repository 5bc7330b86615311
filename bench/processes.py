"""Processes of the machine, read from /proc; ended processes have no values."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_KINDS = ("slicewise.runner", "granian", "postgres", "redis-server", "beat", "java", "supervisor")
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


def children(pid: int) -> list[int]:
    """Return the child processes of a process."""
    with suppress(*_GONE):
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in _text(task / "children").split()]
    return []


def descendants(pid: int) -> Iterator[int]:
    """Yield the children of a process, and all descendants."""
    for child in children(pid):
        yield child
        yield from descendants(child)


def command(pid: int) -> list[str]:
    """Return the words of the command of a process."""
    return _text(Path(f"/proc/{pid}/cmdline")).rstrip("\0").split("\0")


def is_warm_parent(pid: int) -> bool:
    """Return whether a process is the warm parent of a worker."""
    return "slicewise.runner" in " ".join(command(pid))


def processor_seconds_by_kind(pid: int) -> dict[str, float]:
    """Return the processor time of the descendants of a process by the kind of process, with
    descendants that ended before and were waited for.
    """
    ticks: Counter[str] = Counter()
    for descendant in descendants(pid):
        ticks[_kind(command(descendant))] += _processor_ticks(descendant)
    return {kind: number / os.sysconf("SC_CLK_TCK") for kind, number in ticks.items()}


def _kind(words: Sequence[str]) -> str:
    """Return the kind of a process by the command: the queue of a worker, or a known word."""
    if "-Q" in words:
        return f"worker {words[words.index('-Q') + 1]}"
    text = " ".join(words)
    return next((kind for kind in _KINDS if kind in text), "other")


def _processor_ticks(pid: int) -> int:
    # The name, in parentheses, may have spaces. Then: own time in user and system mode, and that
    # of children that were waited for (proc(5)).
    columns = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, columns[11:15]))


def own_bytes(pid: int) -> int:
    """Return the private memory of a process: shared memory does not count."""
    lines = _text(Path(f"/proc/{pid}/smaps_rollup")).splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def _text(file: Path) -> str:
    with suppress(*_GONE):
        return file.read_text()
    return ""
