"""Publishing what an attempt staged, so that a crash at any point can be finished by another."""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slicewise.storage import modes
from slicewise.storage.errors import StagingLostError, StorageError
from slicewise.storage.exchange import put_in_place
from slicewise.storage.layout import (
    STAGING_PREFIX,
    UNPARTITIONED,
    marker_name,
    staging_home,
    version_of,
)

LOCK_PATIENCE_SECONDS = 5.0
Facts = Mapping[str, Any]

_DISCARDED_PREFIX = "_slicewise-discarded-"


def publish(
    root: str,
    staging: str,
    partitions: Sequence[Mapping[str, Any]],
    *,
    run_id: int,
    attempt: str,
    token: str,
    mode: str = "replace",
    earlier: Sequence[str] = (),
) -> dict[str, Facts]:
    """Puts staged partitions in the place of the old ones, each by one atomic exchange.

    ``mode`` says what becomes of the old: it is replaced, appended to, or kept as a version.
    ``earlier`` are the names of the attempts at the same run before this one: what they have
    appended goes. Returns facts for the record by path, such as the number of the version.

    ``root`` is the asset's folder, ``staging`` the folder that the runner reported, and every
    partition has a ``path`` relative to both; ``attempt`` is the attempt's name on disk, and only
    its own data may ever bear it. May be called again after a crash, by anyone, with
    a token of their own: the staging folder is first renamed to bear that token, so that whoever
    held it before finds its paths gone, and a target that bears this attempt's marker is done (an
    exchange done twice would put the old data back).

    Raises StagingLostError when something is still to be done and nothing staged is left, and
    StorageError when a target holds folders that no partition of this asset would hold.
    """
    asset = Path(root)
    home = Path(staging).parent
    marker = marker_name(run_id, attempt)
    drop = [marker_name(run_id, one) for one in earlier]
    facts: dict[str, Facts] = {}
    with _lock(asset):
        mine = _take_over(home, run_id, attempt, token)
        for partition in partitions:
            path = str(partition["path"])
            facts[path] = _publish_one(asset, mine, path, marker, mode, drop)
    # The old data goes after the lock is given back: removing it can take long.
    _remove(mine)
    _remove(modes.links_beside(mine))
    return facts


def check(
    root: str,
    staging: str,
    partitions: Sequence[Mapping[str, Any]],
    *,
    run_id: int,
    attempt: str,
) -> None:
    """Raises what `publish` would, as far as that can be seen before anything is exchanged."""
    asset, marker = Path(root), marker_name(run_id, attempt)
    homes = _staging_folders(Path(staging).parent, run_id, attempt)
    for partition in partitions:
        path = str(partition["path"])
        _refuse_path_out(path)
        if (asset / path / marker).exists():
            continue
        waits = any((home / path / marker).exists() for home in homes)
        if not waits and modes.unlinked(asset, path, marker) is None:
            raise StagingLostError(f"{asset / path} was not published and what was staged is gone")
        _refuse_foreign_folders(asset / path)


def published(root: str, paths: Sequence[str], *, run_id: int, attempt: str) -> list[str]:
    """Those of the folders below ``root`` in which this attempt's data is in place."""
    marker = marker_name(run_id, attempt)
    return [path for path in paths if (Path(root) / path / marker).exists()]


def discard(root: str, *, run_id: int, attempt: str) -> None:
    """Removes whatever an attempt staged, under any token's name. Nothing staged is no error."""
    asset = Path(root)
    for home in (staging_home(asset, partitioned=True), staging_home(asset, partitioned=False)):
        for folder in _staging_folders(home, run_id, attempt):
            # A write that is still under way on a server must not find its folder while it is
            # being removed, nor be able to fill it again.
            gone = folder.with_name(_DISCARDED_PREFIX + folder.name.removeprefix(STAGING_PREFIX))
            try:
                os.rename(folder, gone)
            except FileNotFoundError:
                continue  # somebody else is discarding it
            _remove(gone)


def _publish_one(
    asset: Path, staging: Path, path: str, marker: str, mode: str, drop: Sequence[str]
) -> Facts:
    _refuse_path_out(path)
    source, target = staging / path, asset / path
    if (target / marker).exists():
        modes.adopt(asset, path, staging)  # whoever published it may have ended before
        return _facts(asset, path)
    modes.take_back(asset, path, source, marker)
    if not (source / marker).exists():
        raise StagingLostError(f"{target} was not published and {source} is gone")
    _refuse_foreign_folders(target)
    try:
        match mode:
            case "append":
                modes.append(source, target, staging, marker, drop)
            case "version":
                modes.keep_version(asset, path, source, target, staging)
            case _:
                put_in_place(source, target)
    except FileNotFoundError as error:
        raise StagingLostError(f"{source} was taken while it was being published") from error
    return _facts(asset, path)


def _facts(asset: Path, path: str) -> Facts:
    version = version_of(asset, path)
    return {} if version is None else {"version": version}


def _refuse_path_out(path: str) -> None:
    parts = Path(path).parts
    if Path(path).is_absolute() or ".." in parts or (path != UNPARTITIONED and not parts):
        raise StorageError(f"a partition's folder lies inside its asset, not at {path!r}")


def _refuse_foreign_folders(target: Path) -> None:
    """A partition's folder holds files only; a folder in it would be lost with the old data."""
    try:
        with os.scandir(target) as entries:
            foreign = next((entry.name for entry in entries if entry.is_dir()), None)
    except FileNotFoundError:
        return
    if foreign is not None:
        raise StorageError(
            f"{target} is not replaced, because it holds the folder {foreign!r}, which is no part"
            " of this partition; give the asset a URI of its own, or move that folder away"
        )


def _staging_folders(home: Path, run_id: int, attempt: str) -> list[Path]:
    return sorted(home.glob(f"{STAGING_PREFIX}{run_id}-{attempt}-*"))


def _take_over(home: Path, run_id: int, attempt: str, token: str) -> Path:
    """Renames the attempt's staging folder to bear ``token``; its path, even if there is none."""
    mine = home / f"{STAGING_PREFIX}{run_id}-{attempt}-{token}"
    for links in home.glob(f"{modes.LINKS_PREFIX}{run_id}-{attempt}-*"):
        if links != modes.links_beside(mine):
            os.rename(links, modes.links_beside(mine))
    found = [folder for folder in _staging_folders(home, run_id, attempt) if folder != mine]
    if len(found) + mine.exists() > 1:
        raise StorageError(f"several staging folders of one attempt in {home}: {found}")
    for folder in found:
        try:
            os.rename(folder, mine)
        except FileNotFoundError as error:
            raise StagingLostError(f"{folder} was taken by another worker") from error
    return mine


@contextmanager
def _lock(asset: Path) -> Iterator[None]:
    """Holds the lock on an asset's folder, which several assets may share, while it is swapped.

    The lock keeps two publications from mixing. It is not waited for without end: its holder may
    be a stopped process, and every single step is safe without it.
    """
    asset.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(asset.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + LOCK_PATIENCE_SECONDS
        while not _try_lock(descriptor) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove(folder: Path) -> None:
    """Removes a folder of old or unwanted data; what cannot be removed does no harm but space."""
    shutil.rmtree(folder, ignore_errors=True)
