"""Folders that this process creates for itself or gives to another user, never through a link.

Folders are used by descriptor, because each call with a path looks the path up again, and the owner
of the folder above may put a link in between: root would then give away the target of the link, or
write to the target.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class ForeignFolderError(OSError):
    """A folder is a link or belongs to another user, and is therefore not used."""


def ensure_folder(folder: Path, *, user: tuple[int, int] | None = None, mode: int = 0o755) -> Path:
    """Create the folder, or take the existing one; return its path.

    The folder belongs to ``user`` (user and group), by default to this process's own user, and has
    the mode. The folder above has to exist. Raises ForeignFolderError for a link, for a path that
    is not a folder, and for a folder of another user.
    """
    with OpenFolder(folder.parent) as parent:
        opened_folder = parent.make(folder.name, user=user, mode=mode)
        opened_folder.close()
    return folder


def make_passable(folder: Path) -> None:
    """Create the folder, and missing folders above, open for all users to pass through under any
    umask. Existing folders stay as before. Raises ForeignFolderError as `ensure_folder` does.
    """
    for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        ensure_folder(path, mode=0o711 if path == folder else 0o755)


class OpenFolder:
    """A folder, held by its descriptor; links below the folder are not followed."""

    def __init__(self, path: Path, descriptor: int | None = None) -> None:
        self.path = path
        if descriptor is None:
            descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.descriptor = descriptor

    def __enter__(self) -> "OpenFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)

    def make(
        self, name: str, *, user: tuple[int, int] | None = None, mode: int = 0o755
    ) -> "OpenFolder":
        """Create a folder in this one, or take the existing one, as `own_folder` does."""
        path = self.path / name
        with suppress(FileExistsError):
            # No other user can use the folder until the folder has its owner.
            os.mkdir(name, 0o700, dir_fd=self.descriptor)
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            opened_folder = OpenFolder(path, os.open(name, flags, dir_fd=self.descriptor))
        except NotADirectoryError:
            raise ForeignFolderError(
                f"{path} is a link or a file, and Slicewise needs a folder of its own: remove"
                f" {path}."
            ) from None
        try:
            opened_folder.belong(user, mode)
        except BaseException:
            opened_folder.close()
            raise
        return opened_folder

    def belong(self, user: tuple[int, int] | None, mode: int) -> None:
        """Give the folder its owner and mode. Raises ForeignFolderError if another user owns it."""
        status = os.fstat(self.descriptor)
        owner, _ = user or (os.geteuid(), os.getegid())
        # An earlier process may have ended before the folder got its owner.
        if status.st_uid not in (owner, os.geteuid()):
            raise ForeignFolderError(
                f"{self.path} belongs to the user {status.st_uid}, and must belong to {owner}:"
                " another user may have created the folder."
                " Check the content, and remove the folder."
            )
        if user is not None and (status.st_uid, status.st_gid) != user:
            os.fchown(self.descriptor, *user)
        if stat.S_IMODE(status.st_mode) != mode:
            os.fchmod(self.descriptor, mode)


def secure_folder(folder: Path, *, back_from: int | None = None) -> bool:
    """Ensure that no other user can write to a folder; return whether it was taken back from a
    user.

    As root, a folder of the user ``back_from`` becomes root's own. Raises ForeignFolderError if the
    folder belongs to another user.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with OpenFolder(folder, os.open(folder, flags)) as opened:
        status = os.fstat(opened.descriptor)
        is_taken_back = status.st_uid == back_from != os.geteuid()
        if is_taken_back:
            os.fchown(opened.descriptor, os.geteuid(), os.getegid())
        elif status.st_uid != os.geteuid():
            raise ForeignFolderError(
                f"{folder} belongs to the user {status.st_uid}: give it to {os.geteuid()}, as whom"
                " this server runs, with the mode 711."
            )
        if is_taken_back or status.st_mode & _OTHERS_MAY_WRITE:
            os.fchmod(opened.descriptor, 0o711)
    return is_taken_back
