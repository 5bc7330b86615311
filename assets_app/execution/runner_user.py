"""As whom user code runs, and the folders of a host that are its own.

Under the worker's own user it can read what that one can: `/proc` shows the worker's environment.
"""

import os
import pwd
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


def runner_user() -> tuple[int, int] | None:
    """Return user and group of the setting SLICEWISE_RUNNER_USER; None where user code runs as the
    worker's own user. Raises ImproperlyConfigured without such a user, or without the right to
    become it.
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


def own_folder(name: str) -> Path:
    """Return a folder of this host that user code may write to, owned by the user it runs as."""
    user = runner_user()
    folder: Path = settings.DATA_FOLDER / (name if user is None else f"{name}-{user[0]}")
    folder.mkdir(parents=True, exist_ok=True)
    if user is not None:
        os.chown(folder, *user)
    return folder
