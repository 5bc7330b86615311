"""A small S3 server of one bucket in memory, with or without conditional puts."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

Server = TypeVar("Server", bound=ThreadingHTTPServer)
Conditions = Literal["known", "ignored", "refused", "throttled", "answers are lost"]


def arrow_uri(bucket: str, port: int) -> str:
    """Return the URI of a bucket on this host, as pyarrow reads it."""
    address = f"127.0.0.1:{port}"
    return f"s3://key:secret@{bucket}?endpoint_override={address}&scheme=http&region=us-east-1"


class BucketServer(ThreadingHTTPServer):
    """The bucket ``lake``; ``objects`` are its contents by key."""

    daemon_threads = True

    def __init__(self, conditions: Conditions) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.conditions = conditions
        self.objects: dict[str, bytes] = {}
        self.status = 0
        """What is answered to every request; 0 for what it asks for."""
        self.tokens: list[str | None] = []
        """The session tokens of all puts."""
        self.lock = Lock()

    @property
    def arrow(self) -> str:
        """The bucket's URI, as pyarrow has it."""
        return arrow_uri("lake", self.server_port)


@contextmanager
def bucket_server(conditions: Conditions = "known") -> Iterator[BucketServer]:
    """Serve a bucket meanwhile."""
    with serving(BucketServer(conditions)) as server:
        yield server


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Let a server answer within the block, in a thread of its own."""
    thread = Thread(target=server.serve_forever, args=[0.05], daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BucketServer

    @property
    def key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix("/lake").removeprefix("/")

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        condition, conditions = self.headers["If-None-Match"], self.server.conditions
        self.server.tokens.append(self.headers["X-Amz-Security-Token"])
        if condition and conditions == "refused":
            return self._answer(501, b"<Error><Code>NotImplemented</Code></Error>")
        if condition and conditions == "throttled":
            return self._answer(503, b"<Error><Code>SlowDown</Code></Error>")
        with self.server.lock:
            if condition and conditions != "ignored" and self.key in self.server.objects:
                return self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            self.server.objects[self.key] = content
        if conditions == "answers are lost":
            self.close_connection = True
            return None
        return self._answer(200)

    def do_GET(self) -> None:
        if not self.key:
            return self._answer(200, self._listing())
        with self.server.lock:
            content = self.server.objects.get(self.key)
        return self._answer(404) if content is None else self._answer(200, content)

    def do_DELETE(self) -> None:
        with self.server.lock:
            self.server.objects.pop(self.key, None)
        self._answer(204)

    def _listing(self) -> bytes:
        prefix = parse_qs(urlsplit(self.path).query).get("prefix", [""])[0]
        with self.server.lock:
            keys = sorted(key for key in self.server.objects if key.startswith(prefix))
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>1</Size><ETag>1</ETag>"
            "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in keys
            if "/" not in key.removeprefix(prefix)
        )
        return f"<ListBucketResult><Name>lake</Name>{entries}</ListBucketResult>".encode()

    def _answer(self, status: int, content: bytes = b"") -> None:
        if self.server.status:
            status, content = self.server.status, b"<Error/>"
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
