"""The environment of a WSGI request, from the scope of an ASGI request."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO, Any
from urllib.parse import unquote_to_bytes

Headers = Sequence[tuple[bytes, bytes]]
_PLAIN = {b"content-type": "CONTENT_TYPE", b"content-length": "CONTENT_LENGTH"}


def without_underscores(headers: Headers) -> Headers:
    """Return the headers without underscores in the name.

    WSGI could not tell `X_Forwarded_For` from `X-Forwarded-For`, which proxies write.
    """
    return [(name, value) for name, value in headers if b"_" not in name]


def environ(scope: dict[str, Any], headers: Headers, body: IO[bytes], size: int) -> dict[str, Any]:
    """Return the environment of the request, whose body is complete and `size` bytes long."""
    host, port = scope.get("server") or ("", 0)
    peer, _ = scope.get("client") or ("", 0)
    result: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": peer,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": body,
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in headers:
        key = _PLAIN.get(name) or "HTTP_" + name.decode("latin-1").replace("-", "_").upper()
        text = value.decode("ascii") if value.isascii() else ""
        if key in result and key not in _PLAIN.values():
            text = result[key] + (";" if key == "HTTP_COOKIE" else ",") + text
        result[key] = text
    if size:
        result["CONTENT_LENGTH"] = str(size)
    return result
