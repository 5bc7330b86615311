"""A listing of folders, which shows whether anything in a folder has changed."""

import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path


def listing(folder: Path, *, without: Collection[Path] = ()) -> dict[str, str]:
    """Return for each file and folder its kind, rights and owner, and a hash of its content."""
    return dict(_entries(folder, frozenset(without)))


def _entries(folder: Path, without: frozenset[Path]) -> Iterator[tuple[str, str]]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if Path(place, name) not in without)
        for name in [*folders, *files]:
            path = Path(place, name)
            if path not in without:
                yield str(path), _description(path)


def _description(path: Path) -> str:
    try:
        facts = path.lstat()
        content = ""
        if stat.S_ISLNK(facts.st_mode):
            content = os.readlink(path)
        elif stat.S_ISREG(facts.st_mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return "gone"
    return f"{facts.st_mode:o} {facts.st_uid}:{facts.st_gid} {content}"
