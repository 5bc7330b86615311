"""The users that user code runs as, and the folders of a host for these users and the worker.

Under the worker's own user, user code can read all that the worker can: `/proc` shows the worker's
environment.
"""

import logging
import os
import pwd
from collections.abc import Iterable, Iterator
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from assets_app.catalogue.loading import user_code_environment
from slicewise.process import own_folders
from slicewise.process.reachability import UntriedError, first_closed_path
from slicewise.process.users import user_named
from slicewise.runner.slot_users import SlotUsers

log = logging.getLogger(__name__)

_HIGHEST_USER = 2**32 - 3
_MOST_USERS = 10_000
_SUBORDINATE_USERS = Path("/etc/subuid")


def runner_user() -> tuple[int, int] | None:
    """Return user and group of the setting SLICEWISE_RUNNER_USER.

    Returns None if user code runs as the worker's own user. Raises ImproperlyConfigured if the host
    has no such user, or the worker may not become that user.
    """
    name: str = settings.RUNNER_USER
    if not name:
        return None
    user = user_named(name)
    if user is None:
        raise ImproperlyConfigured(
            f"SLICEWISE_RUNNER_USER names {name!r}, and this host has no such user."
        )
    if user.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise ImproperlyConfigured(
            "SLICEWISE_RUNNER_USER needs workers that are started by root: nobody else may start"
            " processes of another user."
        )
    return user.pw_uid, user.pw_gid


def slot_users(slots: int) -> SlotUsers | None:
    """Return the users of the setting SLICEWISE_RUNNER_USERS, one for each run; None without it.

    Raises ImproperlyConfigured for a range that is not usable, or has too few users for the slots.
    """
    if not settings.RUNNER_USERS:
        return None
    user = runner_user()
    if user is None:
        raise ImproperlyConfigured(
            "SLICEWISE_RUNNER_USERS needs workers that are started by root, and another user in"
            " SLICEWISE_RUNNER_USER: its group is that of all runs."
        )
    uids = _range(settings.RUNNER_USERS)
    if uids[0] == 0 or uids[-1] > _HIGHEST_USER:
        raise ImproperlyConfigured(
            f"SLICEWISE_RUNNER_USERS is {settings.RUNNER_USERS}; users are from 1 to"
            f" {_HIGHEST_USER}."
        )
    named = [account.pw_name for account in pwd.getpwall() if account.pw_uid in uids]
    named += [
        name
        for name, user_range in _subordinate_users()
        if user_range and _overlap(user_range, uids)
    ]
    if named:
        raise ImproperlyConfigured(
            f"SLICEWISE_RUNNER_USERS is {settings.RUNNER_USERS}, and {named[0]!r} of this host has"
            " some of these: all processes of such users are ended with their runs, so choose"
            " numbers that nobody has."
        )
    if len(uids) < slots:
        raise ImproperlyConfigured(
            f"SLICEWISE_RUNNER_USERS has {len(uids)} users, and this worker has {slots} slots: each"
            " run needs a user of its own, so give the range as many as all workers of this host"
            " have slots."
        )
    return SlotUsers(uids, user[1], own_folder("slots", mode=0o711))


def _subordinate_users() -> Iterator[tuple[str, range]]:
    """Yield the user numbers of people's own containers on this host, by name of the owner."""
    try:
        lines = _SUBORDINATE_USERS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        name, *numbers = line.split(":")
        if len(numbers) == 2 and all(number.isdecimal() for number in numbers):
            first, count = map(int, numbers)
            yield name, range(first, first + count)


def _overlap(first: range, second: range) -> bool:
    return first[0] <= second[-1] and second[0] <= first[-1]


def _range(text: str) -> range:
    first, separator, last = text.partition("-")
    numbers = [number.strip() for number in (first, last)]
    if not separator or not all(number.isascii() and number.isdecimal() for number in numbers):
        raise ImproperlyConfigured(
            f"SLICEWISE_RUNNER_USERS is a range of numbers of users, 20000-20031, not {text!r}."
        )
    users = range(int(numbers[0]), int(numbers[1]) + 1)
    if not users or len(users) > _MOST_USERS:
        raise ImproperlyConfigured(
            f"SLICEWISE_RUNNER_USERS has from 1 to {_MOST_USERS:,} users, and {text!r} has"
            f" {len(users):,}."
        )
    return users


def refuse_closed_python(users: Iterable[tuple[int, int]]) -> None:
    """Raise ImproperlyConfigured if a user cannot start this Python and import the SDK."""
    for user in users:
        try:
            closed_path = first_closed_path(user, env=user_code_environment())
        except UntriedError as error:
            raise ImproperlyConfigured(
                f"Whether the user {user[0]} can use Python was not found out: {error}."
            ) from error
        if closed_path:
            raise ImproperlyConfigured(
                f"User code is to run as the user {user[0]}, who cannot use {closed_path}."
                " Install Python and Slicewise in folders that all users can enter."
            )


def own_folder(name: str, *, mode: int = 0o755) -> Path:
    """Create a folder of this host for the worker alone, and return its path.

    User code may not write to the folder, unless user code has the worker's user. Raises
    ImproperlyConfigured if another user may have changed the folder.
    """
    return _create_folder(name, None, mode)


def shared_folder(name: str) -> Path:
    """Create a folder of this host to which the user of user code may write, and return its path.

    Raises ImproperlyConfigured as `own_folder` does.
    """
    user = runner_user()
    return _create_folder(name if user is None else f"{name}-{user[0]}", user, 0o700)


def _create_folder(name: str, user: tuple[int, int] | None, mode: int) -> Path:
    data: Path = settings.DATA_FOLDER
    runner = runner_user()
    try:
        if runner is not None:
            own_folders.make_passable(data)
        data.mkdir(mode=0o711, parents=True, exist_ok=True)
        if runner is not None and own_folders.secure_folder(data, back_from=runner[0]):
            log.warning("data folder taken back from the runners' user", extra={"folder": data})
        return own_folders.ensure_folder(data / name, user=user, mode=mode)
    except own_folders.ForeignFolderError as error:
        raise ImproperlyConfigured(str(error)) from error
