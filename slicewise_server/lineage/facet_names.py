"""Names of OpenLineage that sent and received events share."""

PARTITIONS = "slicewise_partitions"
"""The name of the facet with partitions (`docs/reference/openlineage`)."""

PARTITIONS_SCHEMA = (
    "urn:slicewise:openlineage:1-0-0:PartitionsDatasetFacet.json#/$defs/PartitionsDatasetFacet"
)
