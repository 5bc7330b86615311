"""As whom user code runs, and the folders of a host that are its own.

Under the worker's own user it can read what that one can: `/proc` shows the worker's environment.
"""

import logging
import os
import pwd
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from assets_app.catalogue.loading import user_code_environment
from slicewise import own_folders
from slicewise.runner.slot_users import SlotUsers

log = logging.getLogger(__name__)

_HIGHEST_USER = 2**32 - 3
_MOST_USERS = 10_000
_SUBORDINATE_USERS = Path("/etc/subuid")


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


def slot_users(slots: int) -> SlotUsers | None:
    """The users of the setting SLICEWISE_RUNNER_USERS, of which each run has one by itself; None
    without it. Raises ImproperlyConfigured for a range that cannot be had by so many slots.
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
    named = [found.pw_name for found in pwd.getpwall() if found.pw_uid in uids]
    named += [name for name, others in _subordinate() if others and _meet(others, uids)]
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


def _subordinate() -> Iterator[tuple[str, range]]:
    """The numbers that people's own containers have on this host, and whose they are."""
    try:
        lines = _SUBORDINATE_USERS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        name, *numbers = line.split(":")
        if len(numbers) == 2 and all(number.isdecimal() for number in numbers):
            first, count = map(int, numbers)
            yield name, range(first, first + count)


def _meet(one: range, other: range) -> bool:
    return one[0] <= other[-1] and other[0] <= one[-1]


def _range(text: str) -> range:
    first, separator, last = text.partition("-")
    numbers = [part.strip() for part in (first, last)]
    if not separator or not all(part.isascii() and part.isdecimal() for part in numbers):
        raise ImproperlyConfigured(
            f"SLICEWISE_RUNNER_USERS is a range of numbers of users, 20000-20031, not {text!r}."
        )
    found = range(int(numbers[0]), int(numbers[1]) + 1)
    if not found or len(found) > _MOST_USERS:
        raise ImproperlyConfigured(
            f"SLICEWISE_RUNNER_USERS has from 1 to {_MOST_USERS:,} users, and {text!r} has"
            f" {len(found):,}."
        )
    return found


def refuse_closed_python(users: Iterable[tuple[int, int]]) -> None:
    """Raise ImproperlyConfigured where the users could not start this Python and import the SDK."""
    for uid, gid in users:
        command = [sys.executable, "-c", "import slicewise"]
        try:
            subprocess.run(
                command, user=uid, group=gid, extra_groups=[], check=True, capture_output=True,
                env=user_code_environment(), cwd=Path(own_folders.__file__).parents[1],
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            raise ImproperlyConfigured(
                f"User code is to run as the user {uid}, who cannot use {sys.executable}: {error}."
                " Install Python and Slicewise where everybody may pass."
            ) from error


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
