"""The user under whom an embedded stack runs code of assets when root starts the stack.

Standard library only, as `slicewise doctor` works before anything is installed.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slicewise_server.stack import machine
from slicewise_server.stack.errors import StackError
from slicewise_server.stack.process import Account
from slicewise_server.stack.server_account import server_account

NAME = "nobody"
# Before each of the trials.
_PAUSES_SECONDS = (0.0, 0.5, 1.0)


class UntriedAccountError(StackError):
    """The trial of the user of code failed for a reason that may pass."""


@dataclass(frozen=True, kw_only=True)
class CodeAccount:
    """The user of code of assets: `account`, or the stack's own user if `account` is None.

    `obstacle` is a clause that says why root's stack has no other user for code.
    """

    account: Account | None = None
    obstacle: str = ""


def chosen_account(env: Mapping[str, str]) -> Account | None:
    """Return the other user that SLICEWISE_RUNNER_USER names on a stack of root's, else None.

    A user that this host does not have is None too: workers refuse such a setting themselves.
    None also before Slicewise's packages are installed.
    """
    name = env.get("SLICEWISE_RUNNER_USER", "")
    if os.geteuid() != 0 or not name:
        return None
    if not machine.has_packages():
        return None
    # Not above: `slicewise doctor` reads this module where no package is installed yet.
    from slicewise.process.users import user_named

    entry = user_named(name)
    return None if entry is None or entry.pw_uid == 0 else _account(entry)


def default_account(env: Mapping[str, str], data: Path) -> CodeAccount:
    """Return the user of code for a stack on the data folder `data`, without asking to change it.

    The user is SLICEWISE_RUNNER_USER, if set. Without the setting, a stack of root
    takes `nobody`, if `nobody` can use Python, Java, Spark and the lake. Raises UntriedAccountError
    if the trial fails for a passing reason: such a failure never gives code the rights of root.
    """
    if os.geteuid() != 0 or env.get("SLICEWISE_RUNNER_USER"):
        return CodeAccount(account=chosen_account(env))
    try:
        account = _account(pwd.getpwnam(NAME))
    except KeyError:
        return CodeAccount(obstacle=f"this machine has no user {NAME}")
    if is_database_account(env, account):
        return CodeAccount(obstacle=f"PostgreSQL runs as {NAME} here, for want of a user daemon")
    if env.get("SPARK_REMOTE"):
        return CodeAccount(obstacle="SPARK_REMOTE names a Spark of another user")
    if obstacle := lake_obstacle(env, data, account) or _closed_path(env, data, account):
        return CodeAccount(obstacle=obstacle)
    return CodeAccount(account=account)


def obstacle_of_named(env: Mapping[str, str], account: Account | None) -> str:
    """Return why the user that SLICEWISE_RUNNER_USER names cannot run code, as a sentence with the
    remedy; empty without an obstacle, and where a trial fails for a reason that may pass.

    Workers refuse such a user too, when they start: the sentence comes before.
    """
    if account is None or not env.get("SLICEWISE_RUNNER_USER"):
        return ""
    try:
        closed_path = _first_closed_path(account, ())
    except UntriedAccountError:
        return ""
    if not closed_path:
        return ""
    return (
        f"SLICEWISE_RUNNER_USER is {account.name}, who cannot use {closed_path}: open the folders"
        " above to all users by `chmod a+x`, install Python and Slicewise elsewhere, or name"
        " another user."
    )


def is_database_account(env: Mapping[str, str], account: Account) -> bool:
    """Return whether the stack's own PostgreSQL runs as the user."""
    server = None if env.get("DATABASE_URL") else server_account()
    return server is not None and server.uid == account.uid


def lake_obstacle(env: Mapping[str, str], data: Path, account: Account) -> str:
    """Return why the account cannot have the stack's own lake, with the remedy, or nothing.

    The reason is a lake that is a link, or a lake with data of root or another user.
    """
    lake = data / "lake"
    if env.get("LAKE") or not os.path.lexists(lake):
        return ""
    if lake.is_symlink():
        return f"{lake} is a link: set LAKE to the folder that it leads to"
    if not lake.is_dir():
        return f"{lake} is no folder: remove it, or set LAKE to a folder"
    owner, contents = lake.lstat().st_uid, [path.lstat().st_uid for path in lake.iterdir()]
    # If each run has a user, the folders inside belong to users of the range.
    if (owner == account.uid and 0 not in contents) or (owner == 0 and not contents):
        return ""
    return f"{lake} holds data of another user: run `chown -R {account.name}: {lake}` once"


def _closed_path(env: Mapping[str, str], data: Path, account: Account) -> str:
    """Return a clause about a path that the account cannot use; empty without such a path."""
    if not machine.has_packages():
        return "the packages of Slicewise are not installed"
    java, spark = machine.find_java(env), machine.find_spark()
    needs = [f"x:{_nearest(data)}"]
    needs += [f"x:{java.binary}"] if java is not None else []
    needs += [f"x:{spark / 'bin' / 'spark-submit'}"] if spark is not None else []
    needs += [f"r:{jar}" for jar in machine.jdbc_jars(env)]
    lake = env.get("LAKE", "").removeprefix("file://")
    # Other schemes are reached by a login, not by a user of this machine.
    needs += [f"w:{_nearest(Path(lake))}"] if lake and "://" not in lake else []
    closed_path = _first_closed_path(account, tuple(needs))
    return f"{account.name} cannot use {closed_path}" if closed_path else ""


def _first_closed_path(account: Account, needs: tuple[str, ...]) -> str:
    """Return the first path that the account cannot use; empty without such a path.

    A failure of the trial may pass soon. Raises UntriedAccountError after some trials.
    """
    # Not above: `slicewise doctor` reads this module where no package is installed yet.
    from slicewise.process.reachability import UntriedError, first_closed_path

    failure = UntriedError()
    for pause_seconds in _PAUSES_SECONDS:
        time.sleep(pause_seconds)
        try:
            return first_closed_path((account.uid, account.gid), needs)
        except UntriedError as error:
            failure = error
    raise UntriedAccountError(
        f"Code of assets is to run as {account.name}, and a trial whether {account.name} can use"
        f" Python failed ({failure}). Start again, or name the user of code in"
        " SLICEWISE_RUNNER_USER: the trial is then omitted."
    ) from failure


def _nearest(path: Path) -> Path:
    """Return the absolute path, or the nearest folder above that exists."""
    absolute = path.absolute()
    return next(folder for folder in (absolute, *absolute.parents) if os.path.lexists(folder))


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)
