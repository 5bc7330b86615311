"""Storages of the data of assets: one `Storage` for each scheme of URIs.

Nothing here imports pyspark: a worker publishes and discards without loading Spark.
"""

from slicewise.io.base import (
    Measured,
    NoStorageError,
    Place,
    Staged,
    Storage,
    Writer,
    find_storage,
    storage_at,
)

__all__ = [
    "Measured",
    "NoStorageError",
    "Place",
    "Staged",
    "Storage",
    "Writer",
    "find_storage",
    "storage_at",
]
