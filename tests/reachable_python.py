"""This Python for users who may not pass through the folders above this Python."""

import os
import shutil
import sys
from pathlib import Path


def reaching_python(folder: Path) -> list[str]:
    """Return words before a command with which other users than root reach this Python.

    Where this Python lies in a folder of root alone, as in a home, the command sees another folder
    in that place.
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
