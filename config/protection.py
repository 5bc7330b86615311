"""What code of people is not kept from, said in plain words by `slicewise up` and `doctor`.

Standard library only, as `slicewise doctor` works before anything is installed.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping


def user_of_code(env: Mapping[str, str]) -> str:
    """Return as whom the functions of assets run."""
    if users := env.get("SLICEWISE_RUNNER_USERS"):
        return f"each run as a user of its own, {users}"
    named = env.get("SLICEWISE_RUNNER_USER", "")
    return f"all runs as {named}" if named else f"all runs as {_own_name()}, like the server"


def unprotected(env: Mapping[str, str]) -> str:
    """Return what such code reaches that a setting could keep from it; nothing where each run has a
    user. What runs always share stands in docs/guides/security.md.
    """
    if env.get("SLICEWISE_RUNNER_USERS"):
        return ""
    named = env.get("SLICEWISE_RUNNER_USER", "")
    if named not in ("", "0", "root", _own_name(), str(os.geteuid())):
        return (
            "Runs share a user: one can end the processes of another. SLICEWISE_RUNNER_USERS gives"
            " each a user of its own."
        )
    if os.geteuid() == 0:
        return (
            "Code of assets runs as root: it can read and change everything on this machine. Start"
            " Slicewise as another user, or with SLICEWISE_RUNNER_USER beside a Spark of that user."
        )
    return (
        f"Code of assets can read and change whatever {_own_name()} can: the data folder with the"
        " passwords in it, and files that have nothing to do with Slicewise. Run only code that"
        " you trust; docs/guides/operating.md says how to keep it apart."
    )


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"the user {os.geteuid()}"
