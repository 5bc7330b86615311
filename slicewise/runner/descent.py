"""Descent of processes: whether a process was started by this process, or by a descendant of it."""

import os
from pathlib import Path

from slicewise.runner.run_limits import process_tree


def descends_from_this_process(pid: int) -> bool:
    """Return whether a process is a descendant of this process.

    Orphans count if this process adopts orphans. Where `/proc` hides a process of the same user,
    the search goes from this process downwards.
    """
    this_process = os.getpid()
    if pid == this_process:
        return False
    return this_process in _ancestors(pid) or pid in process_tree(this_process)


def _ancestors(pid: int) -> list[int]:
    ancestors: list[int] = []
    while pid > 1:
        try:
            facts = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            break  # hidden, or ended
        # The name stands in brackets, and may have brackets, spaces and any other bytes.
        pid = int(facts.rpartition(b")")[2].split()[1])
        ancestors.append(pid)
    return ancestors
