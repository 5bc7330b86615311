"""The publication of an attempt's staged data, which another process can finish after any crash."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slicewise.storage import modes
from slicewise.storage.exchange import put_in_place
from slicewise.storage.fencing import folders_of, remove, remove_safely, take_over
from slicewise.storage.layout import (
    DISCARDED_PREFIX,
    LINKS_PREFIX,
    STAGING_PREFIX,
    TRIAL_PREFIX,
    UNPARTITIONED,
    marker_name,
    staging_home,
    staging_path,
    version_of,
)
from slicewise.storage.links import refuse_foreign_root, refuse_links
from slicewise.storage.locking import lock
from slicewise.storage.storage_errors import StagingLostError, StorageError, TryAgainError

LOCK_PATIENCE_SECONDS = 5.0
Facts = Mapping[str, Any]


def publish(
    root: str,
    staging: str,
    partitions: Sequence[Mapping[str, Any]],
    *,
    run_id: int,
    attempt: str,
    fence: int,
    mode: str = "replace",
    earlier: Sequence[str] = (),
) -> dict[str, Facts]:
    """Put staged partitions in the place of the old ones, each by one atomic exchange.

    ``mode`` decides about the old data: it is replaced, appended to, or kept as a version.
    ``earlier`` are the names of the attempts at the same run before this one: files that these
    attempts have appended are removed. Returns facts for the record by path, such as the number of
    the version.

    ``root`` is the asset's folder, ``staging`` the folder that the runner reported, and every
    partition has a ``path`` relative to both; ``attempt`` is the attempt's name on disk, and only
    its own data may ever bear that name. May be called again after a crash, by any process with a
    higher ``fence`` than the processes before: the staging folder is first renamed to that number,
    so that an earlier holder finds its paths gone, and a target with this attempt's marker is done
    (an exchange done twice would put the old data back).

    Raises StagingLostError if another process has taken the attempt over, and if a partition is
    neither published nor staged; StorageError if a target contains folders that no partition of
    this asset would contain, and if a link is in the way.
    """
    asset = Path(root)
    home = Path(staging).parent
    marker = marker_name(run_id, attempt)
    drop = [marker_name(run_id, name) for name in earlier]
    facts: dict[str, Facts] = {}
    refuse_foreign_root(asset)
    with lock_asset(asset):
        own_staging = take_over(home, run_id, attempt, fence)
        for partition in partitions:
            path = str(partition["path"])
            facts[path] = _publish_one(asset, own_staging, path, marker, mode, drop)
    # The old data is removed after the lock is released: that can take long.
    remove(own_staging)
    remove(modes.links_beside(own_staging))
    return facts


def check(
    root: str,
    staging: str,
    partitions: Sequence[Mapping[str, Any]],
    *,
    run_id: int,
    attempt: str,
    fence: int,
) -> None:
    """Raise the error that `publish` would raise, as far as it can be seen without an exchange.

    From then on an earlier holder of the attempt can exchange nothing any more.
    """
    asset, marker = Path(root), marker_name(run_id, attempt)
    refuse_foreign_root(asset)
    own_staging = take_over(Path(staging).parent, run_id, attempt, fence)
    for partition in partitions:
        path = str(partition["path"])
        refuse_path_outside(path)
        refuse_links(asset, path, own_staging, modes.links_beside(own_staging))
        if (asset / path / marker).exists():
            continue
        modes.unpublish_version(asset, path, own_staging / path, own_staging, marker)
        if not (own_staging / path / marker).exists():
            raise StagingLostError(
                f"{asset / path} was not published, and the staged data is missing"
            )
        _refuse_foreign_folders(asset / path)


def published(root: str, paths: Sequence[str], *, run_id: int, attempt: str) -> list[str]:
    """Return the folders below ``root`` in which this attempt's data is in place."""
    marker = marker_name(run_id, attempt)
    return [path for path in paths if (Path(root) / path / marker).exists()]


def discard(root: str, *, run_id: int, attempt: str) -> None:
    """Remove an attempt's staged data, under any fencing number, and the remains of earlier calls.

    Nothing staged is no error. Raises TryAgainError if some data could not be removed.
    """
    asset = Path(root)
    left_folders: list[Path] = []
    for home in (staging_home(asset, partitioned=True), staging_home(asset, partitioned=False)):
        for prefix in (STAGING_PREFIX, LINKS_PREFIX):
            for folder in folders_of(home, prefix, run_id, attempt).values():
                remove_safely(folder)
        for discarded in home.glob(f"{DISCARDED_PREFIX}{run_id}-{attempt}-*"):
            remove(discarded)
            if os.path.lexists(discarded):
                left_folders.append(discarded)
    if left_folders:
        raise TryAgainError(f"{left_folders[0]} could not be removed")


def has_remains(root: str, *, run_id: int, attempt: str, fence: int) -> bool:
    """Return whether `publish` with this ``fence`` has left folders that it could not remove."""
    names = (Path(root), run_id, attempt, fence)
    stagings = [staging_path(*names, partitioned=partitioned) for partitioned in (True, False)]
    folders = [*stagings, *map(modes.links_beside, stagings)]
    return any(os.path.lexists(folder) for folder in folders)


def _publish_one(
    asset: Path, staging: Path, path: str, marker: str, mode: str, drop: Sequence[str]
) -> Facts:
    refuse_path_outside(path)
    refuse_links(asset, path, staging, modes.links_beside(staging))
    source, target = staging / path, asset / path
    if (target / marker).exists():
        modes.keep_as_version(
            asset, path, staging
        )  # the process that published it may have ended before
        return _facts(asset, path)
    modes.unpublish_version(asset, path, source, staging, marker)
    if not (source / marker).exists():
        raise StagingLostError(f"{target} was not published, and {source} is missing")
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
        raise StagingLostError(f"another process took {source} during the publication") from error
    return _facts(asset, path)


def _facts(asset: Path, path: str) -> Facts:
    version = version_of(asset, path)
    return {} if version is None else {"version": version}


def refuse_path_outside(path: str) -> None:
    """Raise StorageError for a path that leads out of the asset's folder."""
    folder_names = Path(path).parts
    if (
        Path(path).is_absolute()
        or ".." in folder_names
        or (path != UNPARTITIONED and not folder_names)
    ):
        raise StorageError(f"a partition's folder lies inside its asset, not at {path!r}")


def _refuse_foreign_folders(target: Path) -> None:
    """Raise StorageError if a partition's folder contains a folder, which would
    be lost with the old data.
    """
    try:
        with os.scandir(target) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except FileNotFoundError:
        return
    trials = {name for name in names if name.startswith(TRIAL_PREFIX)}
    for name in trials:  # of a process that was killed: no data
        remove(target / name)
    foreign = next((name for name in names if name not in trials), None)
    if foreign is not None:
        raise StorageError(
            f"{target} is not replaced, because it holds the folder {foreign!r}, which is no part"
            " of this partition; give the asset a URI of its own, or move that folder away"
        )


@contextmanager
def lock_asset(asset: Path) -> Iterator[None]:
    """Hold the lock on the folder above an asset, which several assets may
    share, during an exchange.

    The lock keeps two publications from mixing. Every single step is safe without the lock.
    """
    asset.parent.mkdir(parents=True, exist_ok=True)
    with lock(asset.parent, patience=LOCK_PATIENCE_SECONDS):
        yield
