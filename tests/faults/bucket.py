"""An S3 server whose buckets are folders, so that Spark can write to buckets without a connector.

The server answers the requests of pyarrow and obstore: listings, objects and parts of objects,
uploads by parts, and puts that may not replace an object.
"""

import os
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.runtime.bucket_server import arrow_uri

_DATE = "2024-01-01T00:00:00.000Z"
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


class BucketServer(ThreadingHTTPServer):
    """A server of the folders below ``root``; each folder is the bucket of its name."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.root = root
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.lock = threading.Lock()

    def arrow(self, bucket: str) -> str:
        """Return a bucket's URI, as pyarrow reads the URI."""
        return arrow_uri(bucket, self.server_port)


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BucketServer

    @property
    def place(self) -> Path:
        """The file of the object, or the folder of the bucket."""
        return self.server.root / unquote(urlsplit(self.path).path).strip("/")

    @property
    def query(self) -> dict[str, str]:
        values_by_name = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {name: values[-1] for name, values in values_by_name.items()}

    @property
    def is_bucket(self) -> bool:
        return "/" not in unquote(urlsplit(self.path).path).strip("/")

    def do_HEAD(self) -> None:
        if self.place.is_file() or (self.is_bucket and self.place.is_dir()):
            return self._answer(200, size=0 if self.is_bucket else self.place.stat().st_size)
        return self._answer(404)

    def do_GET(self) -> None:
        if self.is_bucket:
            return self._answer(200, self._listing())
        try:
            content = self.place.read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return self._refuse(404, "NoSuchKey")
        match = _RANGE.fullmatch(self.headers.get("Range") or "")
        if match is None:
            return self._answer(200, content)
        size = len(content)
        if match[1]:
            first, last = int(match[1]), min(int(match[2] or size - 1), size - 1)
        else:
            first, last = max(0, size - int(match[2])), size - 1
        content_range = f"bytes {first}-{last}/{size}"
        return self._answer(206, content[first : last + 1], content_range=content_range)

    def do_PUT(self) -> None:
        content = self._content()
        if "uploadId" in self.query:
            self.server.uploads[self.query["uploadId"]][int(self.query["partNumber"])] = content
            return self._answer(200)
        if urlsplit(self.path).path.endswith("/"):
            self.place.mkdir(parents=True, exist_ok=True)
            return self._answer(200)
        if not self._write(content, anew=self.headers.get("If-None-Match") != "*"):
            return self._refuse(412, "PreconditionFailed")
        return self._answer(200)

    def do_POST(self) -> None:
        content = self._content()
        if "uploads" in self.query:
            upload = uuid.uuid4().hex
            self.server.uploads[upload] = {}
            body = f"<UploadId>{upload}</UploadId>"
            return self._say("InitiateMultipartUploadResult", body)
        if "uploadId" in self.query:
            parts = self.server.uploads.pop(self.query["uploadId"])
            self._write(b"".join(parts[number] for number in sorted(parts)), anew=True)
            return self._say("CompleteMultipartUploadResult", "<ETag>1</ETag>")
        for key in ElementTree.fromstring(content).iter():
            if key.tag.rpartition("}")[2] == "Key":
                self._remove(self.place / (key.text or ""))
        return self._say("DeleteResult", "")

    def do_DELETE(self) -> None:
        if "uploadId" in self.query:
            self.server.uploads.pop(self.query["uploadId"], None)
        else:
            self._remove(self.place)
        self._answer(204)

    def _content(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            content = b"".join(_chunks(self.rfile))
            self.rfile.readline()
        else:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" in (self.headers.get("Content-Encoding") or ""):
            content = b"".join(_chunks(BytesIO(content)))
        return content

    def _write(self, content: bytes, *, anew: bool) -> bool:
        """Write the object; return false where the object is there and may not be replaced."""
        self.place.parent.mkdir(parents=True, exist_ok=True)
        own_file = self.place.with_name(f".{uuid.uuid4().hex}")
        own_file.write_bytes(content)
        try:
            if anew:
                os.replace(own_file, self.place)
            else:
                os.link(own_file, self.place)
        except FileExistsError:
            return False
        finally:
            own_file.unlink(missing_ok=True)
        return True

    def _remove(self, place: Path) -> None:
        with suppress(FileNotFoundError, NotADirectoryError):
            if place.is_dir():
                with suppress(OSError):  # a key with a slash at its end; what is below it stays
                    place.rmdir()
            else:
                place.unlink()

    def _listing(self) -> bytes:
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter", "")
        folder = self.place / prefix.rpartition("/")[0]
        keys, folders = [], set()
        for home, _, names in os.walk(folder):
            for name in names:
                key = (Path(home) / name).relative_to(self.place).as_posix()
                if not key.startswith(prefix) or name.startswith("."):
                    continue
                rest = key.removeprefix(prefix)
                if delimiter and delimiter in rest:
                    folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
                else:
                    keys.append(key)
        objects = ""
        for key in sorted(keys):
            with suppress(FileNotFoundError):
                size = (self.place / key).stat().st_size
                objects += (
                    f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size><ETag>1</ETag>"
                    f"<LastModified>{_DATE}</LastModified></Contents>"
                )
        common = "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in sorted(folders)
        )
        content = (
            f"<ListBucketResult><Name>{self.place.name}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<KeyCount>{len(keys) + len(folders)}</KeyCount><MaxKeys>1000000</MaxKeys>"
            f"<IsTruncated>false</IsTruncated>{objects}{common}</ListBucketResult>"
        )
        return content.encode()

    def _say(self, kind: str, content: str) -> None:
        self._answer(200, f"<{kind}>{content}</{kind}>".encode())

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code></Error>".encode())

    def _answer(
        self,
        status: int,
        content: bytes = b"",
        *,
        size: int | None = None,
        content_range: str = "",
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if size is None else size))
        self.send_header("ETag", f'"{md5(content, usedforsecurity=False).hexdigest()}"')
        self.send_header("Last-Modified", formatdate(0, usegmt=True))
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _chunks(source: BufferedIOBase) -> Iterator[bytes]:
    """Yield the parts of a text that has the size of each part before the part."""
    while size := int(source.readline().partition(b";")[0], 16):
        yield source.read(size)
        source.readline()
