"""Folders that this process makes for itself or gives to another user: by descriptor, never by way
of a link.

A path is looked up anew by each call, and whoever owns the folder above may put a link in between:
root would then give away, or write to, whatever the link names.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class ForeignFolderError(OSError):
    """A folder is a link, or another user's, and so nothing is done in it."""


def own_folder(folder: Path, *, user: tuple[int, int] | None = None, mode: int = 0o755) -> Path:
    """Make the folder, or take the one that is there; return its path.

    It belongs to ``user`` (user and group), or to this process's own user without one, and has the
    mode. The folder above has to be there. Raises ForeignFolderError for a link, for what is no
    folder, and for a folder of another user.
    """
    with OpenFolder(folder.parent) as above:
        own = above.make(folder.name, user=user, mode=mode)
        own.close()
    return folder


class OpenFolder:
    """A folder by its descriptor; links below it are not followed."""

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
        """Give the descriptor back."""
        os.close(self.descriptor)

    def make(
        self, name: str, *, user: tuple[int, int] | None = None, mode: int = 0o755
    ) -> "OpenFolder":
        """Make a folder in this one, or take the one that is there, as `own_folder` does."""
        path = self.path / name
        with suppress(FileExistsError):
            # Nobody else's until it has its owner.
            os.mkdir(name, 0o700, dir_fd=self.descriptor)
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            own = OpenFolder(path, os.open(name, flags, dir_fd=self.descriptor))
        except NotADirectoryError:
            raise ForeignFolderError(
                f"{path} is a link or a file, and is to be a folder of Slicewise's own: remove it."
            ) from None
        try:
            own.belong(user, mode)
        except BaseException:
            own.close()
            raise
        return own

    def belong(self, user: tuple[int, int] | None, mode: int) -> None:
        """Give the folder its owner and its mode. Raises ForeignFolderError for another's."""
        found = os.fstat(self.descriptor)
        wanted, _ = user or (os.geteuid(), os.getegid())
        # This process's own where it ended between making and giving away.
        if found.st_uid not in (wanted, os.geteuid()):
            raise ForeignFolderError(
                f"{self.path} belongs to the user {found.st_uid}, and is to belong to {wanted}:"
                " another user may have made it. Look at what is in it, and remove it."
            )
        if user is not None and (found.st_uid, found.st_gid) != user:
            os.fchown(self.descriptor, *user)
        if stat.S_IMODE(found.st_mode) != mode:
            os.fchmod(self.descriptor, mode)


def take_folder(folder: Path, *, back_from: int | None = None) -> bool:
    """See that nobody else can write to a folder; return whether it was taken back from a user.

    As root a folder of the user ``back_from`` becomes root's own. Raises ForeignFolderError where
    the folder is another user's, or open to others.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with OpenFolder(folder, os.open(folder, flags)) as opened:
        found = os.fstat(opened.descriptor)
        is_taken_back = found.st_uid == back_from != os.geteuid()
        if is_taken_back:
            os.fchown(opened.descriptor, os.geteuid(), os.getegid())
        elif found.st_uid != os.geteuid():
            raise ForeignFolderError(
                f"{folder} belongs to the user {found.st_uid}: give it to {os.geteuid()}, as whom"
                " this server runs, with the mode 711."
            )
        if is_taken_back or found.st_mode & _OTHERS_MAY_WRITE:
            os.fchmod(opened.descriptor, 0o711)
    return is_taken_back
