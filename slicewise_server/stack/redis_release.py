"""The release of a Redis server, and the known vulnerabilities of old releases.

Standard library only, until a server is asked: `slicewise doctor` works before anything is set up.
"""

from __future__ import annotations

import re
import subprocess
from typing import NamedTuple

# The first release of each line without CVE-2025-49844 and the vulnerabilities published with it:
# whoever may send commands runs code in the server by a Lua script.
_MENDED = {
    "Redis": {(6, 2): 20, (7, 2): 11, (7, 4): 6, (8, 0): 4, (8, 2): 2},
    "Valkey": {(7, 2): 11, (8, 0): 6, (8, 1): 4},
}
_PATIENCE_SECONDS = 5


class Release(NamedTuple):
    """A release of a server: `Redis 6.2.14`."""

    product: str
    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.product} {self.major}.{self.minor}.{self.patch}"


def of_binary(path: str) -> Release | None:
    """Return the release of a program; None without an answer."""
    try:
        answer = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"(Redis|Valkey) server v=(\S+)", answer.stdout)
    return _release(match[1], match[2]) if match else None


def of_server(url: str) -> Release | None:
    """Return the release of a running server; None without an answer."""
    try:
        import redis

        with redis.Redis.from_url(
            url, socket_timeout=_PATIENCE_SECONDS, socket_connect_timeout=_PATIENCE_SECONDS
        ) as client:
            info = client.info("server")
    except Exception:  # not installed, no password, no such URL: other findings say so
        return None
    if "valkey_version" in info:
        return _release("Valkey", str(info["valkey_version"]))
    return _release("Redis", str(info.get("redis_version")))


def known_holes(release: Release) -> str:
    """Return a warning if a later release of the line fixes vulnerabilities of this release."""
    mended = _MENDED[release.product]
    line = release.major, release.minor
    if line > max(mended) or release.patch >= mended.get(line, release.patch + 1):
        return ""
    if line in mended:
        way_out = f"{release.product} {line[0]}.{line[1]}.{mended[line]} or newer"
    else:
        way_out = "a newer line: for this line no release without them is known"
    return (
        f"{release} has known vulnerabilities, such as CVE-2025-49844: a client with the password"
        f" can run code in the server. Use {way_out}. A distribution's package may be mended under"
        " its old number."
    )


def _release(product: str, version: str) -> Release | None:
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    return Release(product, *map(int, numbers.groups())) if numbers else None
