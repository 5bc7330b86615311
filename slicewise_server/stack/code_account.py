"""The user under whom an embedded stack runs code of assets when root starts the stack.

Standard library only, as `slicewise doctor` works before anything is installed.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slicewise_server.stack import machine
from slicewise_server.stack.folder import PROJECT
from slicewise_server.stack.process import Account
from slicewise_server.stack.server_account import server_account

NAME = "nobody"
# Ends with the first path that this user cannot use: r:FILE read, x:PATH execute or enter, w:FOLDER
# write to.
_FIRST_CLOSED_PATH = """
import os, sys
rights = {"r": os.R_OK, "x": os.X_OK, "w": os.R_OK | os.W_OK | os.X_OK}
for word in sys.argv[1:]:
    mode, _, path = word.partition(":")
    if not os.access(path, rights[mode]):
        sys.exit(path)
"""
_TRY_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class CodeAccount:
    """The user of code of assets: `account`, or the stack's own user where that is None.

    `obstacle` is a clause that says why root's stack has no other user for code.
    """

    account: Account | None = None
    obstacle: str = ""


def chosen_account(env: Mapping[str, str]) -> Account | None:
    """Return the other user that SLICEWISE_RUNNER_USER names on a stack of root's, else None.

    A user that this host does not have is None too: workers refuse such a setting by themselves.
    """
    name = env.get("SLICEWISE_RUNNER_USER", "")
    if os.geteuid() != 0 or not name:
        return None
    try:
        entry = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except KeyError:
        return None
    return _account(entry) if entry.pw_uid != 0 else None


def default_account(env: Mapping[str, str], data: Path) -> CodeAccount:
    """Return the user of code for a stack on the data folder `data`, without asking to change it.

    That is the user of SLICEWISE_RUNNER_USER where it is set. Without the setting root's stack
    takes `nobody`, if `nobody` can use Python, Java, Spark and the lake.
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


def is_database_account(env: Mapping[str, str], account: Account) -> bool:
    """Return whether the stack's own PostgreSQL runs as this user."""
    server = None if env.get("DATABASE_URL") else server_account()
    return server is not None and server.uid == account.uid


def lake_obstacle(env: Mapping[str, str], data: Path, account: Account) -> str:
    """Return why the account cannot have the stack's own lake, with the mend; empty if it can.

    The lake is a link, or it has data that root or another user wrote before.
    """
    lake = data / "lake"
    if env.get("LAKE") or not os.path.lexists(lake):
        return ""
    if lake.is_symlink():
        return f"{lake} is a link: set LAKE to the folder that it leads to"
    owner, contents = lake.lstat().st_uid, [path.lstat().st_uid for path in lake.iterdir()]
    # Where each run has a user of its own, folders inside belong to users of the range.
    if (owner == account.uid and 0 not in contents) or (owner == 0 and not contents):
        return ""
    return f"{lake} holds data of another user: run `chown -R {account.name}: {lake}` once"


def _closed_path(env: Mapping[str, str], data: Path, account: Account) -> str:
    """Return which path the account cannot use, as a clause; empty where it can use all."""
    java, spark = machine.find_java(env), machine.find_spark()
    words = [f"r:{PROJECT / 'slicewise' / '__init__.py'}", f"x:{_nearest(data)}"]
    if (package := machine.package_folder("pendulum")) is not None:
        words.append(f"r:{package / '__init__.py'}")
    words += [f"x:{java.binary}"] if java is not None else []
    words += [f"x:{spark / 'bin' / 'spark-submit'}"] if spark is not None else []
    words += [f"r:{jar}" for jar in machine.jdbc_jars(env)]
    lake = env.get("LAKE", "").removeprefix("file://")
    # Other schemes are reached by a login, not by a user of this machine.
    words += [f"w:{_nearest(Path(lake))}"] if lake and "://" not in lake else []
    try:
        trial = subprocess.run(
            [machine.python(), "-I", "-S", "-c", _FIRST_CLOSED_PATH, *words],
            user=account.uid, group=account.gid, extra_groups=[], cwd="/", env={},
            capture_output=True, text=True, check=False, timeout=_TRY_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return f"{account.name} cannot start {machine.python()}"
    if trial.returncode == 0:
        return ""
    closed_path = trial.stderr.strip().splitlines()[-1:] or [machine.python()]
    return f"{account.name} cannot use {closed_path[0]}"


def _nearest(path: Path) -> Path:
    """Return the absolute path, or the nearest folder above that exists."""
    absolute = path.absolute()
    return next(folder for folder in (absolute, *absolute.parents) if os.path.lexists(folder))


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)
