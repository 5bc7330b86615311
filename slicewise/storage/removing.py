"""The removal of the data of partitions that an asset no longer has."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from slicewise.storage.fencing import remove
from slicewise.storage.layout import (
    DISCARDED_PREFIX,
    UNPARTITIONED,
    versions_home,
    versions_of,
)
from slicewise.storage.links import find_link, is_version_link
from slicewise.storage.publishing import lock_asset, refuse_path_outside

WRITTEN_SINCE = "the data is not the data of the run on record"
IS_LINK = "the path contains a link, and links are not followed"
_REMOVED_PREFIX = f"{DISCARDED_PREFIX}removed-"


class KeptError(Exception):
    """The data of a partition is not removed; the message gives the reason."""


def remove_partitions(root: str, markers: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Remove the data of partitions, given as folders below ``root`` with markers; return the
    reasons why data was kept, by path.

    Only data with one of the markers is removed, that is, data of a run on record. Of a folder that
    contains folders only the files are removed. Missing data is no error.
    """
    asset, reasons = Path(root), dict[str, str]()
    discarded: list[Path] = []
    with lock_asset(asset):
        for path, names in markers.items():
            try:
                discarded += _take_away(asset, path, names)
            except KeptError as error:
                reasons[path] = str(error)
    # Removing can take long, and needs no lock. A call that was killed has left its folders.
    for folder in {*discarded, *asset.glob(f"{_REMOVED_PREFIX}*")}:
        remove(folder)
    return reasons


def _take_away(asset: Path, path: str, markers: Sequence[str]) -> Iterator[Path]:
    """Take the data of one partition from readers; yield the folders that can be removed."""
    refuse_path_outside(path)
    target = asset / path
    _refuse_links(asset, target.parent if path != UNPARTITIONED else target)
    if target.is_symlink():
        if not is_version_link(asset, path):
            raise KeptError(IS_LINK)
        _refuse_unmarked(target, markers)
        os.unlink(target)
    elif target.is_dir():
        yield from _take_folder(asset, target, markers)
    elif target.exists():
        raise KeptError("the path is no folder")
    if path != UNPARTITIONED:
        yield from _take_versions(asset, path, markers)


def _take_folder(asset: Path, target: Path, markers: Sequence[str]) -> Iterator[Path]:
    with os.scandir(target) as entries:
        listed = list(entries)
    files = [entry.name for entry in listed if entry.is_file(follow_symlinks=False)]
    if not files:
        return
    _refuse_unmarked(target, markers)
    if target != asset and len(files) == len(listed):
        renamed = asset / f"{_REMOVED_PREFIX}{uuid4().hex}"
        os.rename(target, renamed)  # in one step: no reader sees half of the data
        yield renamed
        return
    # Folders inside belong to partitions of another partitioning. The markers are removed last:
    # until then the same call can be made again.
    for name in sorted(files, key=lambda name: name in markers):
        os.unlink(target / name)


def _take_versions(asset: Path, path: str, markers: Sequence[str]) -> Iterator[Path]:
    home = versions_of(asset, path)
    if not home.is_dir():
        return
    _refuse_links(versions_home(asset, partitioned=True), home)
    numbered = [folder for folder in home.iterdir() if folder.name.isdecimal()]
    if any((folder / marker).exists() for folder in numbered for marker in markers):
        for folder in numbered:
            renamed = asset / f"{_REMOVED_PREFIX}{uuid4().hex}"
            os.rename(folder, renamed)
            yield renamed


def _refuse_links(first: Path, last: Path) -> None:
    """Raise KeptError where a folder from ``first`` down to ``last`` is a link."""
    if find_link(first, last) is not None:
        raise KeptError(IS_LINK)


def _refuse_unmarked(folder: Path, markers: Sequence[str]) -> None:
    if not any((folder / marker).exists() for marker in markers):
        raise KeptError(WRITTEN_SINCE)
