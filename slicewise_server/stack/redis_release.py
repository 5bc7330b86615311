"""Which release a Redis server is of, and the holes that are known of old ones.

Standard library only, until a server is asked: `slicewise doctor` works before anything is set up.
"""

from __future__ import annotations

import re
import subprocess
from typing import NamedTuple

# Of each line of releases the first without CVE-2025-49844 and the holes that were told with it:
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
    """Return the release of a program; None where it does not tell."""
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
    told = re.match(r"(Redis|Valkey) server v=(\S+)", answer.stdout)
    return _release(told[1], told[2]) if told else None


def of_server(url: str) -> Release | None:
    """Return the release of a server that runs; None where it does not tell."""
    try:
        import redis

        with redis.Redis.from_url(
            url, socket_timeout=_PATIENCE_SECONDS, socket_connect_timeout=_PATIENCE_SECONDS
        ) as client:
            told = client.info("server")
    except Exception:  # not installed, no password, no such URL: other findings say so
        return None
    if "valkey_version" in told:
        return _release("Valkey", str(told["valkey_version"]))
    return _release("Redis", str(told.get("redis_version")))


def known_holes(release: Release) -> str:
    """Return a warning where this release has holes that a later one of its line has not."""
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
