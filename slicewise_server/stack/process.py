"""Descriptions of processes, for the supervisor."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# Variables that servers and user code may see; all other variables are removed.
HARMLESS = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR", "USER", "LOGNAME")


def scrubbed(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without secrets, with a locale for names of files."""
    # Not above: `slicewise doctor` reads this module where no package is installed yet.
    from slicewise.process import with_utf8_names

    return with_utf8_names({name: env[name] for name in HARMLESS if name in env})


@dataclass(frozen=True, kw_only=True)
class Account:
    """The user under whom a process runs."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True, kw_only=True)
class Process:
    """One program of the stack; the program gets `death_signal` when the supervisor dies."""

    name: str
    argv: list[str]
    cwd: Path
    env: dict[str, str] = field(repr=False)
    account: Account | None = None
    death_signal: signal.Signals = signal.SIGKILL
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: int = 10
    umask: int | None = None

    def describe(self, file: Path) -> None:
        """Write the description for `exec_bound_to_parent.py`, readable by this user alone: the
        environment has secrets.
        """
        what = {
            "argv": self.argv,
            "cwd": str(self.cwd),
            "env": self.env,
            "uid": self.account.uid if self.account else None,
            "gid": self.account.gid if self.account else None,
            "death_signal": int(self.death_signal),
            "umask": self.umask,
        }
        write_private(file, json.dumps(what, indent=1))


def write_private(file: Path, text: str) -> None:
    """Write a file that only this user may read, in one atomic step."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)
    fresh.replace(file)
