"""Mappings between the partitions of two assets."""

from slicewise.mapping.blocking import blocked_partitions
from slicewise.mapping.overlap import Ranges, Span, merged, overlapping
from slicewise.mapping.partition_mapping import PartitionMapping, WindowMapping
from slicewise.mapping.relation import matching_segments

__all__ = [
    "PartitionMapping",
    "Ranges",
    "Span",
    "WindowMapping",
    "blocked_partitions",
    "matching_segments",
    "merged",
    "overlapping",
]
