"""The bounds of one process of the web server."""

from __future__ import annotations

from dataclasses import dataclass

_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Times are seconds, sizes are bytes."""

    # Threads that run Django, requests that wait for one, and how long.
    threads: int = 4
    waiting: int = 128
    patience: float = 30.0
    # Reads of this address, and of files below the other, have threads of their own.
    health: str = "/api/v1/health/"
    health_threads: int = 2
    static: str = "/static/"
    file_threads: int = 1
    files_waiting: int = 4096
    # Bodies: of a larger one nothing is read. The first piece and each further one have to come in
    # time, and so has the whole.
    body: int = 2_621_440
    body_pause: float = 10.0
    body_time: float = 60.0
    # Room for bodies and for answers beyond the first 64 KiB of each, which always have room.
    bodies_in_memory: int = 16 * _MEBIBYTE
    bodies_on_disk: int = 512 * _MEBIBYTE
    answers_in_memory: int = 64 * _MEBIBYTE
    answers_on_disk: int = 4096 * _MEBIBYTE
    # Readers that take less than this in a second, over this time, are cut off. The time is
    # shorter than Granian's own, after which it closes a connection that it has written to.
    reader_rate: int = 1024
    reader_time: float = 20.0
