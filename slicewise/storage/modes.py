"""Write modes that keep old data: appended files, and versions."""

import errno
import json
import os
import shutil
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from slicewise.process.removal import remove_folder
from slicewise.storage.exchange import put_in_place
from slicewise.storage.layout import (
    LINKS_PREFIX,
    STAGING_PREFIX,
    UNPARTITIONED,
    version_of,
    versions_home,
    versions_of,
)
from slicewise.storage.links import read_own_file, write_own_file

_LONGEST_MARKER_BYTES = 64 * 1024 * 1024
_JOINED_PREFIX, _TAKEN_PREFIX = "_joined-", "_taken-"
# Errors of file systems without hard links, or without more of them for one file.
_NO_LINK = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS})


def append(source: Path, target: Path, staging: Path, marker: str, drop: Collection[str]) -> None:
    """Replace the old folder, in one step, by a folder with the files of both.

    Old files are linked, not copied. ``drop`` are markers of earlier attempts at the same run: the
    files that such an attempt added are dropped, since this attempt adds the rows again. Of several
    processes that append to one folder at the same time, a process whose joined folder was taken
    away begins anew.
    """
    _record_files(source, marker)
    while True:
        joined = staging / f"{_JOINED_PREFIX}{uuid4().hex}"
        try:
            _remove_other_joins(staging)
            _join(source, target, joined, drop)
            put_in_place(joined, target)
            return
        except FileNotFoundError:
            if not source.exists():
                raise


def keep_version(root: Path, path: str, source: Path, target: Path, staging: Path) -> None:
    """Move the new folder among the versions, and put a link to it in the partition's place.

    The files never move again. A present folder that is no version yet becomes one.
    """
    folder, link = versions_of(root, path), _link_path(staging, path)
    folder.mkdir(parents=True, exist_ok=True)
    if path == UNPARTITIONED:  # else in the staging folder, which another may have taken
        link.parent.mkdir(exist_ok=True)
    is_folder = target.is_dir() and not target.is_symlink()
    number = 1 + is_folder + max(_numbers(folder), default=0)
    while True:
        # The link comes first: a process that takes over takes it from one that wakes up late.
        link.unlink(missing_ok=True)
        os.symlink(os.path.relpath(folder / str(number), target.parent), link)
        try:
            os.rename(source, folder / str(number))
            break
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            number += 1
    try:
        put_in_place(link, target)
    except BaseException:
        if os.path.lexists(link):  # else another process has taken link and version
            os.rename(folder / str(number), source)  # no reader knows it yet
        raise
    keep_as_version(root, path, staging)


def keep_as_version(root: Path, path: str, staging: Path) -> None:
    """Move a folder that was exchanged for a link among the versions, before the latest one."""
    old = _link_path(staging, path)
    if old.is_symlink() or not old.is_dir():
        return
    folder = versions_of(root, path)
    latest = version_of(root, path) or 1
    free = next(n for n in range(latest - 1, -1, -1) if not (folder / str(n)).exists())
    os.rename(old, folder / str(free))


def links_beside(staging: Path) -> Path:
    """Return the folder for the link of an unpartitioned asset, whose
    staging folder itself is moved.
    """
    return staging.with_name(LINKS_PREFIX + staging.name.removeprefix(STAGING_PREFIX))


def _link_path(staging: Path, path: str) -> Path:
    home = links_beside(staging) if path == UNPARTITIONED else staging
    return home / f"_link-{sha256(path.encode()).hexdigest()}"


def versions(root: Path, path: str) -> list[int]:
    """Return the numbers of the versions of a partition, from the first."""
    return sorted(_numbers(versions_of(root, path)))


def unpublish_version(root: Path, path: str, source: Path, staging: Path, marker: str) -> None:
    """Move a version that was moved and not linked back to the staging folder.

    Only the link in the attempt's own staging folder tells such a version from a version that was
    published and superseded since: an exchange takes the link away.
    """
    if source.exists():
        return
    try:
        number = Path(os.readlink(_link_path(staging, path))).name
    except OSError:
        return  # no link, or a folder that was exchanged for it
    version = versions_of(root, path) / number
    if (version / marker).exists():
        source.parent.mkdir(parents=True, exist_ok=True)
        os.rename(version, source)


def _numbers(folder: Path) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder) if name.isdecimal()]
    except FileNotFoundError:
        return []


def _record_files(source: Path, marker: str) -> None:
    """Write the names of the attempt's files into the marker, so that a later
    attempt can replace the files.
    """
    names = [entry.name for entry in os.scandir(source) if not entry.name.startswith("_")]
    write_own_file(source / marker, json.dumps(sorted(names)))


def _join(source: Path, target: Path, joined: Path, drop: Iterable[str]) -> None:
    joined.mkdir()
    for entry in os.scandir(source):
        if entry.is_file(follow_symlinks=False):
            _link(Path(entry.path), joined / entry.name)
    dropped_names = {
        name for marker in drop for name in [marker, *_recorded_files(target / marker)]
    }
    try:
        entries = list(os.scandir(target))
    except FileNotFoundError:
        return
    for entry in entries:
        # Of a file in both folders, such as the columns, the latest counts.
        if entry.name not in dropped_names and not (joined / entry.name).exists():
            _link(Path(entry.path), joined / entry.name)


def _recorded_files(marker: Path) -> list[str]:
    try:
        text = read_own_file(marker, _LONGEST_MARKER_BYTES)
    except FileNotFoundError:
        return []
    return [str(name) for name in json.loads(text or "[]")]


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        shutil.copy2(source, target, follow_symlinks=False)


def _remove_other_joins(staging: Path) -> None:
    """Remove the folders that other processes have joined and not put in place: the data that is
    put in place now is not in such folders.

    A process that still joins must not find its folder any more: half a folder would be put in
    place.
    """
    for joined in staging.parent.glob(f"{STAGING_PREFIX}*/{_JOINED_PREFIX}*"):
        if joined.parent.is_symlink():
            continue
        renamed = joined.with_name(f"{_TAKEN_PREFIX}{uuid4().hex}")
        with suppress(FileNotFoundError):  # put in place, or removed by another process
            os.rename(joined, renamed)
            remove_folder(renamed)


class MissingVersionError(ValueError):
    """The version of a partition was never published, or has been removed."""


def folders_to_read(
    root: Path, paths: Sequence[str], *, version: int | None = None
) -> tuple[Path, Sequence[str]]:
    """Return (root, folders): the root below which partitions are read, and
    the folders below the root.

    Versions are read from the versions' folders: the files never move. Raises MissingVersionError
    for a version that does not exist.
    """
    current_versions = [version_of(root, path) for path in paths]
    if version is None and not all(current_versions):
        return root, paths  # through the links, if there are any
    home = versions_home(root, partitioned=list(paths) != [UNPARTITIONED])
    version_folders = []
    for path, current in zip(paths, current_versions, strict=True):
        number = current if version is None else version
        folder = versions_of(root, path) / str(number)
        if version is not None and not folder.is_dir():
            available = ", ".join(map(str, versions(root, path))) or "none"
            data_path = root if path == UNPARTITIONED else f"{path} in {root}"
            raise MissingVersionError(
                f"version {version} of {data_path} does not exist; the versions are {available}"
            )
        version_folders.append(folder.relative_to(home).as_posix())
    return home, version_folders
