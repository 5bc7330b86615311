"""Processes of the host, as tests of attacks look for them."""

from pathlib import Path


def is_there(pid: int) -> bool:
    """Tell whether a process goes on.

    One that has ended may wait for the host's init to reap the process.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
