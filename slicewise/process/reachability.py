"""Whether another user can start this Python and import the SDK, tried as that user.

Modes of folders do not tell: access lists and mounts count as well.
"""

import importlib.util
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# Ends with the first path that this user cannot use: r:FILE read, x:PATH execute or enter, w:FOLDER
# write to.
_FIRST_CLOSED_PATH = """
import os, sys
rights = {"r": os.R_OK, "x": os.X_OK, "w": os.R_OK | os.W_OK | os.X_OK}
for word in sys.argv[1:]:
    mode, _, path = word.partition(":")
    if not os.access(path, rights[mode]):
        sys.exit(path)
"""
_TRY_SECONDS = 30
# One of the packages that the SDK needs: they may lie elsewhere than the SDK.
_NEEDED_PACKAGE = "pendulum"


def first_closed_path(
    user: tuple[int, int], needs: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> str:
    """Return the first path that the user (user and group) cannot use; empty if the user can use
    all: this Python, the SDK, and the ``needs``.

    A need is ``r:FILE`` to read, ``x:PATH`` to execute or to enter, or ``w:FOLDER`` to write to.
    Only root may ask about other users.
    """
    uid, gid = user
    files = [Path(__file__).parents[1] / "__init__.py"]
    package = importlib.util.find_spec(_NEEDED_PACKAGE)
    files += [Path(package.origin)] if package is not None and package.origin else []
    words = [*(f"r:{file}" for file in files), *needs]
    try:
        trial = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _FIRST_CLOSED_PATH, *words],
            user=uid, group=gid, extra_groups=[], cwd="/", env=dict(env or {}),
            capture_output=True, text=True, check=False, timeout=_TRY_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return sys.executable
    if trial.returncode == 0:
        return ""
    return (trial.stderr.strip().splitlines()[-1:] or [sys.executable])[0]
