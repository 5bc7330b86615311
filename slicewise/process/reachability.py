"""Whether another user can start this Python and import the SDK, tried as that user.

Modes of folders do not tell: access lists and mounts count as well.
"""

import errno
import importlib.util
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# Prints the first path that this user cannot use: r:FILE read, x:PATH execute or enter, w:FOLDER
# write to. Then prints a mark: a trial without it was cut short, and tells nothing of paths.
_MARK = "slicewise: tried"
_FIRST_CLOSED_PATH = f"""
import os, sys
rights = {{"r": os.R_OK, "x": os.X_OK, "w": os.R_OK | os.W_OK | os.X_OK}}
for word in sys.argv[1:]:
    mode, _, path = word.partition(":")
    if not os.access(path, rights[mode]):
        print(path)
        break
print({_MARK!r})
"""
_TRY_SECONDS = 30
# One of the packages that the SDK needs: they may lie elsewhere than the SDK.
_NEEDED_PACKAGE = "pendulum"


class UntriedError(Exception):
    """The trial has not ended by itself: whether the user can use the paths is not known."""


def first_closed_path(
    user: tuple[int, int], needs: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> str:
    """Return the first path that the user (user and group) cannot use; empty if the user can use
    all: this Python, the SDK, and the ``needs``.

    A need is ``r:FILE`` to read, ``x:PATH`` to execute or to enter, or ``w:FOLDER`` to write to.
    Only root may ask about other users. Raises UntriedError when the trial fails for another
    reason than a closed path, such as want of memory or of processes: a later trial may succeed.
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
    except PermissionError as error:
        if error.errno == errno.EACCES and error.filename is not None:
            return sys.executable
        raise UntriedError(str(error)) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise UntriedError(str(error)) from error
    *closed_paths, mark = trial.stdout.splitlines() or [""]
    if trial.returncode != 0 or mark != _MARK:
        last_words = (trial.stderr.strip().splitlines() or ["no output"])[-1]
        raise UntriedError(f"{sys.executable} ended with status {trial.returncode}: {last_words}")
    return "\n".join(closed_paths)
