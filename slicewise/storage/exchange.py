"""The system call renameat2(2), which Python does not offer: two paths exchanged in one step."""

import ctypes
import errno
import os
from pathlib import Path

from slicewise.storage.storage_errors import UnfitFileSystemError

_AT_FDCWD = -100
_NOREPLACE = 1
_EXCHANGE = 2
# Errors of file systems that cannot exchange (NFS, CephFS, SMB, most of FUSE), and of old kernels.
_NO_EXCHANGE = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
_EXCHANGING = "exchange two folders in one step"

_libc = ctypes.CDLL(None, use_errno=True)


def _renameat2(source: Path, target: Path, flag: int) -> None:
    result = _libc.renameat2(
        _AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), ctypes.c_uint(flag)
    )
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(source), None, str(target))


def put_in_place(source: Path, target: Path) -> bool:
    """Move the folder ``source`` to ``target``, and an old folder there to ``source``.

    One atomic step: a reader sees the old folder or the new one. Returns whether there was an old
    one. Raises FileNotFoundError when ``source`` is gone, UnfitFileSystemError if folders cannot be
    exchanged.
    """
    while True:
        try:
            _renameat2(source, target, _EXCHANGE)
            return True
        except FileNotFoundError:
            if not os.path.lexists(source):
                raise
        except OSError as error:
            if error.errno in _NO_EXCHANGE:
                raise UnfitFileSystemError(_EXCHANGING, target.parent) from error
            raise
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _renameat2(source, target, _NOREPLACE)
            return False
        except FileExistsError:
            continue  # another writer put a first version there since the exchange was tried
        except OSError as error:
            if error.errno not in _NO_EXCHANGE:
                raise
            # Some file systems exchange but do not know NOREPLACE. A plain rename replaces at
            # most an empty folder, never data.
            os.rename(source, target)
            return False
