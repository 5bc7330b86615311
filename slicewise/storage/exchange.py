"""renameat2(2), which Python does not offer: two paths exchanged in one step."""

import ctypes
import errno
import os
from pathlib import Path

_AT_FDCWD = -100
_NOREPLACE = 1
_EXCHANGE = 2

_libc = ctypes.CDLL(None, use_errno=True)


def _renameat2(source: Path, target: Path, flag: int) -> None:
    result = _libc.renameat2(
        _AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), ctypes.c_uint(flag)
    )
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(source), None, str(target))


def put_in_place(source: Path, target: Path) -> bool:
    """Moves the folder ``source`` to ``target``; what was there ends up at ``source``.

    One atomic step: a reader sees the old folder or the new one. Returns whether there was an old
    one. Raises FileNotFoundError when ``source`` is gone.
    """
    while True:
        try:
            _renameat2(source, target, _EXCHANGE)
            return True
        except FileNotFoundError:
            if not os.path.lexists(source):
                raise
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _renameat2(source, target, _NOREPLACE)
            return False
        except FileExistsError:
            continue  # another writer put a first version there since the exchange was tried
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            # Some file systems exchange but do not know NOREPLACE. A plain rename replaces at
            # most an empty folder, never data.
            os.rename(source, target)
            return False
