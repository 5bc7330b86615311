"""Slicewise: partition-aware data assets. The names that definition files import."""

from slicewise import testing as testing
from slicewise.assets import Asset, asset
from slicewise.by_interval import PartitionByInterval
from slicewise.by_product import PartitionByProduct
from slicewise.by_sequence import PartitionAtRuntime, PartitionBySequence
from slicewise.by_time import PartitionByTime
from slicewise.context import PartitionError, RunContext, get_current_context
from slicewise.definitions import Dimension, PartitionDefinition
from slicewise.errors import (
    DefinitionError,
    PartitionKeyError,
    SelectionError,
    UnboundedPartitionsError,
)
from slicewise.folders import partition_path
from slicewise.frames import RowsError
from slicewise.handles import AssetHandle, MissingPartitionsError
from slicewise.intervals import Interval
from slicewise.keys import PartitionKey, ProductKey
from slicewise.mapping import PartitionMapping, downstream_partitions, upstream_partitions
from slicewise.mappings import All, Keys, Latest, Offset, Overlap
from slicewise.openlineage import openlineage_name
from slicewise.partition_set import PartitionRange, PartitionSet
from slicewise.running.partition_column import partition_column
from slicewise.schedule_terms import Cron, Every
from slicewise.uris import normalize_uri
from slicewise.validations import AssetValidation, ValidationResult, validation

__all__ = [
    "All",
    "Asset",
    "AssetHandle",
    "AssetValidation",
    "Cron",
    "DefinitionError",
    "Dimension",
    "Every",
    "Interval",
    "Keys",
    "Latest",
    "MissingPartitionsError",
    "Offset",
    "Overlap",
    "PartitionAtRuntime",
    "PartitionByInterval",
    "PartitionByProduct",
    "PartitionBySequence",
    "PartitionByTime",
    "PartitionDefinition",
    "PartitionError",
    "PartitionKey",
    "PartitionKeyError",
    "PartitionMapping",
    "PartitionRange",
    "PartitionSet",
    "ProductKey",
    "RowsError",
    "RunContext",
    "SelectionError",
    "UnboundedPartitionsError",
    "ValidationResult",
    "asset",
    "downstream_partitions",
    "get_current_context",
    "normalize_uri",
    "openlineage_name",
    "partition_column",
    "partition_path",
    "upstream_partitions",
    "validation",
]
