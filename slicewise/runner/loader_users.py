"""The users under whom root has definition files loaded: each load has a user that no other load of
the host has, so that a load reaches no other load.
"""

import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from slicewise.process.own_folders import ensure_folder
from slicewise.process.reachability import UntriedError, first_closed_path
from slicewise.runner.processes import has_processes
from slicewise.runner.run_resources import RunResources
from slicewise.runner.slot_users import EndAll, NoFreeUserError, SlotUsers, UserClaim

log = logging.getLogger(__name__)

# Numbers that systemd and Debian do not assign. Not `nobody`: runs may have that user. Not 65532:
# processes of many containers have that user.
LOADER_USERS = range(65_520, 65_532)
_GROUP = 65_533
_FIRST = (LOADER_USERS[0], _GROUP)
_FOLDER_NAME = "slicewise-loaders"
# Loads of all servers of a host share the users, so the folder with the locks is the host's.
_HOST_FOLDER = Path("/run")
_PAUSE_SECONDS = 0.2


@dataclass(slots=True)
class LoaderUser:
    """The user of one load."""

    user: tuple[int, int] | None
    """User and group; None for the server's own user."""
    is_clean: bool = True
    """Whether the user has no process."""


@contextmanager
def loader_user(end_all: EndAll, seconds: float) -> Iterator[LoaderUser]:
    """Give a load a user of its own if this process is root, and release the user afterwards.

    Ordinary users load as themselves, and so does root if the other users cannot use Python. Raises
    UntriedError while that cannot be tried: a passing failure gives no file root's rights. Raises
    NoFreeUserError if no user becomes free in so many seconds.
    """
    claim = _claimed(end_all, seconds) if has_loader_users() else None
    owner = LoaderUser(None if claim is None else claim.user)
    try:
        yield owner
    finally:
        RunResources(claim).release(is_user_gone=owner.is_clean)


def has_loader_users() -> bool:
    """Return whether files are loaded under other users than the server's. Raises UntriedError."""
    return os.geteuid() == 0 and is_python_open_to_loaders()


@cache
def is_python_open_to_loaders() -> bool:
    """Return whether the users of loads can use this Python and the SDK; log once if not.

    Raises UntriedError while that cannot be tried. Then the next call tries again.
    """
    try:
        closed_path = first_closed_path(_FIRST)
    except UntriedError as error:
        raise UntriedError(
            f"a trial of Python as the user {_FIRST[0]} failed ({error}). The next load tries again"
        ) from error
    if closed_path:
        log.warning(
            "definition files are loaded as root, since other users cannot reach Python: install"
            " Python and Slicewise in folders that all users can enter",
            extra={"python": sys.executable, "closed_path": closed_path},
        )
    return not closed_path


def _claimed(end_all: EndAll, seconds: float) -> UserClaim:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return _claim(end_all)
        except NoFreeUserError as error:
            if time.monotonic() > deadline:
                raise NoFreeUserError(
                    f"each of the {len(LOADER_USERS)} users of loads has a load under way on this"
                    " host, or processes of its own"
                ) from error
        time.sleep(_PAUSE_SECONDS)


def _claim(end_all: EndAll) -> UserClaim:
    """Claim a user without processes: all processes of the user are killed after the load, and must
    not be those of another program.
    """
    users, foreign_claims = _users(), []
    try:
        while True:
            claim = users.claim(end_all)
            if not has_processes(claim.user[0]):
                return claim
            # Held until another user is found, which would else be this one again.
            foreign_claims.append(claim)
    finally:
        for foreign_claim in foreign_claims:
            foreign_claim.abandon()


@cache
def _users() -> SlotUsers:
    try:
        folder = ensure_folder(_HOST_FOLDER / _FOLDER_NAME, mode=0o711)
    except OSError:  # a read-only system
        folder = ensure_folder(Path(tempfile.gettempdir(), _FOLDER_NAME), mode=0o711)
    return SlotUsers(LOADER_USERS, _GROUP, folder)
