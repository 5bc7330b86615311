"""Storages of the data of assets: one `Storage` for each scheme of URIs.

Nothing here imports pyspark: a worker publishes and discards without loading Spark.
"""

from slicewise.io.base import (
    Measured,
    NoStorageError,
    Staged,
    Storage,
    StorageLocation,
    WriteMode,
    Writer,
    find_storage,
    storage_at,
)
from slicewise.io.recorded import Difference, PartitionRecord, find_differences, repair_advice

__all__ = [
    "Difference",
    "Measured",
    "NoStorageError",
    "PartitionRecord",
    "Staged",
    "Storage",
    "StorageLocation",
    "WriteMode",
    "Writer",
    "find_differences",
    "find_storage",
    "repair_advice",
    "storage_at",
]
