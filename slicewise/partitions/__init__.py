"""Partition definitions, sets of partitions, selections, and folders of partitions."""

from slicewise.partitions.by_time import TimeOptions
from slicewise.partitions.definition import PartitionDefinition, PartitionSet, TimeDefinition
from slicewise.partitions.discovery import runtime_key
from slicewise.partitions.due import (
    ended_between,
    ended_by,
    partitions_of_last_window,
    partitions_of_last_windows,
    ticks_after_windows,
)
from slicewise.partitions.exclusion_warnings import exclusion_warnings
from slicewise.partitions.limits import Limits
from slicewise.partitions.nonexistent import NONE_NONEXISTENT, Nonexistent
from slicewise.partitions.partition_paths import (
    dimension_names,
    folder_names,
    has_folder_of,
    possible_key_texts,
)
from slicewise.partitions.rows import PartitionRow, bucket_of, has_day_buckets, partition_rows
from slicewise.partitions.runtime_keys import Definition, is_runtime
from slicewise.partitions.selected_sets import select, select_ranges
from slicewise.partitions.selection import LONGEST_SELECTION
from slicewise.partitions.window_ranges import WindowRange
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
    "TimeDefinition",
    "TimeOptions",
    "WindowRange",
    "Windows",
    "bucket_of",
    "dimension_names",
    "ended_between",
    "ended_by",
    "exclusion_warnings",
    "folder_names",
    "has_day_buckets",
    "has_folder_of",
    "is_runtime",
    "partition_rows",
    "partitions_of_last_window",
    "partitions_of_last_windows",
    "possible_key_texts",
    "runtime_key",
    "select",
    "select_ranges",
    "ticks_after_windows",
]
