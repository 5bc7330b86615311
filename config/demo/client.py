"""A small client of the public API, as anybody could write it."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

_TRIES = 20


class ApiError(Exception):
    """The API refused; the sentence is its own."""


class Client:
    """Signs in once and speaks JSON."""

    def __init__(self, url: str, username: str, password: str) -> None:
        self._base = url.rstrip("/") + "/api/v1"
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        signed_in = self.post("/tokens/", username=username, password=password)
        self._headers["Authorization"] = f"Bearer {signed_in['token']}"

    def get(self, path: str) -> Any:
        """What is at this path below /api/v1, or at a full address that the API gave out."""
        return self._ask("GET", path, None)

    def post(self, path: str, **body: Any) -> Any:
        """Post a JSON object; what the API answers."""
        return self._ask("POST", path, json.dumps(body).encode())

    def patch(self, path: str, **body: Any) -> Any:
        """Change what is at a path by a JSON object; what the API answers."""
        return self._ask("PATCH", path, json.dumps(body).encode())

    def every(self, path: str) -> Iterator[dict[str, Any]]:
        """All results of a list, page after page."""
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
                    return json.load(response)
            except urllib.error.HTTPError as error:
                said = error.read().decode(errors="replace")
                # Not there yet or too busy for a moment; anything else is an answer.
                if error.code in (429, 502, 503) and attempt + 1 < _TRIES:
                    time.sleep(0.5)
                    continue
                raise ApiError(f"{method} {path}: {error.code} {said}") from error
        raise AssertionError("the last try returns or raises")
