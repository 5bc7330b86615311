"""Sentences of `slicewise up` and `doctor` about the reach of code of assets.

Standard library only, as `slicewise doctor` works before anything is installed.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping

from slicewise_server.stack.code_account import CodeAccount


def user_of_code(env: Mapping[str, str], code: CodeAccount) -> str:
    """Return the user as whom functions of assets run, as a clause; ``code`` is the user that
    `code_account` chooses.
    """
    if users := env.get("SLICEWISE_RUNNER_USERS"):
        return f"each run as a user of its own, {users}"
    if user_name := env.get("SLICEWISE_RUNNER_USER"):
        return f"all runs as {user_name}"
    if code.account is not None:
        return (
            f"with `slicewise up`: all runs as {code.account.name}; with workers of your own: as"
            " root"
        )
    return f"all runs as {_own_name()}, like the server"


def unprotected(env: Mapping[str, str], code: CodeAccount) -> str:
    """Return a sentence about data in reach of code of assets that a setting could protect; empty
    if each run has a user. ``code`` is the user that `code_account` chooses.

    docs/guides/security.md lists the data that runs always share.
    """
    if env.get("SLICEWISE_RUNNER_USERS"):
        return ""
    user_name = env.get("SLICEWISE_RUNNER_USER", "")
    if code.account or user_name not in ("", "0", "root", _own_name(), str(os.geteuid())):
        return (
            "Runs share a user: one run can end the processes of another."
            " SLICEWISE_RUNNER_USERS gives each run a user of its own."
        )
    if os.geteuid() == 0:
        reason = code.obstacle or f"SLICEWISE_RUNNER_USER is {user_name}"
        return (
            "Code of assets runs as root: it can read and change everything on this machine. The"
            f" reason: {reason}. Start Slicewise as another user, or name another user of this"
            " machine in SLICEWISE_RUNNER_USER."
        )
    return (
        f"Code of assets can read and change whatever {_own_name()} can: the data folder with the"
        " passwords in it, and files that have nothing to do with Slicewise. Run only code that"
        " you trust; docs/guides/operating.md says how to isolate the code."
    )


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"the user {os.geteuid()}"
