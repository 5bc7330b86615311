"""Partitions on a file system, and the publication of new partitions in place of old ones.

Nothing here imports pyspark: a worker publishes and discards without loading Spark.
"""

from slicewise.storage.errors import (
    StagingLostError,
    StorageError,
    TryAgainError,
    UnfitFileSystemError,
    UnfitPlaceError,
    UnfitStoreError,
)
from slicewise.storage.fitness import refuse_unfit
from slicewise.storage.layout import (
    STAGING_PREFIX,
    escape,
    marker_name,
    partition_folder,
    staging_path,
    unescape,
)
from slicewise.storage.modes import MissingVersionError, places_to_read, versions
from slicewise.storage.publishing import (
    check,
    discard,
    publish,
    published,
)

__all__ = [
    "STAGING_PREFIX",
    "MissingVersionError",
    "StagingLostError",
    "StorageError",
    "TryAgainError",
    "UnfitFileSystemError",
    "UnfitPlaceError",
    "UnfitStoreError",
    "check",
    "discard",
    "escape",
    "marker_name",
    "partition_folder",
    "places_to_read",
    "publish",
    "published",
    "refuse_unfit",
    "staging_path",
    "unescape",
    "versions",
]
