"""As whom user code runs, and the folders of a host that are its own.

Under the worker's own user it can read what that one can: `/proc` shows the worker's environment.
"""

import logging
import os
import pwd
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from slicewise import own_folders

log = logging.getLogger(__name__)


def runner_user() -> tuple[int, int] | None:
    """User and group of the setting SLICEWISE_RUNNER_USER; None where user code is the worker's
    own user. Raises ImproperlyConfigured where there is no such user, or no right to become it.
    """
    name: str = settings.RUNNER_USER
    if not name:
        return None
    try:
        found = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except KeyError:
        raise ImproperlyConfigured(
            f"SLICEWISE_RUNNER_USER names {name!r}, and this host has no such user."
        ) from None
    if found.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise ImproperlyConfigured(
            "SLICEWISE_RUNNER_USER needs workers that are started by root: nobody else may start"
            " processes of another user."
        )
    return found.pw_uid, found.pw_gid


def own_folder(name: str, *, mode: int = 0o755) -> Path:
    """A folder of this host that is the worker's own: user code may not write to it, but where it
    has the worker's user. Raises ImproperlyConfigured where another user may have a hand in it.
    """
    return _made(name, None, mode)


def shared_folder(name: str) -> Path:
    """A folder of this host that user code may write to, there for whoever it runs as. Raises
    ImproperlyConfigured as `own_folder` does.
    """
    user = runner_user()
    return _made(name if user is None else f"{name}-{user[0]}", user, 0o700)


def _made(name: str, user: tuple[int, int] | None, mode: int) -> Path:
    data: Path = settings.DATA_FOLDER
    runner = runner_user()
    data.mkdir(mode=0o711, parents=True, exist_ok=True)
    try:
        if runner is not None and own_folders.take_folder(data, back_from=runner[0]):
            log.warning("data folder taken back from the runners' user", extra={"folder": data})
        return own_folders.own_folder(data / name, user=user, mode=mode)
    except own_folders.ForeignFolderError as error:
        raise ImproperlyConfigured(str(error)) from error
