"""The check that data can be published at a location, made before hours of work are spent."""

import mmap
import os
import struct
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from slicewise.storage.exchange import put_in_place
from slicewise.storage.fencing import remove
from slicewise.storage.layout import TRIAL_PREFIX
from slicewise.storage.links import refuse_foreign_root
from slicewise.storage.locking import lock
from slicewise.storage.storage_errors import StorageError, UnfitFileSystemError, UnfitLocationError

_LONGEST_TRIAL_SECONDS = 3600.0

# The most devices that forks tell each other of; others are tried by each fork.
_MOST_SHARED = 512


class _SharedDevices:
    """Numbers of devices in memory that this process shares with forks.

    Forks that write at once may lose a number: the device is then tried once more.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 8 * _MOST_SHARED)

    def _numbers(self) -> tuple[int, ...]:
        # Zero, the number of no device that holds files, marks free places.
        return struct.unpack(f"{_MOST_SHARED}Q", self._memory[:])

    def __contains__(self, device: object) -> bool:
        return device in self._numbers()

    def add(self, device: int) -> None:
        """Add a number, unless there is no room."""
        numbers = self._numbers()
        if 0 in numbers:
            struct.pack_into("Q", self._memory, 8 * numbers.index(0), device)


# Devices on which the trial has succeeded.
_fit: set[int] | _SharedDevices = set()


def share_trials_with_forks() -> None:
    """Let forks of this process know the trials of all other forks.

    For processes whose forks run no user code: user code could call any device fit.
    """
    global _fit
    _fit = _SharedDevices()


def refuse_unfit(root: Path) -> None:
    """Raise UnfitLocationError if no data can be published below ``root``: if the user of this
    process lacks the rights or, as UnfitFileSystemError, if the file system cannot do the steps.

    Two empty folders are exchanged near the location, once for each file system and process; once
    for all forks after `share_trials_with_forks`. A file system that cannot be tried now, for want
    of room, is not refused: publishing reports the problem.
    """
    _refuse_without_rights(root)
    with suppress(OSError):
        folder = _trial_home(root)
        device = folder.stat().st_dev
        if device not in _fit:
            _try(folder)
            _fit.add(device)


def _refuse_without_rights(root: Path) -> None:
    try:
        refuse_foreign_root(root)
    except StorageError as error:
        raise UnfitLocationError(str(error)) from error
    user, folder = os.geteuid(), _nearest(root)
    if not os.access(folder, os.W_OK | os.X_OK):
        reason = f"user {user}, as whom data is published, may not write in {folder}"
        if folder == root:
            raise UnfitLocationError(f"{reason}; chown -R {user} {root} gives it to that user")
        raise UnfitLocationError(
            f"{reason}; create {root} and give it to that user with chown {user}"
        )
    if folder == root and not os.access(root.parent, os.R_OK | os.X_OK):
        raise UnfitLocationError(
            f"user {user}, as whom data is published, may not read {root.parent}, which is locked"
            f" meanwhile; chmod a+rx or chown {user} lets that user do so"
        )


def _nearest(path: Path) -> Path:
    # Not Path.is_dir, which raises for a path that this user may not look at.
    return next(folder for folder in (path, *path.parents) if os.path.isdir(folder))


def _trial_home(root: Path) -> Path:
    """Return the folder of the trial: beside the asset's folder, inside which
    readers would find the trial.

    Inside if the asset's folder is another file system, or if nothing may be written beside it.
    """
    above, asset_folder = _nearest(root.parent), _nearest(root)
    is_same = above.stat().st_dev == asset_folder.stat().st_dev
    return above if is_same and os.access(above, os.W_OK | os.X_OK) else asset_folder


def _try(folder: Path) -> None:
    for old_trial in folder.glob(f"{TRIAL_PREFIX}*"):
        with suppress(OSError):
            if time.time() - old_trial.lstat().st_mtime > _LONGEST_TRIAL_SECONDS:
                remove(old_trial)
    trial = Path(tempfile.mkdtemp(prefix=TRIAL_PREFIX, dir=folder))
    try:
        first, second = trial / "1", trial / "2"
        first.mkdir()
        second.mkdir()
        try:
            put_in_place(first, second)
            with lock(trial, patience=0.0):
                pass
        except UnfitFileSystemError as error:
            raise UnfitFileSystemError(error.what, folder) from error
    finally:
        remove(trial)
