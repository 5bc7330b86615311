"""Processes of the host, read from /proc."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

START_SECONDS = 300  # of a stack on a busy machine


def descendants(pid: int) -> set[int]:
    """Return all processes below a process, however deep."""
    parents = _parents()
    below: set[int] = set()
    fresh = {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh} - below
        below |= fresh
    return below


def are_gone(pids: set[int], seconds: float = 60) -> bool:
    """Return whether all these processes end before a time that is long enough to end a hang.

    A zombie counts as ended.
    """
    end = time.monotonic() + seconds
    while any(is_alive(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def is_alive(pid: int) -> bool:
    """Return whether a process runs.

    An ended process may wait for its parent, or the host's init, to reap it.
    """
    fields = _stat(pid)
    return fields is not None and fields[0] not in "ZX"


def _parents() -> dict[int, int]:
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(folder.name))
        if fields is not None:
            parents[int(folder.name)] = int(fields[1])
    return parents


def _stat(pid: int) -> list[str] | None:
    """Return state, parent and so on: the fields after the command, which may hold blanks."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """Return the output of a process up to a line with these words.

    Fails when the process ends before, or takes longer than START_SECONDS.
    """
    assert process.stdout is not None
    end = time.monotonic() + START_SECONDS
    lines = []
    for line in process.stdout:
        lines.append(line)
        if words in line:
            return "".join(lines)
        assert time.monotonic() < end, "".join(lines)
    raise AssertionError(f"ended early: {''.join(lines)}")
