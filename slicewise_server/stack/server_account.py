"""The user of servers that refuse to run as root."""

from __future__ import annotations

import os
import pwd

from slicewise_server.stack.errors import StackError
from slicewise_server.stack.process import Account

ACCOUNTS = ("daemon", "nobody")


def server_account() -> Account | None:
    """Return the user of PostgreSQL in a stack of root; None in a stack of another user.

    Raises StackError where this machine has none of the users.
    """
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
    raise StackError(
        f"PostgreSQL does not run as root, and this machine has none of the users "
        f"{', '.join(ACCOUNTS)}. Run Slicewise as an ordinary user, or set DATABASE_URL."
    )
