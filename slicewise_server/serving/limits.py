"""The bounds of one process of the web server."""

from __future__ import annotations

from dataclasses import dataclass

_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The bounds, with times in seconds and sizes in bytes."""

    # Threads that run Django, requests that wait for a thread, and the seconds of waiting.
    threads: int = 4
    waiting: int = 128
    patience: float = 30.0
    # Reads of the health address, of metrics and of static files have separate threads.
    health: str = "/api/v1/health/"
    metrics: str = "/metrics"
    metrics_threads: int = 1
    metrics_waiting: int = 16
    health_threads: int = 2
    static: str = "/static/"
    file_threads: int = 1
    files_waiting: int = 4096
    # Requests that wait for news at the same time; a further one is answered without news.
    polls: int = 100
    # A larger body is not read. The pause limits the wait for each chunk, the time limits the wait
    # for the whole body.
    body: int = 2_621_440
    body_pause: float = 10.0
    body_time: float = 60.0
    # Room for bodies and for answers beyond the first 64 KiB of each; the first 64 KiB always fit.
    bodies_in_memory: int = 16 * _MEBIBYTE
    bodies_on_disk: int = 512 * _MEBIBYTE
    answers_in_memory: int = 64 * _MEBIBYTE
    answers_on_disk: int = 4096 * _MEBIBYTE
    # Readers that receive fewer bytes a second over this time are cut off. The time is shorter
    # than the time after which Granian closes a connection that is completely written.
    reader_rate: int = 1024
    reader_time: float = 20.0
