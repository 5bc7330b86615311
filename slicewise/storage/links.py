"""Symbolic links in the folders of assets and attempts, and the check of their targets.

Runs write both folders, and may put links there. A process that publishes or removes data follows
only the links of versions, which such processes make themselves.
"""

import os
import stat
from pathlib import Path

from slicewise.storage.layout import UNPARTITIONED, version_of, versions_home, versions_of
from slicewise.storage.storage_errors import StorageError


def find_link(first: Path, last: Path) -> Path | None:
    """Return the uppermost link among the folders from ``first`` down to ``last``, both
    included; None if there is none.
    """
    folder = first
    for name in (None, *last.relative_to(first).parts):
        folder = folder if name is None else folder / name
        if folder.is_symlink():
            return folder
    return None


def is_version_link(asset: Path, path: str) -> bool:
    """Return whether the link at a partition's folder leads to one of the partition's versions."""
    return version_of(asset, path) is not None and _target_folder(asset / path) == versions_of(
        asset, path
    )


def refuse_links(asset: Path, path: str, staging: Path, links: Path) -> None:
    """Raise StorageError if a link is among the folders that publishing a partition uses.

    ``staging`` is the attempt's folder, ``links`` the folder of the attempt's links, which may be
    another.
    """
    target, versions = asset / path, versions_of(asset, path)
    home = versions_home(asset, partitioned=path != UNPARTITIONED)
    link = find_link(staging, staging / path) or find_link(links, links)
    link = link or find_link(home, versions)
    if link is None and path != UNPARTITIONED:
        # `refuse_foreign_root` checks the asset's own folder.
        folder_names = Path(path).parts
        link = find_link(asset / folder_names[0], target.parent) if len(folder_names) > 1 else None
        if link is None and target.is_symlink() and not is_version_link(asset, path):
            link = target
    if link is not None:
        raise StorageError(f"{link} is a link, and links to data are not followed; remove the link")


def refuse_foreign_root(asset: Path) -> None:
    """Raise StorageError if the asset's folder is a link that another user has made.

    Links of root, and of the user of this process, are as good as folders.
    """
    try:
        status = os.lstat(asset)
    except OSError:
        return
    if stat.S_ISLNK(status.st_mode) and status.st_uid not in (0, os.geteuid()):
        raise StorageError(
            f"{asset} is a link of user {status.st_uid}, and links of that user are not followed;"
            " replace the link by a folder"
        )


def write_own_file(path: Path, text: str) -> None:
    """Replace a file by a new one in one step: nothing is written through a link."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)  # of a process that was killed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(new, flags, 0o666), "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(new, path)


def read_own_file(path: Path, limit: int) -> str:
    """Return the text of a regular file; an empty text if the path is no regular file.

    Raises FileNotFoundError, and StorageError for more than ``limit`` bytes.
    """
    if path.is_symlink():
        return ""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        content = file.read(limit + 1)
    if len(content) > limit:
        raise StorageError(f"{path} has more than {limit:,} bytes")
    return content.decode("utf-8", "replace")


def _target_folder(link: Path) -> Path:
    """Return the folder that contains a link's target."""
    return Path(os.path.normpath(link.parent / os.readlink(link))).parent
