"""New data beside the old: joined to it, or as its next version."""

import errno
import json
import os
import shutil
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

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
# File systems that know no hard links, or no more of them for one file.
_NO_LINK = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS})


def append(source: Path, target: Path, staging: Path, marker: str, drop: Collection[str]) -> None:
    """A folder with the files of both takes the place of the old one, in one step.

    Old files are linked, not copied. ``drop`` are markers of earlier attempts at the same run: what
    they added goes, since it comes again. Of several that join to one folder at the same time the
    ones that came later begin anew: what they have joined is taken from them.
    """
    _note_files(source, marker)
    while True:
        joined = staging / f"{_JOINED_PREFIX}{uuid4().hex}"
        try:
            _take_from_others(staging)
            _join(source, target, joined, drop)
            put_in_place(joined, target)
            return
        except FileNotFoundError:
            if not source.exists():
                raise


def keep_version(root: Path, path: str, source: Path, target: Path, staging: Path) -> None:
    """The new folder is moved among the versions, and a link to it becomes the partition.

    Its files never move again. What is there and is no version yet becomes one.
    """
    folder, link = versions_of(root, path), _link_path(staging, path)
    folder.mkdir(parents=True, exist_ok=True)
    if path == UNPARTITIONED:  # else it lies in the staging folder, which may have been taken
        link.parent.mkdir(exist_ok=True)
    is_folder = target.is_dir() and not target.is_symlink()
    number = 1 + is_folder + max(_numbers(folder), default=0)
    while True:
        # The link is there before: whoever takes over takes it from a process that wakes up late.
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
        if os.path.lexists(link):  # else it has been taken, with all that it stands for
            os.rename(folder / str(number), source)  # nobody reads what was not published
        raise
    adopt(root, path, staging)


def adopt(root: Path, path: str, staging: Path) -> None:
    """A folder that a link was exchanged for goes among the versions, before the latest."""
    old = _link_path(staging, path)
    if old.is_symlink() or not old.is_dir():
        return
    folder = versions_of(root, path)
    latest = version_of(root, path) or 1
    free = next(n for n in range(latest - 1, -1, -1) if not (folder / str(n)).exists())
    os.rename(old, folder / str(free))


def links_beside(staging: Path) -> Path:
    """Where the link of an asset without partitions waits: its staging folder itself is moved."""
    return staging.with_name(LINKS_PREFIX + staging.name.removeprefix(STAGING_PREFIX))


def _link_path(staging: Path, path: str) -> Path:
    home = links_beside(staging) if path == UNPARTITIONED else staging
    return home / f"_link-{sha256(path.encode()).hexdigest()}"


def versions(root: Path, path: str) -> list[int]:
    """The numbers of the versions of a partition, from the first."""
    return sorted(_numbers(versions_of(root, path)))


def take_back(root: Path, path: str, source: Path, staging: Path, marker: str) -> None:
    """Have a version that was moved and not linked wait in the staging folder again.

    Only the link in the attempt's own staging folder tells it from a version that was published and
    superseded since: an exchange takes the link away.
    """
    if source.exists():
        return
    try:
        number = Path(os.readlink(_link_path(staging, path))).name
    except OSError:
        return  # no link, or what was exchanged for it
    version = versions_of(root, path) / number
    if (version / marker).exists():
        source.parent.mkdir(parents=True, exist_ok=True)
        os.rename(version, source)


def _numbers(folder: Path) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder) if name.isdecimal()]
    except FileNotFoundError:
        return []


def _note_files(source: Path, marker: str) -> None:
    """The marker says which files the attempt has added, so that a later one can replace them."""
    names = [entry.name for entry in os.scandir(source) if not entry.name.startswith("_")]
    write_own_file(source / marker, json.dumps(sorted(names)))


def _join(source: Path, target: Path, joined: Path, drop: Iterable[str]) -> None:
    joined.mkdir()
    for entry in os.scandir(source):
        if entry.is_file(follow_symlinks=False):
            _link(Path(entry.path), joined / entry.name)
    gone = {name for marker in drop for name in [marker, *_noted(target / marker)]}
    try:
        entries = list(os.scandir(target))
    except FileNotFoundError:
        return
    for entry in entries:
        # What both have, such as the columns, is said by the latest.
        if entry.name not in gone and not (joined / entry.name).exists():
            _link(Path(entry.path), joined / entry.name)


def _noted(marker: Path) -> list[str]:
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


def _take_from_others(staging: Path) -> None:
    """Removes what others have joined and not put in place: it lacks what is put there now.

    Who joins to it still must not find its folder any more: half of it would be put in place.
    """
    for other in staging.parent.glob(f"{STAGING_PREFIX}*/{_JOINED_PREFIX}*"):
        if other.parent.is_symlink():
            continue
        taken = other.with_name(f"{_TAKEN_PREFIX}{uuid4().hex}")
        with suppress(FileNotFoundError):  # put in place, or taken by another one
            os.rename(other, taken)
            shutil.rmtree(taken, ignore_errors=True)


class MissingVersionError(ValueError):
    """A version of a partition that was never published, or has been removed."""


def places_to_read(
    root: Path, paths: Sequence[str], *, version: int | None = None
) -> tuple[Path, Sequence[str]]:
    """The root below which partitions are read, and their folders below it.

    Versions are read where they lie: their files never move. Raises MissingVersionError for a
    version that is not there.
    """
    found = [version_of(root, path) for path in paths]
    if version is None and not all(found):
        return root, paths  # by way of the links, if there are some
    home = versions_home(root, partitioned=list(paths) != [UNPARTITIONED])
    placed = []
    for path, current in zip(paths, found, strict=True):
        number = current if version is None else version
        folder = versions_of(root, path) / str(number)
        if version is not None and not folder.is_dir():
            there = ", ".join(map(str, versions(root, path))) or "none"
            which = "it" if path == UNPARTITIONED else path
            raise MissingVersionError(
                f"there is no version {version} of {which} in {root}; there are: {there}"
            )
        placed.append(folder.relative_to(home).as_posix())
    return home, placed
