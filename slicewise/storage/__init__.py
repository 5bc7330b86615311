"""Partitions on a file system, and the publication of new partitions in place of old ones.

Nothing here imports pyspark: a worker publishes and discards without loading Spark.
"""

from slicewise.storage.fitness import refuse_unfit, share_trials_with_forks
from slicewise.storage.layout import (
    STAGING_PREFIX,
    UNPARTITIONED,
    escape,
    marker_name,
    partition_folder,
    staging_path,
    unescape,
)
from slicewise.storage.modes import MissingVersionError, folders_to_read, versions
from slicewise.storage.publishing import (
    check,
    discard,
    has_remains,
    publish,
    published,
)
from slicewise.storage.storage_errors import (
    StagingLostError,
    StorageError,
    TryAgainError,
    UnfitFileSystemError,
    UnfitLocationError,
    UnfitStoreError,
)

__all__ = [
    "STAGING_PREFIX",
    "UNPARTITIONED",
    "MissingVersionError",
    "StagingLostError",
    "StorageError",
    "TryAgainError",
    "UnfitFileSystemError",
    "UnfitLocationError",
    "UnfitStoreError",
    "check",
    "discard",
    "escape",
    "folders_to_read",
    "has_remains",
    "marker_name",
    "partition_folder",
    "publish",
    "published",
    "refuse_unfit",
    "share_trials_with_forks",
    "staging_path",
    "unescape",
    "versions",
]
