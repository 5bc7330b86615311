"""The lock on a folder, by which publications to the folder go one after another."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slicewise.storage.storage_errors import UnfitFileSystemError

# Errors of file systems without such locks; NFS wants a folder that is open for writing.
_NO_LOCKS = frozenset({errno.EBADF, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})


@contextmanager
def lock(folder: Path, *, patience: float) -> Iterator[None]:
    """Hold the lock on a folder. After ``patience`` seconds the caller goes on without the lock:
    the holder may be a stopped process.

    Raises UnfitFileSystemError if folders cannot be locked.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + patience
        while not _try_lock(descriptor, folder) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, folder: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            raise UnfitFileSystemError("lock a folder", folder) from error
        raise
    return True
