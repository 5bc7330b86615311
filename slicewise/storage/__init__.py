"""How partitions lie on a file system, and how new ones take the place of old ones.

Nothing here imports pyspark: a worker publishes and discards without loading Spark.
"""

from slicewise.storage.layout import (
    STAGING_PREFIX,
    escape,
    marker_name,
    partition_folder,
    staging_path,
    unescape,
)
from slicewise.storage.publishing import (
    StagingLostError,
    StorageError,
    check,
    discard,
    publish,
    published,
)

__all__ = [
    "STAGING_PREFIX",
    "StagingLostError",
    "StorageError",
    "check",
    "discard",
    "escape",
    "marker_name",
    "partition_folder",
    "publish",
    "published",
    "staging_path",
    "unescape",
]
