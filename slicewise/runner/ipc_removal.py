"""Removal of objects of System V. A program of its own, with the rights of the objects' user:
standard library only.
"""

import ctypes
import sys

_IPC_REMOVE = 0


def remove(objects: list[str]) -> None:
    """Remove objects, each written as `shm:7`, that belong to the user of this process."""
    libc = ctypes.CDLL(None)
    for text in objects:
        kind, _, number = text.partition(":")
        if kind == "sem":
            libc.semctl(int(number), 0, _IPC_REMOVE)
        else:
            getattr(libc, f"{kind}ctl")(int(number), _IPC_REMOVE, None)


if __name__ == "__main__":
    remove(sys.argv[1:])
