"""How much memory the processes of a stack take, looked at again and again beside the work."""

import os
import threading
from pathlib import Path
from types import TracebackType

from bench.processes import command, descendants, own_bytes

_LOOK_SECONDS = 0.5
_MB = 1024 * 1024


class Memory:
    """The most that a process of each kind has had to itself, while it is entered.

    What processes share, as PostgreSQL's do their buffers and runners their parent's pages, would
    else be counted once for each. Spark's own are left out.
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
    """What a process is, by its command; empty for Spark's and for what is gone."""
    name = Path(words[0]).name if words else ""
    if name in ("", "java"):
        return ""
    if not name.startswith("python"):
        return name.split(":")[0]
    named = [word for word in words[1:] if not word.startswith("-")]
    queue = words[words.index("-Q") + 1] if "-Q" in words else ""
    return " ".join((*(Path(word).name for word in named[:1]), *named[1:3], queue)).strip()
