"""This Python for users who may not pass through the folders that it lies in."""

import os
import shutil
import sys
from pathlib import Path


def reaching_python(folder: Path) -> list[str]:
    """Words before a command such that others than root can reach this Python: where it lies in a
    folder that is root's alone, as in a home, the command sees another folder in its place.
    """
    places = [*Path(os.path.realpath(sys.executable)).parents][::-1]
    closed = next((place for place in places if not place.stat().st_mode & 0o001), None)
    if closed is None:
        return []
    inner = places[places.index(closed) + 1]
    steps = (
        f"mount --bind {inner} {folder}",
        f"mount -t tmpfs -o mode=755 tmpfs {closed}",
        f"mkdir {inner}",
        f"mount --bind {folder} {inner}",
        'exec "$@"',
    )
    return [shutil.which("unshare") or "", "--mount", "sh", "-ec", "; ".join(steps), "sh"]
