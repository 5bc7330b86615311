"""Bodies and answers, kept for threads and readers: small ones in memory, large ones on disk."""

from __future__ import annotations

import os
import tempfile
import threading
from io import BytesIO
from types import TracebackType
from typing import IO

# Of each spool this much has room in memory, whatever others hold.
SMALL = 65_536


class NoRoom(Exception):
    """Others hold all the room there is for large bodies or answers."""


class Room:
    """Bytes in memory and on disk that the spools of one kind share."""

    def __init__(self, in_memory: int, on_disk: int) -> None:
        self._left = {"memory": in_memory, "disk": on_disk}
        self._lock = threading.Lock()

    def take(self, where: str, count: int) -> bool:
        """Take room if there is enough."""
        with self._lock:
            if self._left[where] < count:
                return False
            self._left[where] -= count
            return True

    def give_back(self, where: str, count: int) -> None:
        """Return room that was taken."""
        with self._lock:
            self._left[where] += count


class Spool:
    """Bytes that one thread writes and another one reads; its context gives its room back."""

    def __init__(self, room: Room) -> None:
        self.size = 0
        self._room = room
        self._where, self._taken = "memory", 0
        self._file: IO[bytes] = BytesIO()
        self._lock = threading.Lock()

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        with self._lock:
            self._file.close()
            self._room.give_back(self._where, self._taken)

    def write(self, data: bytes) -> None:
        """Append; raises NoRoom, and ValueError once its context has been left."""
        with self._lock:
            beyond = self.size + len(data) - SMALL
            if self._where == "memory" and not self._take(beyond):
                self._move_to_disk()
            if not self._take(beyond):
                raise NoRoom
            self._file.seek(self.size)
            self._file.write(data)
            self.size += len(data)

    def empty(self) -> None:
        """Forget what has been written."""
        with self._lock:
            self.size = 0

    def adopt(self, file: IO[bytes]) -> None:
        """Take over a file that is there already, in place of what has been written."""
        with self._lock:
            self._file.close()
            self._file = file
            self.size = os.fstat(file.fileno()).st_size

    def read_at(self, offset: int) -> bytes:
        """Return a piece from there on, empty where nothing more has been written."""
        with self._lock:
            self._file.seek(offset)
            return self._file.read(min(SMALL, max(0, self.size - offset)))

    def whole(self) -> IO[bytes]:
        """Return the file, to be read from its start once nothing more is written."""
        self._file.seek(0)
        return self._file

    def _take(self, beyond: int) -> bool:
        """Take room up to `beyond` bytes, if there is enough."""
        more = max(0, beyond - self._taken)
        if not self._room.take(self._where, more):
            return False
        self._taken += more
        return True

    def _move_to_disk(self) -> None:
        """Go on in a file without a name; room in memory is free again."""
        file = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the spool)
        self._file.seek(0)
        file.write(self._file.read())
        self._room.give_back("memory", self._taken)
        self._file, self._where, self._taken = file, "disk", 0
