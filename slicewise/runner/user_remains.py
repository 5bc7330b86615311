"""Remains of a user who has no processes left: files in folders where every user may write, and
memory, semaphores and queues of System V.

The remains are removed with the rights of that user: no path leads to a file of another user.
"""

import logging
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from slicewise.process.removal import remove_paths, run_as
from slicewise.runner import ipc_removal

log = logging.getLogger(__name__)

_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")  # noqa: S108
# Folders in these that every user may write, such as those of X11.
_DEPTH = 3
_SECONDS = 20.0
_IPC_FOLDER = Path("/proc/sysvipc")
_IPC_KINDS = ("shm", "sem", "msg")


def remove_remains(user: tuple[int, int]) -> None:
    """Remove the remains of a user (user and group); write the remains that stay to the log.

    Only root may call this function. No process is started if nothing remains.
    """
    uid, _ = user
    if paths := list(_files_of(uid)):
        kept_paths = remove_paths(paths, user, seconds=_SECONDS)
        if kept_paths:
            facts = {"user": uid, "paths": kept_paths[:10]}
            log.warning("files of a user not removed", extra=facts)
    if ipc_objects := list(_ipc_of(uid)):
        command = [sys.executable, "-I", "-S", ipc_removal.__file__, *ipc_objects]
        run_as(user, command, seconds=_SECONDS)


def _files_of(uid: int) -> Iterator[str]:
    """Yield files and folders of the user in folders where every user may write."""
    folders = [(folder, 1) for folder in _FOLDERS]
    while folders:
        folder, depth = folders.pop()
        with suppress(OSError), os.scandir(folder) as entries:  # not there, or removed meanwhile
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_uid == uid:
                        yield entry.path
                    elif depth < _DEPTH and _is_open_folder(status.st_mode):
                        folders.append((entry.path, depth + 1))


def _is_open_folder(mode: int) -> bool:
    return stat.S_ISDIR(mode) and bool(mode & stat.S_IWOTH)


def _ipc_of(uid: int) -> Iterator[str]:
    """Yield the objects of System V that belong to the user, as `shm:7`."""
    for kind in _IPC_KINDS:
        with suppress(OSError):  # a kernel without such objects
            header, *lines = (_IPC_FOLDER / kind).read_text().splitlines()
            names = header.split()
            for line in lines:
                words = line.split()
                facts = dict(zip(names, words, strict=False))
                if str(uid) in (facts["uid"], facts["cuid"]):
                    _key, number, *_ = words
                    yield f"{kind}:{number}"
