"""What a process may do, and what others of its user may do to it."""

import ctypes
import os

_SET_DUMPABLE = 4

_libc = ctypes.CDLL(None, use_errno=True)


def hide_memory() -> None:
    """Let no other process of the same user read this one, its files and its environment, or trace
    it.
    """
    if _libc.prctl(_SET_DUMPABLE, ctypes.c_ulong(0), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl: {os.strerror(number)}")


def give_up_rights(uid: int, gid: int) -> None:
    """Become another user for good, with the group and with no other one."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    hide_memory()  # the kernel may have let others in again as the user changed
    if os.getresuid() != (uid, uid, uid) or os.getresgid() != (gid, gid, gid):
        raise PermissionError(f"this process did not become user {uid} with group {gid}")
