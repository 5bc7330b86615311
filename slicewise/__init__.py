"""Slicewise: partition-aware data assets. The names that definition files import."""

from slicewise import testing as testing
from slicewise.declaring.alerts import Alert
from slicewise.declaring.decorator import Asset, asset
from slicewise.declaring.freshness import Freshness
from slicewise.declaring.lateness_terms import After, Fresh
from slicewise.declaring.schedule_terms import Cron, Every
from slicewise.errors import (
    DefinitionError,
    PartitionError,
    PartitionKeyError,
    SelectionError,
    UnboundedPartitionsError,
)
from slicewise.io.frames import RowsError
from slicewise.keys.partition_key import Interval, PartitionKey
from slicewise.keys.product_key import ProductKey
from slicewise.mapping.built_in import All, Keys, Latest, Offset, Overlap
from slicewise.mapping.partition_mapping import (
    PartitionMapping,
    downstream_partitions,
    upstream_partitions,
)
from slicewise.partitions.by_interval import PartitionByInterval
from slicewise.partitions.by_product import PartitionByProduct
from slicewise.partitions.by_sequence import PartitionAtRuntime, PartitionBySequence
from slicewise.partitions.by_time import PartitionByTime
from slicewise.partitions.definition import Dimension, PartitionDefinition, PartitionSet
from slicewise.partitions.key_set import PartitionRange
from slicewise.partitions.partition_paths import partition_path
from slicewise.running.context import RunContext, get_current_context
from slicewise.running.handles import AssetHandle, MissingPartitionsError
from slicewise.running.partition_column import partition_column
from slicewise.running.watermarks import Watermark
from slicewise.uris.canonical import normalize_uri
from slicewise.uris.openlineage import openlineage_name, openlineage_uri
from slicewise.validations import AssetValidation, ValidationResult, validation

__all__ = [
    "After",
    "Alert",
    "All",
    "Asset",
    "AssetHandle",
    "AssetValidation",
    "Cron",
    "DefinitionError",
    "Dimension",
    "Every",
    "Fresh",
    "Freshness",
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
    "Watermark",
    "asset",
    "downstream_partitions",
    "get_current_context",
    "normalize_uri",
    "openlineage_name",
    "openlineage_uri",
    "partition_column",
    "partition_path",
    "upstream_partitions",
    "validation",
]
