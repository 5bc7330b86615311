"""Answers: Django's, taken from the thread as fast as Django writes, and answers without Django."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from io import BufferedReader
from typing import IO, Any
from wsgiref.util import FileWrapper

from slicewise_server.serving.spool import SMALL, Spool

Send = Callable[[dict[str, Any]], Awaitable[None]]
Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_API = "/api/"
_WITHOUT_BODY = {204, 304}


class File(FileWrapper):
    """A file as an answer: the descriptor of a whole file is taken over, and no byte is copied."""

    def __init__(self, file: IO[bytes], block_size: int) -> None:
        super().__init__(file, max(block_size, SMALL))
        self.is_whole = isinstance(file, BufferedReader)

    def again(self) -> IO[bytes]:
        """Return the file with a new descriptor."""
        return os.fdopen(os.dup(self.filelike.fileno()), "rb")


class Incomplete(Exception):
    """An answer broke off after its start was sent: the connection ends without the last chunk."""


class Answer:
    """A status, headers and a body; one thread writes while the event loop may send the start."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_complete = False
        self.is_sending = False
        self.is_broken = False
        # Held by the thread that refuses, and by the event loop that begins to send.
        self._lock = threading.Lock()
        self.written = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
        """Take status and headers in the form of a WSGI application."""
        self.status = int(status.split(" ", 1)[0])
        self.headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers
        ]

    def take(self, application: Wsgi, environ: dict[str, Any]) -> None:
        """Run the application in this thread and take the whole answer."""
        chunks = application({**environ, "wsgi.file_wrapper": File}, self.start)
        try:
            if isinstance(chunks, File) and chunks.is_whole:
                self.spool.adopt(chunks.again())
                return
            for chunk in chunks:
                self.spool.write(chunk)
                if self.spool.size > SMALL:
                    self._loop.call_soon_threadsafe(self.written.set)
        finally:
            if (close := getattr(chunks, "close", None)) is not None:
                close()

    def refuse(self, path: str, status: int, detail: str, retry_after: int = 0) -> None:
        """Write an answer without Django: problem details below `/api/`, else a sentence.

        An answer of which the start is already sent breaks off.
        """
        title = HTTPStatus(status).phrase
        kind, body = "text/plain; charset=utf-8", f"{title}. {detail}\n"
        if path.startswith(_API):
            problem = {"type": "about:blank", "title": title, "status": status, "detail": detail}
            kind, body = "application/problem+json", json.dumps(problem)
        headers = {
            "Content-Type": kind,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            **({"Retry-After": str(retry_after)} if retry_after else {"Connection": "close"}),
        }
        with self._lock:
            if self.is_sending:
                self.is_broken = True
                return
            self.start(str(status), list(headers.items()))
            self.spool.empty()
            self.spool.write(body.encode())

    def reset(self) -> None:
        """Forget a complete answer of which nothing has been sent, for another one."""
        self.spool.empty()
        self.status, self.headers, self.is_complete = 500, [], False
        self.written.clear()

    def complete(self) -> None:
        """Mark the answer as completely written."""
        self.is_complete = True
        self.written.set()

    async def send(self, method: str, send: Send) -> None:
        """Send the answer chunk by chunk, as fast as the reader receives.

        Raise Incomplete for an answer that broke off.
        """
        with self._lock:
            self.is_sending = True
        has_body = self.status not in _WITHOUT_BODY
        is_sized = any(name == b"content-length" for name, _ in self.headers)
        if has_body and self.is_complete and not is_sized:
            self.headers.append((b"content-length", str(self.spool.size).encode()))
        start = {"type": "http.response.start", "status": self.status, "headers": self.headers}
        await send(start)
        sent_count, chunk, is_last = 0, b"", not has_body or method == "HEAD"
        while not is_last:
            self.written.clear()
            chunk = self.spool.read_at(sent_count)
            sent_count += len(chunk)
            is_last = self.is_complete and sent_count >= self.spool.size
            if chunk and not is_last:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            elif not is_last:
                await self.written.wait()
        if self.is_broken:
            raise Incomplete
        await send({"type": "http.response.body", "body": chunk})
