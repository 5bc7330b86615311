"""Warm parents whose runners have users of their own, as far as this machine allows other users."""

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
    """Return user and group for runners; None where the process is not root and cannot choose."""
    return (FIRST_USER, GROUP) if os.geteuid() == 0 else None


@contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that other users may pass through; pytest's folders are closed to them."""
    folder = Path(tempfile.mkdtemp(prefix="slicewise-apart-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def environment() -> dict[str, str]:
    """Return the environment of a warm parent."""
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def slot_users(folder: Path, count: int = 2) -> SlotUsers:
    """Return users of which each run has one by itself."""
    slots = ensure_folder(folder / "slots", mode=0o711)
    return SlotUsers(range(FIRST_USER + 1, FIRST_USER + 1 + count), GROUP, slots)


@contextmanager
def parent_of_each(folder: Path, count: int = 2) -> Iterator[WarmParent]:
    """Start a warm parent whose runners have a user each, of so many users."""
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
    """Start a warm parent whose runners are not root, and share one user."""
    parent = WarmParent(env=environment(), cache=folder / "cache", user=other_user())
    parent.start()
    try:
        yield parent
    finally:
        parent.close()
