"""The errors of publishing and staging."""

import errno
from pathlib import Path


class StorageError(Exception):
    """Data could not be published; the message names the data and the reason."""


class StagingLostError(StorageError):
    """An attempt's staged data is gone: another process discarded it, or took the run over."""


class UnfitLocationError(StorageError):
    """The data's location cannot do the steps of publishing; the message names one that can."""


class UnfitFileSystemError(UnfitLocationError):
    """The file system cannot do the steps of publishing."""

    def __init__(self, operation: str, folder: Path) -> None:
        self.what = operation
        super().__init__(
            f"the file system of {folder} cannot {operation}, which publishing needs: keep the"
            " asset on ext4, XFS, Btrfs or tmpfs of one host, or at an s3:, gcs: or postgres: URI"
        )


class UnfitStoreError(UnfitLocationError):
    """The object store cannot do the steps of publishing."""

    def __init__(self, uri: str, answer: str) -> None:
        super().__init__(
            f"the store of {uri} cannot create an object only where no object exists ({answer}),"
            " which publishing needs: keep the asset in a store that supports If-None-Match, as"
            " Amazon S3, Google Cloud Storage and MinIO do, or at a file: or postgres: URI"
        )


class TryAgainError(OSError):
    """The data's location does not answer, or is busy: the same call may succeed later."""

    def __init__(self, message: str) -> None:
        super().__init__(errno.EAGAIN, message)
