"""The memory of the processes of a stack, sampled beside the work."""

import os
import threading
from pathlib import Path
from types import TracebackType

from bench.processes import command, descendants, own_bytes

_LOOK_SECONDS = 0.5
_MB = 1024 * 1024


class Memory:
    """The highest private memory of a process of each kind, within the context.

    Shared memory, such as PostgreSQL's buffers and pages of the warm parent, would otherwise count
    once for each process. Processes of Spark are left out.
    """

    def __init__(self) -> None:
        self._most: dict[str, int] = {}
        self._ends = threading.Event()
        self._looking = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Memory":
        self._looking.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ends.set()
        self._looking.join()

    @property
    def most(self) -> dict[str, int]:
        """MB by kind of process, the largest first."""
        ordered = sorted(self._most.items(), key=lambda one: -one[1])
        return {kind: size // _MB for kind, size in ordered}

    def _look(self) -> None:
        while not self._ends.wait(_LOOK_SECONDS):
            for pid in descendants(os.getpid()):
                kind = _kind(command(pid))
                if kind:
                    self._most[kind] = max(self._most.get(kind, 0), own_bytes(pid))


def _kind(words: list[str]) -> str:
    """Return the kind of a process, by the command; empty for Spark and for ended processes."""
    name = Path(words[0]).name if words else ""
    if name in ("", "java"):
        return ""
    if not name.startswith("python"):
        return name.split(":")[0]
    named = [word for word in words[1:] if not word.startswith("-")]
    queue = words[words.index("-Q") + 1] if "-Q" in words else ""
    return " ".join((*(Path(word).name for word in named[:1]), *named[1:3], queue)).strip()
