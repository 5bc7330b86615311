"""Who may publish what an attempt has staged: the process with the highest fencing number.

The number is part of the names of the attempt's folders, and whoever takes the attempt over has a
higher one than those before. It renames the folders to bear it, so that the paths by which an
earlier holder would go on are gone. Nobody renames a folder from a higher number to a lower one.
"""

import os
import shutil
from pathlib import Path
from uuid import uuid4

from slicewise.storage.errors import StagingLostError
from slicewise.storage.layout import DISCARDED_PREFIX, LINKS_PREFIX, STAGING_PREFIX


def take_over(home: Path, run_id: int, attempt: str, fence: int) -> Path:
    """Rename the attempt's folders to bear ``fence``; return the path of the staging folder, even
    if there is none.

    Raises StagingLostError where they bear a higher number.
    """
    # In this order: a process that has moved its staging folder away has made its folder of links
    # before, and one that finds its staging folder gone moves nothing any more.
    mine = _take(home, STAGING_PREFIX, run_id, attempt, fence)
    _take(home, LINKS_PREFIX, run_id, attempt, fence)
    return mine


def folders_of(home: Path, prefix: str, run_id: int, attempt: str) -> dict[int, Path]:
    """Return the attempt's folders of one kind, by their fencing numbers."""
    name = f"{prefix}{run_id}-{attempt}-"
    return {_number(path.name.removeprefix(name)): path for path in home.glob(f"{name}*")}


def remove_safely(folder: Path) -> None:
    """Remove a folder under another name, by which a write that is still under way on a server
    neither finds it nor fills it again.
    """
    name = folder.name.removeprefix(STAGING_PREFIX).removeprefix(LINKS_PREFIX)
    gone = folder.with_name(f"{DISCARDED_PREFIX}{name}-{uuid4().hex[:8]}")
    try:
        os.rename(folder, gone)
    except FileNotFoundError:
        return  # another process is removing it
    remove(gone)


def remove(folder: Path) -> None:
    """Remove a folder of old or unwanted data, as far as possible: a later sweep tries again."""
    shutil.rmtree(folder, ignore_errors=True)


def _take(home: Path, prefix: str, run_id: int, attempt: str, fence: int) -> Path:
    mine = home / f"{prefix}{run_id}-{attempt}-{fence}"
    while True:
        folders = folders_of(home, prefix, run_id, attempt)
        highest = max(folders, default=fence)
        if highest > fence:
            raise StagingLostError(
                f"another worker has taken over what was staged: {folders[highest]}"
            )
        lower = sorted(number for number in folders if number < fence)
        if fence not in folders and lower:
            try:
                os.rename(folders[lower[-1]], mine)
            except FileNotFoundError:
                continue  # published by its holder, or taken over, in this very moment
            lower.pop()
        for number in lower:
            # Made anew by a write that went on under the name that it had been told.
            remove_safely(folders[number])
        return mine


def _number(text: str) -> int:
    """Return the number in a folder's name; 0 for names without one, which older releases gave."""
    return int(text) if text.isdecimal() else 0
