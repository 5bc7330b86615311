"""The storages of assets, for processes with Django.

Runs write the folders in which data is published, and may put links there. A process of root lets a
helper process, which has the rights of runs, work on such data.
"""

import errno
import os
from functools import cache
from typing import Any

from django.conf import settings

from assets_app.catalogue.loading import user_code_environment
from assets_app.execution.data.connections import connection_of
from assets_app.execution.data.runner_user import runner_user
from slicewise.data_helper.client import DataHelper
from slicewise.data_helper.forwarding import forwarded
from slicewise.io import Storage, StorageLocation, storage_at


def storage_of(uri: str, **facts: Any) -> Storage:
    """Return the storage at a canonical URI, with this host's connection for the location.

    ``facts`` are fields of a `StorageLocation`. Raises NoStorageError and ConnectionsError.
    """
    storage = storage_at(StorageLocation(uri=uri, connection=connection_of(uri), **facts))
    user = _other_user()
    if user is None or storage.is_remote:
        return storage
    return forwarded(storage, _helper(*user))


def advice(error: OSError) -> str:
    """Return advice where the user of runs lacks the permission to write; otherwise an
    empty text.
    """
    user = _other_user() if error.errno in (errno.EACCES, errno.EPERM) else None
    if user is None:
        return ""
    return (
        f" (data is published as user {user[0]}, as SLICEWISE_RUNNER_USER says; give data that an"
        " earlier release has published as root to this user once, with chown -R)"
    )


def _other_user() -> tuple[int, int] | None:
    # Only root may have another user, and a process that is not root needs none.
    return runner_user() if os.geteuid() == 0 else None


@cache
def _helper(uid: int, gid: int) -> DataHelper:
    """Return this process's helper of a user, which is started with its first request."""
    # Runs with a user each share folders by their group, and so does published data.
    umask = 0o002 if settings.RUNNER_USERS else None
    return DataHelper(env=user_code_environment(), user=(uid, gid), umask=umask)
