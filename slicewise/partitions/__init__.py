"""Partition definitions, sets of partitions, selections, and folders of partitions."""

from slicewise.partitions.by_time import TimeOptions
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.discovery import runtime_key
from slicewise.partitions.due import before, ended_between, latest
from slicewise.partitions.limits import Limits
from slicewise.partitions.nonexistent import NONE_NONEXISTENT, Nonexistent
from slicewise.partitions.partition_paths import (
    defines_folder,
    dimension_names,
    folder_keys,
    folder_names,
)
from slicewise.partitions.partition_set import PartitionSet
from slicewise.partitions.rows import PartitionRow, bucket_of, has_day_buckets, partition_rows
from slicewise.partitions.runtime_keys import Definition, is_runtime
from slicewise.partitions.selection import LONGEST_SELECTION, select, select_terms
from slicewise.partitions.window_ranges import Slab
from slicewise.partitions.windows import Windows

__all__ = [
    "LONGEST_SELECTION",
    "NONE_NONEXISTENT",
    "Definition",
    "Limits",
    "Nonexistent",
    "PartitionDefinition",
    "PartitionRow",
    "PartitionSet",
    "Slab",
    "TimeOptions",
    "Windows",
    "before",
    "bucket_of",
    "defines_folder",
    "dimension_names",
    "ended_between",
    "folder_keys",
    "folder_names",
    "has_day_buckets",
    "is_runtime",
    "latest",
    "partition_rows",
    "runtime_key",
    "select",
    "select_terms",
]
