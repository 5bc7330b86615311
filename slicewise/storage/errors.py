"""Why data could not be put in place."""

import errno


class StorageError(Exception):
    """Data could not be put in place; the message says which and why."""


class StagingLostError(StorageError):
    """What an attempt staged is gone: somebody else took the run over, or discarded it."""


class TryAgainError(OSError):
    """Where the data is kept does not answer, or is busy: the same may succeed later."""

    def __init__(self, message: str) -> None:
        super().__init__(errno.EAGAIN, message)
