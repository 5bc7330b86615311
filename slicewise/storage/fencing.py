"""The right to publish an attempt's staged data, held by the process with
the highest fencing number.

The number is part of the names of the attempt's folders, and a process that takes the attempt over
has a higher number than all holders before. The process renames the folders to its number, so that
the paths by which an earlier holder would go on are gone. No process renames a folder from a higher
number to a lower one.
"""

import os
from pathlib import Path
from uuid import uuid4

from slicewise.process.removal import remove_folder
from slicewise.storage.layout import DISCARDED_PREFIX, LINKS_PREFIX, STAGING_PREFIX
from slicewise.storage.storage_errors import StagingLostError


def take_over(home: Path, run_id: int, attempt: str, fence: int) -> Path:
    """Rename the attempt's folders to the number ``fence``; return the path of the staging
    folder, even if there is none.

    Raises StagingLostError if the folders have a higher number.
    """
    # In this order: a process makes its folder of links before it moves its staging folder away,
    # and a process that finds its staging folder gone moves nothing any more.
    staging = _take(home, STAGING_PREFIX, run_id, attempt, fence)
    _take(home, LINKS_PREFIX, run_id, attempt, fence)
    return staging


def folders_of(home: Path, prefix: str, run_id: int, attempt: str) -> dict[int, Path]:
    """Return the attempt's folders with this prefix, by fencing number."""
    name = f"{prefix}{run_id}-{attempt}-"
    return {_number(path.name.removeprefix(name)): path for path in home.glob(f"{name}*")}


def remove_safely(folder: Path) -> None:
    """Rename and remove a folder, so that a write that is still under way on a server neither finds
    the folder nor fills it again.
    """
    name = folder.name.removeprefix(STAGING_PREFIX).removeprefix(LINKS_PREFIX)
    discarded = folder.with_name(f"{DISCARDED_PREFIX}{name}-{uuid4().hex[:8]}")
    try:
        os.rename(folder, discarded)
    except FileNotFoundError:
        return  # another process is removing it
    remove(discarded)


def remove(folder: Path) -> None:
    """Remove a folder of old or unwanted data, as far as possible.

    `has_remains` tells of the rest, and `discard` tries again.
    """
    remove_folder(folder)


def _take(home: Path, prefix: str, run_id: int, attempt: str, fence: int) -> Path:
    own_folder = home / f"{prefix}{run_id}-{attempt}-{fence}"
    while True:
        folders = folders_of(home, prefix, run_id, attempt)
        highest = max(folders, default=fence)
        if highest > fence:
            raise StagingLostError(
                f"another worker has taken over the staged data: {folders[highest]}"
            )
        lower = sorted(number for number in folders if number < fence)
        if fence not in folders and lower:
            try:
                os.rename(folders[lower[-1]], own_folder)
            except FileNotFoundError:
                continue  # published by the holder, or taken over, at this moment
            lower.pop()
        for number in lower:
            # Created again by a write that went on under the old name.
            remove_safely(folders[number])
        return own_folder


def _number(text: str) -> int:
    """Return the number in a folder's name; 0 for names of older releases, without a number."""
    return int(text) if text.isdecimal() else 0
