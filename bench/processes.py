"""Processes of this machine, as /proc tells of them; what is gone tells nothing."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    with suppress(*_GONE):
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in _text(task / "children").split()]
    return []


def descendants(pid: int) -> Iterator[int]:
    """These, and those that they have started."""
    for child in children(pid):
        yield child
        yield from descendants(child)


def command(pid: int) -> list[str]:
    """The words of its command."""
    return _text(Path(f"/proc/{pid}/cmdline")).rstrip("\0").split("\0")


def is_warm_parent(pid: int) -> bool:
    """Whether a child of a worker is what its runners are forked from."""
    return "slicewise.runner" in " ".join(command(pid))


def own_bytes(pid: int) -> int:
    """The memory that would be free without it: what it shares with others does not count."""
    lines = _text(Path(f"/proc/{pid}/smaps_rollup")).splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def _text(file: Path) -> str:
    with suppress(*_GONE):
        return file.read_text()
    return ""
