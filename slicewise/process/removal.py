"""Removal of files and folders that code of people wrote, whatever the code has put there.

Python's own removal calls itself for each level, and fails on a thousand nested folders. The
program `rm` has no such limit. Root removes files of another user with the rights of that user: no
path then leads to a file of a third user.
"""

import logging
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

_REMOVE = ("/bin/rm", "-rf", "--one-file-system", "--")
_OPEN = ("/bin/chmod", "-R", "u+rwx", "--")
_PATHS_AT_ONCE = 500


def remove_folder(folder: Path) -> None:
    """Remove a folder with the rights of this process, as far as possible. Raises no error.

    A link is left as it is.
    """
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.isdir(folder) and not os.path.islink(folder):
        remove_paths([str(folder)])


def remove_paths(
    paths: Sequence[str], user: tuple[int, int] | None = None, *, seconds: float | None = None
) -> list[str]:
    """Remove files and folders with the rights of a user; return the paths that are left.

    ``user`` is user and group, by default of this process. Each program that this function starts
    ends after so many ``seconds``. Raises no error.
    """
    # Root needs no open folders, and changes no mode: a file may have another name elsewhere.
    is_root = user is None and os.geteuid() == 0
    for command in (_REMOVE,) if is_root else (_REMOVE, _OPEN, _REMOVE):
        for start in range(0, len(paths), _PATHS_AT_ONCE):
            run_as(user, [*command, *paths[start : start + _PATHS_AT_ONCE]], seconds=seconds)
        paths = [path for path in paths if os.path.lexists(path)]
        if not paths:
            break
    return list(paths)


def run_as(
    user: tuple[int, int] | None, command: Sequence[str], *, seconds: float | None = None
) -> None:
    """Run a program with the rights of a user, and wait for its end. Raises no error."""
    rights: Mapping[str, Any] = (
        {} if user is None else {"user": user[0], "group": user[1], "extra_groups": []}
    )
    try:
        subprocess.run(
            command, **rights, env={}, cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=seconds,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("removal failed", extra={"user": user, "error": str(error)})
