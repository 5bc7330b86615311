"""The environment of a stack whose code of assets has the user that `code_account` chooses."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from slicewise.process.own_folders import ForeignFolderError, ensure_folder
from slicewise_server.stack.code_account import (
    CodeAccount,
    default_account,
    is_database_account,
    lake_obstacle,
    obstacle_of_named,
)
from slicewise_server.stack.errors import StackError
from slicewise_server.stack.folder import DataFolder
from slicewise_server.stack.process import Account, write_private

PRIVATE_MODE, SHARED_MODE = 0o755, 0o2775  # of the lake
RECORD = "code-user"
_UNTRIED = "A trial whether {} can enter the data folder {} failed ({}). Start again."
_FIRST_CLOSED_FOLDER = """
for folder; do cd "$folder" 2>/dev/null || { printf %s "$folder"; exit 1; }; done
"""


class CodeEnvironment(NamedTuple):
    """The environment of a stack, and the user of code, or the reason for root."""

    env: dict[str, str]
    code: CodeAccount


def with_code_account(env: Mapping[str, str], data: Path) -> dict[str, str]:
    """Return the environment of `code_environment`."""
    return code_environment(env, data).env


def code_environment(env: Mapping[str, str], data: Path) -> CodeEnvironment:
    """Complete the environment with the user of code, and with LAKE; create the lake for the user.

    Raises StackError where trials of the user fail for a passing reason. Also where code has run as
    another user on this data folder and would now run as root: code may have caused the change,
    and may have placed links in folders where root would write.
    """
    env = {**env, **_absolute_lake(env)}
    completed = dict(env)
    code = default_account(env, data)
    if code.account is not None:
        _refuse_database_account(env, code.account)
        if obstacle := obstacle_of_named(env, code.account):
            raise StackError(obstacle)
        completed["SLICEWISE_RUNNER_USER"] = code.account.name
        _prepare_lake(env, data, code.account)
        _refuse_closed_folder(data, code.account)
        write_private(data / RECORD, code.account.name)
    elif os.geteuid() == 0 and not env.get("SLICEWISE_RUNNER_USER") and (data / RECORD).exists():
        raise StackError(
            f"Code of assets ran as the user {(data / RECORD).read_text()} on {data} before, and"
            f" cannot now: {code.obstacle}. Remove the cause, or set SLICEWISE_RUNNER_USER=root to"
            " run the code as root on files that the other user has written."
        )
    completed.setdefault("LAKE", str(data / "lake"))
    return CodeEnvironment(completed, code)


def _absolute_lake(env: Mapping[str, str]) -> dict[str, str]:
    """Return LAKE with a path that is no URI made absolute: workers, runs and Spark each have
    another working directory.
    """
    lake = env.get("LAKE", "")
    return {"LAKE": str(Path(lake).absolute())} if lake and ":" not in lake else {}


def _refuse_database_account(env: Mapping[str, str], account: Account) -> None:
    if is_database_account(env, account):
        raise StackError(
            f"SLICEWISE_RUNNER_USER is {account.name}, as whom PostgreSQL runs here: code could"
            " read and end the database. Name another user."
        )


def _refuse_closed_folder(data: Path, account: Account) -> None:
    """Raise StackError with the path of the first folder that the account cannot enter, of the data
    folder and the folders above.
    """
    folders = [str(folder) for folder in (*reversed(data.parents), data)]
    try:
        trial = subprocess.run(
            ["/bin/sh", "-c", _FIRST_CLOSED_FOLDER, "sh", *folders],
            user=account.uid, group=account.gid, extra_groups=[], cwd="/", env={},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError as error:
        raise StackError(_UNTRIED.format(account.name, data, error)) from error
    if trial.returncode != 0 and not trial.stdout:
        raise StackError(_UNTRIED.format(account.name, data, f"status {trial.returncode}"))
    if trial.returncode != 0:
        raise StackError(
            f"Code of assets runs as {account.name}, who cannot enter {trial.stdout}, of the data"
            f" folder {data}: run `chmod a+x {trial.stdout}`, or set SLICEWISE_DATA to another"
            " folder."
        )


def _prepare_lake(env: Mapping[str, str], data: Path, account: Account) -> None:
    """Create the folder of the example's data for the user of code; leave a lake of the user alone.

    Users of single runs share the folder through a common group.
    """
    DataFolder(data).create()
    lake = data / "lake"
    if obstacle := lake_obstacle(env, data, account):
        raise StackError(f"{obstacle}.")
    if env.get("LAKE") or (lake.exists() and lake.stat().st_uid == account.uid):
        return  # the mode is the administrator's
    mode = SHARED_MODE if env.get("SLICEWISE_RUNNER_USERS") else PRIVATE_MODE
    try:
        ensure_folder(lake, user=(account.uid, account.gid), mode=mode)
    except (ForeignFolderError, PermissionError) as error:
        raise StackError(f"The folder {lake} cannot be given to {account.name}: {error}") from error
