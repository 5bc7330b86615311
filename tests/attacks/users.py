"""Warm parents whose runners have users of their own, as real as this machine allows."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slicewise.process.own_folders import ensure_folder
from slicewise.runner.parent_client import WarmParent
from slicewise.runner.slot_users import SlotUsers

# Of this process of the tests alone: nothing else on the machine is to have these users.
FIRST_USER = 1_000_000 + os.getpid() * 16
GROUP = FIRST_USER


def other_user() -> tuple[int, int] | None:
    """User and group for runners; None for who is not root and cannot choose."""
    return (FIRST_USER, GROUP) if os.geteuid() == 0 else None


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that other users may pass through, as they may not those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="slicewise-apart-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def environment() -> dict[str, str]:
    """The environment of a warm parent."""
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def slot_users(folder: Path, count: int = 2) -> SlotUsers:
    """Users of which each run has one by itself."""
    slots = ensure_folder(folder / "slots", mode=0o711)
    return SlotUsers(range(FIRST_USER + 1, FIRST_USER + 1 + count), GROUP, slots)


@contextmanager
def parent_of_each(folder: Path, count: int = 2) -> Iterator[WarmParent]:
    """A warm parent of runners that have a user each, of so many."""
    users = slot_users(folder, count)
    parent = WarmParent(
        env=environment(), cache=folder / "cache", user=(FIRST_USER, GROUP), slot_users=users
    )
    parent.start()
    try:
        yield parent
    finally:
        parent.close()


@contextmanager
def parent_of_others(folder: Path) -> Iterator[WarmParent]:
    """A warm parent of runners that are not root, and that have one user."""
    parent = WarmParent(env=environment(), cache=folder / "cache", user=other_user())
    parent.start()
    try:
        yield parent
    finally:
        parent.close()
