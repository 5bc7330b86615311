"""A program that becomes another program, which ends when its parent ends.

The supervisor starts every process of the stack through this file:
`python -I -S exec_bound_to_parent.py DESCRIPTION.json`. Linux sends the death signal when the
parent dies, even by SIGKILL: no process outlives its supervisor. The description also has the whole
environment: secrets stay off command lines, and a program has no other variables.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(description: str) -> None:
    """Replace this process by the program that the JSON file `description` names."""
    with open(description) as file:
        what = json.load(file)
    parent = os.getppid()
    if what["uid"] is not None:
        os.setgroups([])
        os.setgid(what["gid"])
        os.setuid(what["uid"])
    if what["umask"] is not None:
        os.umask(what["umask"])
    # After the change of user, which would clear it.
    die_with_parent(what["death_signal"], parent)
    os.chdir(what["cwd"])
    os.execve(what["argv"][0], what["argv"], what["env"])  # noqa: S606 (our own file names it)


def die_with_parent(number: int, parent: int) -> None:
    """Have the kernel send signal `number` to this process when process `parent` ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # it ended before the call above could see it
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
