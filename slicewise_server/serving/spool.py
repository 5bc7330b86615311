"""Spools of bodies and answers: in memory if small, on disk if large."""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import suppress
from io import BufferedReader, BytesIO, FileIO
from types import TracebackType
from typing import IO

# The first bytes of each spool fit into memory, however full the room is.
SMALL = 65_536


class NoRoom(Exception):
    """The room is taken by other spools, or the disk is full."""


class Room:
    """Bytes in memory and on disk that the spools of one kind share."""

    def __init__(self, in_memory: int, on_disk: int) -> None:
        self._left = {"memory": in_memory, "disk": on_disk}
        self._lock = threading.Lock()

    def take(self, where: str, count: int) -> bool:
        """Take room if enough is left; return whether enough was left."""
        with self._lock:
            if self._left[where] < count:
                return False
            self._left[where] -= count
            return True

    def give_back(self, where: str, count: int) -> None:
        """Release room that was taken."""
        with self._lock:
            self._left[where] += count


class Spool:
    """Bytes that one thread writes and another thread reads; leaving the context releases room."""

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
            self._close()

    def write(self, data: bytes) -> None:
        """Append bytes; raise NoRoom, or ValueError after the context has been left."""
        with self._lock:
            beyond = self.size + len(data) - SMALL
            if self._where == "memory" and not self._take(beyond):
                self._move_to_disk()
            if not self._take(beyond):
                raise NoRoom
            self._append(data)

    def empty(self) -> None:
        """Drop the written bytes; a small text fits afterwards."""
        with self._lock:
            self._close()
            self._file, self._where, self._taken, self.size = BytesIO(), "memory", 0, 0

    def adopt(self, file: IO[bytes]) -> None:
        """Take over an existing file in place of the written bytes."""
        with self._lock:
            self._file.close()
            self._file = file
            self.size = os.fstat(file.fileno()).st_size

    def read_at(self, offset: int) -> bytes:
        """Return a chunk from an offset on, empty at the end of the written bytes."""
        with self._lock:
            self._file.seek(offset)
            return self._file.read(min(SMALL, max(0, self.size - offset)))

    def whole(self) -> IO[bytes]:
        """Return the file, positioned at the start, for reading after the last write."""
        self._file.seek(0)
        return BufferedReader(self._file) if isinstance(self._file, FileIO) else self._file

    def _take(self, beyond: int) -> bool:
        """Take room up to `beyond` bytes if enough is left; return whether enough was left."""
        more = max(0, beyond - self._taken)
        if not self._room.take(self._where, more):
            return False
        self._taken += more
        return True

    def _move_to_disk(self) -> None:
        """Move the bytes to a file without a name, and release the room in memory."""
        self._file.seek(0)
        data = self._file.read()
        self._room.give_back("memory", self._taken)
        self._taken, self.size = 0, 0
        try:
            # Without a buffer: an error of a delayed write could not be reported.
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (closed with the spool)
        except OSError as error:
            raise NoRoom from error
        self._where = "disk"
        self._append(data)

    def _append(self, data: bytes) -> None:
        remaining_data = memoryview(data)
        try:
            self._file.seek(self.size)
            while remaining_data:
                remaining_data = remaining_data[self._file.write(remaining_data) :]
        except OSError as error:
            raise NoRoom from error
        self.size += len(data)

    def _close(self) -> None:
        with suppress(OSError):
            self._file.close()
        self._room.give_back(self._where, self._taken)
