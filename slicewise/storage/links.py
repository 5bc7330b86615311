"""Links that stand in an asset's folder or in an attempt's, and where they may lead.

Runs write both, and may put links there. A process that publishes or removes data follows none but
those of versions, which it has made itself.
"""

import os
import stat
from pathlib import Path

from slicewise.storage.errors import StorageError
from slicewise.storage.layout import UNPARTITIONED, version_of, versions_home, versions_of


def find_link(first: Path, last: Path) -> Path | None:
    """Return the uppermost link among the folders from ``first`` down to ``last``, both of which
    count; None where there is none.
    """
    folder = first
    for part in (None, *last.relative_to(first).parts):
        folder = folder if part is None else folder / part
        if folder.is_symlink():
            return folder
    return None


def is_version_link(asset: Path, path: str) -> bool:
    """Whether the link at a partition's folder leads to one of its versions."""
    return version_of(asset, path) is not None and _linked(asset / path) == versions_of(asset, path)


def refuse_links(asset: Path, path: str, staging: Path, links: Path) -> None:
    """Raise StorageError where a link stands among the folders that publishing a partition uses.

    ``staging`` is the attempt's folder, ``links`` the folder of its links, where it is another one.
    """
    target, versions = asset / path, versions_of(asset, path)
    home = versions_home(asset, partitioned=path != UNPARTITIONED)
    found = find_link(staging, staging / path) or find_link(links, links)
    found = found or find_link(home, versions)
    if found is None and path != UNPARTITIONED:
        # The asset's own folder is looked at by `refuse_foreign_root`.
        parts = Path(path).parts
        found = find_link(asset / parts[0], target.parent) if len(parts) > 1 else None
        if found is None and target.is_symlink() and not is_version_link(asset, path):
            found = target
    if found is not None:
        raise StorageError(f"{found} is a link, and links to data are not followed; remove it")


def refuse_foreign_root(asset: Path) -> None:
    """Raise StorageError where the asset's folder is a link that another user has made.

    Those of root, and of the user of this process, are as good as folders.
    """
    try:
        status = os.lstat(asset)
    except OSError:
        return
    if stat.S_ISLNK(status.st_mode) and status.st_uid not in (0, os.geteuid()):
        raise StorageError(
            f"{asset} is a link that user {status.st_uid} has made, and those are not followed;"
            " replace it by a folder"
        )


def write_own_file(path: Path, text: str) -> None:
    """Have a new file take the place of one, in one step: nothing is written through a link."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)  # of a process that was killed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(new, flags, 0o666), "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(new, path)


def read_own_file(path: Path, limit: int) -> str:
    """Return the text of a regular file; nothing where there is something else.

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


def _linked(link: Path) -> Path:
    """Return the folder that holds what a link leads to."""
    return Path(os.path.normpath(link.parent / os.readlink(link))).parent
