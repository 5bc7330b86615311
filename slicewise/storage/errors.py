"""Why data could not be put in place."""

import errno
from pathlib import Path


class StorageError(Exception):
    """Data could not be put in place; the message says which and why."""


class StagingLostError(StorageError):
    """What an attempt staged is gone: somebody else took the run over, or discarded it."""


class UnfitPlaceError(StorageError):
    """What keeps the data cannot do what publishing takes; the message says what can."""


class UnfitFileSystemError(UnfitPlaceError):
    """The file system cannot do what publishing takes."""

    def __init__(self, what: str, folder: Path) -> None:
        self.what = what
        super().__init__(
            f"the file system of {folder} cannot {what}, which publishing takes: keep the asset on"
            " ext4, XFS, Btrfs or tmpfs of one host, or at an s3:, gcs: or postgres: URI"
        )


class UnfitStoreError(UnfitPlaceError):
    """The object store cannot do what publishing takes."""

    def __init__(self, uri: str, answer: str) -> None:
        super().__init__(
            f"the store of {uri} cannot create an object only where there is none ({answer}), which"
            " publishing takes: keep the asset in a store that knows If-None-Match, as Amazon S3,"
            " Google Cloud Storage and MinIO do, or at a file: or postgres: URI"
        )


class TryAgainError(OSError):
    """Where the data is kept does not answer, or is busy: the same may succeed later."""

    def __init__(self, message: str) -> None:
        super().__init__(errno.EAGAIN, message)
