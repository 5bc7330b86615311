"""Whether a file system can do what publishing takes; asked before hours of work are spent."""

import tempfile
from contextlib import suppress
from pathlib import Path

from slicewise.storage.errors import UnfitFileSystemError
from slicewise.storage.exchange import put_in_place
from slicewise.storage.fencing import remove
from slicewise.storage.locking import lock

_TRIAL_PREFIX = "_slicewise-trial-"

# Devices on which the trial has succeeded.
_fit: set[int] = set()


def refuse_unfit(root: Path) -> None:
    """Raise UnfitFileSystemError where nothing can be published below ``root``.

    Two empty folders are exchanged in the nearest folder that is there, once for each file system
    and process. A place that cannot be tried now, for want of a permission or of room, is not
    refused: publishing says what is wrong with it.
    """
    folder = next(path for path in (root, *root.parents) if path.is_dir())
    with suppress(OSError):
        device = folder.stat().st_dev
        if device not in _fit:
            _try(folder)
            _fit.add(device)


def _try(folder: Path) -> None:
    trial = Path(tempfile.mkdtemp(prefix=_TRIAL_PREFIX, dir=folder))
    try:
        one, other = trial / "1", trial / "2"
        one.mkdir()
        other.mkdir()
        try:
            put_in_place(one, other)
            with lock(trial, patience=0.0):
                pass
        except UnfitFileSystemError as error:
            raise UnfitFileSystemError(error.what, folder) from error
    finally:
        remove(trial)
