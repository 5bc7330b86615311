"""The environment of a stack whose code of assets has the user that `code_account` chooses."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from slicewise.process.own_folders import ForeignFolderError, ensure_folder
from slicewise_server.stack.code_account import (
    default_account,
    is_database_account,
    lake_obstacle,
)
from slicewise_server.stack.errors import StackError
from slicewise_server.stack.folder import DataFolder
from slicewise_server.stack.process import Account, write_private

PRIVATE_MODE, SHARED_MODE = 0o755, 0o2775  # of the lake
RECORD = "code-user"
_FIRST_CLOSED_FOLDER = """
for folder; do cd "$folder" 2>/dev/null || { printf %s "$folder"; exit 1; }; done
"""


def with_code_account(env: Mapping[str, str], data: Path) -> dict[str, str]:
    """Return the environment with the user of code, and with LAKE; create the lake for the user.

    Raises StackError where code has run as another user on this data and would now run as root:
    code may have brought that about, and may have put links where root would write.
    """
    env = {**env, **_absolute_lake(env)}
    completed = dict(env)
    code = default_account(env, data)
    if code.account is not None:
        _refuse_database_account(env, code.account)
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
    return completed


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
    trial = subprocess.run(
        ["/bin/sh", "-c", _FIRST_CLOSED_FOLDER, "sh", *folders],
        user=account.uid, group=account.gid, extra_groups=[], cwd="/", env={},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if trial.returncode != 0:
        raise StackError(
            f"Code of assets runs as {account.name}, who cannot enter {trial.stdout}, of the data"
            f" folder {data}: run `chmod a+x {trial.stdout}`, or set SLICEWISE_DATA to another"
            " folder."
        )


def _prepare_lake(env: Mapping[str, str], data: Path, account: Account) -> None:
    """Create the folder of the example's data for the user of code; leave a lake of the user alone.

    Where runs have users of their own, they share the folder by their group.
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
