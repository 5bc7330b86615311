"""A small client of the public API, as a user could write."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

_TRIES = 20


class ApiError(Exception):
    """An error of the API, with the text of the API."""


class Client:
    """A client that signs in once and sends JSON."""

    def __init__(self, url: str, username: str, password: str) -> None:
        self._base = url.rstrip("/") + "/api/v1"
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        signed_in = self.post("/tokens/", username=username, password=password)
        self._headers["Authorization"] = f"Bearer {signed_in['token']}"

    def get(self, path: str) -> Any:
        """Return the JSON at a path below /api/v1, or at a full address that the API returned."""
        return self._ask("GET", path, None)

    def post(self, path: str, **body: Any) -> Any:
        """Post a JSON object; return the answer."""
        return self._ask("POST", path, json.dumps(body).encode())

    def patch(self, path: str, **body: Any) -> Any:
        """Send a JSON object as a change to a path; return the answer."""
        return self._ask("PATCH", path, json.dumps(body).encode())

    def delete(self, path: str) -> None:
        """Delete the resource at a path."""
        self._ask("DELETE", path, None)

    def every(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield all results of a list, page after page."""
        page: dict[str, Any] = {"next": path}
        while page["next"]:
            page = self.get(page["next"])
            yield from page["results"]

    def _ask(self, method: str, path: str, body: bytes | None) -> Any:
        address = path if path.startswith("http") else self._base + path
        request = urllib.request.Request(address, body, self._headers, method=method)
        for attempt in range(_TRIES):
            try:
                with urllib.request.urlopen(request, timeout=60) as response:
                    content = response.read()
                    return json.loads(content) if content else None
            except urllib.error.HTTPError as error:
                error_text = error.read().decode(errors="replace")
                # The server is starting or busy for a moment; every other status is an answer.
                if error.code in (429, 502, 503) and attempt + 1 < _TRIES:
                    time.sleep(0.5)
                    continue
                raise ApiError(f"{method} {path}: {error.code} {error_text}") from error
        raise AssertionError("the last try returns or raises")
