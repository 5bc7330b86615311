"""Users for single runs: numbers of a range that need no names, shared by all workers of a host.

The process that holds the lock on a number's file has the number. The kernel frees the lock with
that process, so the remains of a crash, processes and files, are ended and removed by the process
that takes the number next, before any program runs under it.
"""

import fcntl
import os
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from slicewise.process.own_folders import ensure_folder
from slicewise.process.removal import remove_paths
from slicewise.runner.user_remains import remove_remains

_IN_USE = b"1"

EndAll = Callable[[tuple[int, int]], bool]
"""Ends all processes of a user; returns whether none is left."""


class NoFreeUserError(Exception):
    """All users of the range are in use on this host, or have processes that do not end."""


class SlotUsers:
    """The users of a range; safe to use from several threads and processes.

    ``folder`` is a folder of the worker's own that other users may pass through. All users of the
    range have the group ``gid``.
    """

    def __init__(self, uids: Sequence[int], gid: int, folder: Path) -> None:
        self._uids, self._gid, self._folder = uids, gid, folder
        self._turn = count()

    @property
    def first(self) -> tuple[int, int]:
        """The first of the users, and the group of all users."""
        return self._uids[0], self._gid

    def claim(self, end_all: EndAll) -> "UserClaim":
        """Claim a user that no other run has, with an empty home. Raises NoFreeUserError."""
        first = next(self._turn)
        for offset in range(len(self._uids)):
            uid = self._uids[(first + offset) % len(self._uids)]
            claim = self._claim(uid, end_all)
            if claim is not None:
                return claim
        raise NoFreeUserError(
            f"none of the {len(self._uids)} users of SLICEWISE_RUNNER_USERS is free on this host:"
            " name as many users as all workers of the host have slots"
        )

    def _claim(self, uid: int, end_all: EndAll) -> "UserClaim | None":
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(self._folder / f"{uid}.lock", flags, 0o600)
        claim = UserClaim((uid, self._gid), self._folder / str(uid), lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if claim.begin(end_all):
                return claim
        except BlockingIOError:
            pass
        except BaseException:
            claim.let_go()
            raise
        claim.let_go()
        return None


class UserClaim:
    """The claim of one run to a user."""

    def __init__(self, user: tuple[int, int], home: Path, lock: int) -> None:
        self.user, self.home = user, home
        # A file and no descriptor: a file without references is closed.
        self._lock = os.fdopen(lock, "r+b", buffering=0)

    def begin(self, end_all: EndAll) -> bool:
        """Create the home, once nothing is left of an earlier run; return whether no process
        is left.
        """
        if self._lock.read(1) or os.path.lexists(self.home):
            if not end_all(self.user):
                return False
            self._remove_files()
        self._lock.seek(0)
        self._lock.write(_IN_USE)
        ensure_folder(self.home, user=self.user, mode=0o700)
        return True

    def release(self, *, is_clean: bool) -> None:
        """Release the user. ``is_clean`` says that no process of the user is left."""
        if self._lock.closed:
            return
        try:
            if is_clean:
                self._remove_files()
                self._lock.truncate(0)
        finally:
            self.let_go()

    def abandon(self) -> None:
        """Release a user that turned out to have processes of another program, which stay."""
        try:
            self.home.rmdir()
            self._lock.truncate(0)
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Release the user as it is: the next claim removes the remains."""
        self._lock.close()

    def _remove_files(self) -> None:
        remove_remains(self.user)
        if remove_paths([str(self.home)]):
            raise OSError(f"{self.home} was not removed")
