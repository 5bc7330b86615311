"""Means of Linux to hide a process from other processes of the same user."""

import ctypes
import os

_SET_DUMPABLE = 4
_libc = ctypes.CDLL(None, use_errno=True)


def hide_from_others() -> None:
    """Hide this process's memory, environment and descriptors from all users but root, and from
    other processes of the same user.

    Holds until the process starts another program or becomes another user.
    """
    if _libc.prctl(_SET_DUMPABLE, ctypes.c_ulong(0), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({_SET_DUMPABLE}): {os.strerror(number)}")
